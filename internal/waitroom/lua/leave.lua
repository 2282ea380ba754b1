-- Purpose: takes a person out of the line, or an unused ticket back. An enrolment in flight is left alone.
-- KEYS[1] lecture    hash
-- KEYS[2] queue      user -> sequence
-- KEYS[3] tickets    user -> deadline ms
-- KEYS[4] claims     user -> claimUntil ms
-- KEYS[5] holds      user -> hold
-- KEYS[6] parked     user -> sequence
-- KEYS[7] seen       user -> last seen ms
-- KEYS[8] expired    user -> when, ms
-- KEYS[9] changed    user -> change number
-- KEYS[10] mirrors   prefix of the ticket mirrors, same slot
-- ARGV[1] user
-- Returns: UNKNOWN | CLAIMED (in flight, nothing changed) | TICKET (a seat became free) | LEFT | NONE (was not there)
local K = {
  lecture = KEYS[1], queue = KEYS[2], tickets = KEYS[3], claims = KEYS[4], holds = KEYS[5], parked = KEYS[6],
  seen = KEYS[7], expired = KEYS[8], changed = KEYS[9], mirrors = KEYS[10],
}
local user = ARGV[1]

if redis.call('EXISTS', K.lecture) == 0 then
  return 'UNKNOWN'
end
if redis.call('ZSCORE', K.claims, user) then
  return 'CLAIMED'
end

local had_ticket = redis.call('ZSCORE', K.tickets, user)
if had_ticket then
  remove_ticket(K, user)
end
local was_waiting = redis.call('ZREM', K.queue, user)
local was_there = was_waiting + redis.call('ZREM', K.parked, user) + redis.call('ZREM', K.expired, user)
redis.call('ZREM', K.seen, user)
if was_waiting > 0 then
  redis.call('HINCRBY', K.lecture, 'departed', 1)
end
if had_ticket or was_there > 0 then
  note(K, user)
end
return had_ticket and 'TICKET' or was_there > 0 and 'LEFT' or 'NONE'
