-- Purpose: gives a person a place in line, or returns the one there is. The only script that hands out sequences.
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
-- ARGV[1] user
-- ARGV[2] restored   sequence of an earlier epoch, from a place token; 0 = none
-- Returns: {UNKNOWN} | {CLOSED} | {ENROLLED} | {ADMITTED, seq, deadline ms}
--        | {WAITING, seq, rank from 0, waiting, 1 where the seats are stale}
local K = {
  lecture = KEYS[1], queue = KEYS[2], tickets = KEYS[3], claims = KEYS[4], holds = KEYS[5], parked = KEYS[6],
  seen = KEYS[7], expired = KEYS[8], enrolled = KEYS[9], changed = KEYS[10], mirrors = KEYS[11],
}
local user, restored = ARGV[1], tonumber(ARGV[2])

local line = read_line(K)
if not line then
  return { 'UNKNOWN' }
end
local now = clock()
local stale = is_stale(line, now) and '1' or '0'

local function waiting(seq)
  redis.call('ZADD', K.seen, digits(now), user)
  redis.call('ZREM', K.expired, user)
  local rank = redis.call('ZRANK', K.queue, user)
  return { 'WAITING', digits(seq), digits(rank), digits(redis.call('ZCARD', K.queue)), stale }
end

local hold = read_hold(K, user)
if redis.call('ZSCORE', K.claims, user) then
  return { 'ADMITTED', hold.seq, hold.deadline }
end
local deadline = redis.call('ZSCORE', K.tickets, user)
if deadline then
  if number(deadline) > now or is_frozen(line, now) then
    return { 'ADMITTED', hold.seq, hold.deadline }
  end
  lapse(K, user, now)
end

local parked = redis.call('ZSCORE', K.parked, user)
if parked then
  redis.call('ZREM', K.parked, user)
  redis.call('ZADD', K.queue, digits(number(parked)), user)
  note(K, user)
  return waiting(number(parked))
end
local place = redis.call('ZSCORE', K.queue, user)
if place then
  return waiting(number(place))
end
if redis.call('ZSCORE', K.enrolled, user) then
  return { 'ENROLLED' }
end
if is_closed(line, now) then
  return { 'CLOSED' }
end

local was_empty = redis.call('ZCARD', K.queue) == 0
local seq = restored
-- Who let a ticket or a place run out in this line does not get the place of an earlier one back.
if restored <= 0 or math.floor(restored / 1e9) >= line.epoch or redis.call('ZSCORE', K.expired, user) then
  seq = line.epoch * 1e9 + redis.call('HINCRBY', K.lecture, 'seq', 1)
end
redis.call('ZREM', K.expired, user)

-- The first person of a quiet lecture need not wait for a tick.
if was_empty and is_admitting(line, now) and line.outage == 0 then
  local held = redis.call('ZCARD', K.tickets) + redis.call('ZCARD', K.claims)
  local tokens = earn(line, now)
  if tokens >= 1 and room_for(line, held) >= 1 then
    keep_tokens(K, tokens - 1, now)
    redis.call('HINCRBY', K.lecture, 'granted', 1)
    redis.call('HINCRBY', K.lecture, 'departed', 1)
    return { 'ADMITTED', digits(seq), grant(K, line, user, digits(seq), now) }
  end
end
redis.call('ZADD', K.queue, digits(seq), user)
note(K, user)
return waiting(seq)
