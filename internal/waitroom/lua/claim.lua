-- Purpose: turns a live ticket into an enrolment in flight. Opening hours are decided here only, by Redis time.
-- KEYS[1] lecture    hash
-- KEYS[2] tickets    user -> deadline ms
-- KEYS[3] claims     user -> claimUntil ms
-- KEYS[4] holds      user -> hold
-- KEYS[5] expired    user -> when, ms (+0.5 = away)
-- KEYS[6] changed    user -> change number
-- KEYS[7] mirrors    prefix of the ticket mirrors, same slot
-- ARGV[1] user
-- ARGV[2] attempt    16 hex digits
-- ARGV[3] life       ms that the claim lives
-- Returns: {UNKNOWN} | {OK, seq, deadline ms, claimUntil ms} | {BUSY, claimUntil ms} | {EXPIRED} | {CLOSED} | {NONE}
--        | {STALE}: the deadline passed while the seats were stale, so nothing can be decided
local K = {
  lecture = KEYS[1], tickets = KEYS[2], claims = KEYS[3], holds = KEYS[4], expired = KEYS[5], changed = KEYS[6],
  mirrors = KEYS[7],
}
local user, attempt, life = ARGV[1], ARGV[2], tonumber(ARGV[3])

local line = read_line(K)
if not line then
  return { 'UNKNOWN' }
end
local now = clock()
local hold = read_hold(K, user)

if redis.call('ZSCORE', K.claims, user) then
  if hold.attempt == attempt then
    return { 'OK', hold.seq, hold.deadline, hold.untilms }
  end
  return { 'BUSY', hold.untilms }
end
if is_closed(line, now) then
  return { 'CLOSED' }
end
local deadline = redis.call('ZSCORE', K.tickets, user)
if not deadline then
  local ran_out = redis.call('ZSCORE', K.expired, user)
  if ran_out and number(ran_out) % 1 == 0 then
    return { 'EXPIRED' }
  end
  return { 'NONE' }
end
if number(deadline) <= now then
  if is_frozen(line, now) then
    return { 'STALE' }
  end
  lapse(K, user, now)
  return { 'EXPIRED' }
end

local untilms = digits(now + life)
remove_ticket(K, user)
redis.call('ZADD', K.claims, untilms, user)
redis.call('HSET', K.holds, user, hold.seq .. ' ' .. hold.deadline .. ' ' .. attempt .. ' ' .. untilms)
return { 'OK', hold.seq, hold.deadline, untilms }
