-- Purpose: takes a reading of the lecture's row over, where it is newer than the line's or follows directly on it.
-- KEYS[1] lecture    hash
-- KEYS[2] tickets    user -> deadline ms
-- KEYS[3] enrolled   user -> seat_version
-- ARGV[1] seen       seat_version the line had before the database was asked; -1 = not looked at
-- ARGV[2] version    seat_version of the reading
-- ARGV[3] epoch      0, or the epoch with which to begin a line that is not there
-- ARGV[4...] field, value: remaining, opens_at, closes_at (ms, 0 = none), paused, rate, burst, ttl_ms, overbook, message
-- Returns: UNKNOWN (no line, and no epoch to begin it with) | OK | OLD (the line knows more than this reading)
local K = { lecture = KEYS[1], tickets = KEYS[2], enrolled = KEYS[3] }
local MARKS = 1000
local seen, version, epoch = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local line = read_line(K)
if not line and epoch == 0 then
  return 'UNKNOWN'
end
local now = clock()

local fields = {}
for i = 4, #ARGV do
  fields[#fields + 1] = ARGV[i]
end
local function take_over()
  redis.call('HSET', K.lecture, 'version', digits(version), 'synced', digits(now), unpack(fields))
end

if not line then
  take_over()
  redis.call('HSET', K.lecture, 'epoch', digits(epoch), 'seq', '0', 'chg', '0',
    'tokens', redis.call('HGET', K.lecture, 'burst') or '0', 'tokens_at', digits(now),
    'beat', digits(now), 'steady', digits(now))
  if epoch > 1 then
    redis.call('HSET', K.lecture, 'lost', digits(now))
  end
  return 'OK'
end

if epoch == 1 and line.lost > 0 then
  -- Two instances made the first contact at once: there was no line before this one to lose.
  redis.call('HDEL', K.lecture, 'lost')
end
if is_stale(line, now) and redis.call('ZCARD', K.tickets) > 0 then
  redis.call('HSET', K.lecture, 'outage', digits(now + AFTER_OUTAGE))
end
if version <= line.version and line.version ~= seen then
  -- The database answered, only with less than the line knows by now.
  redis.call('HSET', K.lecture, 'synced', digits(now))
  return 'OLD'
end
if version <= line.version then
  -- The database may have lost commits in a failover. A mark of such a one could not be removed before the database
  -- comes to its version again: whom it stands for is not enrolled, and could not join.
  for _, user in ipairs(redis.call('ZRANGEBYSCORE', K.enrolled, '(' .. digits(version), '+inf', 'LIMIT', 0, MARKS)) do
    redis.call('ZADD', K.enrolled, digits(version), user)
  end
end
-- What was earned so far was earned under the old settings.
keep_tokens(K, earn(line, now), now)
take_over()
return 'OK'
