-- Purpose: forgets that somebody is enrolled, unless they enrolled again after the reading that says so.
-- KEYS[1] lecture    hash
-- KEYS[2] enrolled   user -> seat_version of the commit
-- KEYS[3] changed    user -> change number
-- ARGV[1] user
-- ARGV[2] version    seat_version of the reading without a row
-- Returns: 1 where the mark was removed
local K = { lecture = KEYS[1], enrolled = KEYS[2], changed = KEYS[3] }
local user, version = ARGV[1], tonumber(ARGV[2])

local mark = redis.call('ZSCORE', K.enrolled, user)
if not mark or number(mark) > version then
  return 0
end
redis.call('ZREM', K.enrolled, user)
note(K, user)
return 1
