-- Purpose: ends claims as the database decided, and carries the seats of that decision.
-- A claim that is not the one presented is left alone.
-- KEYS[1] lecture    hash
-- KEYS[2] queue      user -> sequence
-- KEYS[3] tickets    user -> deadline ms
-- KEYS[4] claims     user -> claimUntil ms
-- KEYS[5] holds      user -> hold
-- KEYS[6] seen       user -> last seen ms
-- KEYS[7] enrolled   user -> seat_version
-- KEYS[8] changed    user -> change number
-- KEYS[9] mirrors    prefix of the ticket mirrors, same slot
-- ARGV[1] version    seat_version of the reading
-- ARGV[2] remaining  free seats of the reading; -1 = not read
-- ARGV[3...] user, attempt, claimUntil ms, outcome (in | back | line) of up to 200 people
-- Returns: how many claims were settled
local K = {
  lecture = KEYS[1], queue = KEYS[2], tickets = KEYS[3], claims = KEYS[4], holds = KEYS[5], seen = KEYS[6],
  enrolled = KEYS[7], changed = KEYS[8], mirrors = KEYS[9],
}
local version, remaining = tonumber(ARGV[1]), tonumber(ARGV[2])

local line = read_line(K)
if not line then
  return 0
end
local now = clock()

local ends = {}
ends['in'] = function(user)
  redis.call('HDEL', K.holds, user)
  redis.call('ZADD', K.enrolled, digits(version), user)
  redis.call('HINCRBY', K.lecture, 'used', 1)
end
ends['back'] = function(user, hold)
  local deadline = math.max(tonumber(hold.deadline), now + AFTER_FAILURE)
  write_ticket(K, user, hold.seq, digits(deadline), now)
end
ends['line'] = function(user, hold)
  redis.call('HDEL', K.holds, user)
  redis.call('ZADD', K.queue, hold.seq, user)
  redis.call('ZADD', K.seen, digits(now), user)
end

local settled = 0
for i = 3, #ARGV, 4 do
  local user, attempt, untilms, outcome = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local hold = redis.call('ZSCORE', K.claims, user) and read_hold(K, user)
  if hold and hold.attempt == attempt and hold.untilms == untilms and ends[outcome] then
    redis.call('ZREM', K.claims, user)
    ends[outcome](user, hold)
    note(K, user)
    settled = settled + 1
  end
end
if remaining >= 0 and version > line.version then
  redis.call('HSET', K.lecture, 'remaining', digits(remaining), 'version', digits(version))
end
return settled
