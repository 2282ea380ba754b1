-- Purpose: these people are there: a sign of life for those in line, and the way back for the parked.
-- KEYS[1] lecture    hash
-- KEYS[2] queue      user -> sequence
-- KEYS[3] parked     user -> sequence
-- KEYS[4] seen       user -> last seen ms
-- KEYS[5] changed    user -> change number
-- ARGV[1...] users, up to 200
-- Returns: how many came back from being parked
local K = { lecture = KEYS[1], queue = KEYS[2], parked = KEYS[3], seen = KEYS[4], changed = KEYS[5] }

local now = clock()
local back = 0
for i = 1, #ARGV do
  local user = ARGV[i]
  local parked = redis.call('ZSCORE', K.parked, user)
  if parked then
    redis.call('ZREM', K.parked, user)
    redis.call('ZADD', K.queue, digits(number(parked)), user)
    note(K, user)
    back = back + 1
  end
  if parked or redis.call('ZSCORE', K.queue, user) then
    redis.call('ZADD', K.seen, digits(now), user)
  end
end
return back
