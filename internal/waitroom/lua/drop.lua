-- Purpose: forgets a lecture that no longer exists. Mirrors beyond the first thousand run out by themselves.
-- KEYS[1] lecture    hash
-- KEYS[2] queue      user -> sequence
-- KEYS[3] tickets    user -> deadline ms
-- KEYS[4] claims     user -> claimUntil ms
-- KEYS[5] holds      user -> hold
-- KEYS[6] parked     user -> sequence
-- KEYS[7] seen       user -> last seen ms
-- KEYS[8] expired    user -> when, ms
-- KEYS[9] enrolled   user -> seat_version
-- KEYS[10] changed   user -> change number
-- KEYS[11] mirrors   prefix of the ticket mirrors, same slot
-- ARGV: none
-- Returns: 1 where there was a line
local K = {
  lecture = KEYS[1], queue = KEYS[2], tickets = KEYS[3], claims = KEYS[4], holds = KEYS[5], parked = KEYS[6],
  seen = KEYS[7], expired = KEYS[8], enrolled = KEYS[9], changed = KEYS[10], mirrors = KEYS[11],
}

for _, user in ipairs(redis.call('ZRANGE', K.tickets, 0, 999)) do
  redis.call('DEL', mirror(K, user))
end
redis.call('UNLINK', K.queue, K.tickets, K.claims, K.holds, K.parked, K.seen, K.expired, K.enrolled, K.changed)
return redis.call('DEL', K.lecture)
