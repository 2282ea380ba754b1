-- Purpose: where these people stand, and one reading of the line from the same instant. Changes nothing.
-- KEYS[1] lecture    hash
-- KEYS[2] queue      user -> sequence
-- KEYS[3] tickets    user -> deadline ms
-- KEYS[4] claims     user -> claimUntil ms
-- KEYS[5] holds      user -> hold
-- KEYS[6] parked     user -> sequence
-- KEYS[7] expired    user -> when, ms (+0.5 = away)
-- KEYS[8] enrolled   user -> seat_version
-- ARGV[1...] users, up to 200
-- Returns: {UNKNOWN} | {OK, reading, then for each user {code, seq, deadline ms, rank from 0}}, codes:
--          W waiting, K waiting but parked, A admitted, R enrolled, T ticket ran out, P place ran out while away, N none of these
local K = {
  lecture = KEYS[1], queue = KEYS[2], tickets = KEYS[3], claims = KEYS[4], holds = KEYS[5], parked = KEYS[6],
  expired = KEYS[7], enrolled = KEYS[8],
}

local line = read_line(K)
if not line then
  return { 'UNKNOWN' }
end
local now = clock()

-- No ticket lasts past closesAt, whenever that was set.
local function last_moment(deadline)
  return line.closes_at > 0 and math.min(deadline, line.closes_at) or deadline
end

local function admitted(user)
  local hold = read_hold(K, user)
  return { 'A', hold.seq, digits(last_moment(tonumber(hold.deadline))), '0' }
end

local function standing(user)
  if redis.call('ZSCORE', K.claims, user) then
    return admitted(user)
  end
  local deadline = redis.call('ZSCORE', K.tickets, user)
  if deadline then
    if last_moment(number(deadline)) > now or is_frozen(line, now) then
      return admitted(user)
    end
    return { 'T', '0', '0', '0' }
  end
  local seq = redis.call('ZSCORE', K.queue, user)
  if seq then
    return { 'W', digits(number(seq)), '0', digits(redis.call('ZRANK', K.queue, user)) }
  end
  seq = redis.call('ZSCORE', K.parked, user)
  if seq then
    local ahead = redis.call('ZCOUNT', K.queue, '-inf', '(' .. digits(number(seq)))
    return { 'K', digits(number(seq)), '0', digits(ahead) }
  end
  if redis.call('ZSCORE', K.enrolled, user) then
    return { 'R', '0', '0', '0' }
  end
  local ran_out = redis.call('ZSCORE', K.expired, user)
  if ran_out then
    return { number(ran_out) % 1 == 0 and 'T' or 'P', '0', '0', '0' }
  end
  return { 'N', '0', '0', '0' }
end

local result = { 'OK', reading(K, line, now) }
for i = 1, #ARGV do
  result[i + 2] = standing(ARGV[i])
end
return result
