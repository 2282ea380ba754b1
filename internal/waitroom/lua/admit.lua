-- Purpose: one step of admission: makes up for an outage, takes back what ran out, grants what rate and seats
-- allow, parks the absent. Any number of instances may call it; together they admit at the rate of one.
-- KEYS[1] lecture    hash
-- KEYS[2] queue      user -> sequence
-- KEYS[3] tickets    user -> deadline ms
-- KEYS[4] claims     user -> claimUntil ms
-- KEYS[5] holds      user -> hold
-- KEYS[6] parked     user -> sequence
-- KEYS[7] seen       user -> last seen ms
-- KEYS[8] expired    user -> when, ms (+0.5 = away)
-- KEYS[9] changed    user -> change number
-- KEYS[10] mirrors   prefix of the ticket mirrors, same slot
-- ARGV[1] gap        ms without any admit after which nobody's absence counts yet
-- ARGV[2] grace      ms without a sign of life after which somebody is absent
-- ARGV[3] parked_for ms that a parked place is kept beyond the grace
-- Returns: {UNKNOWN} | {OK, granted, expired, parked, dropped, waiting, held, 1 where another call would do more,
--          then the totals since the line began: granted, departed, used, lapsed; then now ms, and
--          1 where people may be admitted at all (open, not paused, seats fresh), 1 where the lecture is closed, and
--          where nothing but tokens holds people back: in how many ms they run over, and when before that another
--          call does best; else 0 and 0}
local K = {
  lecture = KEYS[1], queue = KEYS[2], tickets = KEYS[3], claims = KEYS[4], holds = KEYS[5], parked = KEYS[6],
  seen = KEYS[7], expired = KEYS[8], changed = KEYS[9], mirrors = KEYS[10],
}
local gap, grace, parked_for = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local CHUNK, SCAN, ROUND = 200, 400, 100

local line = read_line(K)
if not line then
  return { 'UNKNOWN' }
end
local now = clock()
local granted, expired, dropped, more = 0, 0, 0, false

if now - line.beat > gap then
  line.steady = now
end
redis.call('HSET', K.lecture, 'beat', digits(now), 'steady', digits(line.steady))
local tokens = earn(line, now)

local function absence(user)
  local seen = number(redis.call('ZSCORE', K.seen, user) or '0')
  return now - math.max(seen, line.steady)
end

-- Tickets that ran out, or nearly, while nobody could use them last a little longer.
local function make_up()
  local target = line.outage
  if line.closes_at > 0 then
    target = math.min(target, line.closes_at)
  end
  local users = redis.call('ZRANGEBYSCORE', K.tickets, '-inf', '(' .. digits(target), 'LIMIT', 0, CHUNK)
  for _, user in ipairs(users) do
    write_ticket(K, user, read_hold(K, user).seq, digits(target), now)
    note(K, user)
  end
  if #users == CHUNK then
    more = true
  else
    redis.call('HDEL', K.lecture, 'outage')
    line.outage = 0
  end
end

-- No ticket outlives the lecture's closing, whenever that was set.
local function reclaim()
  local until_when = is_closed(line, now) and '+inf' or digits(now)
  local users = redis.call('ZRANGEBYSCORE', K.tickets, '-inf', until_when, 'LIMIT', 0, CHUNK)
  for _, user in ipairs(users) do
    lapse(K, user, now)
  end
  expired = #users
  more = more or #users == CHUNK
end

-- Looks at some of the parked each time, in turn; a place is kept for long, so a slow round is soon enough.
local function drop_the_long_gone()
  local size = redis.call('ZCARD', K.parked)
  if size == 0 then
    return
  end
  local from = tonumber(redis.call('HGET', K.lecture, 'round') or '0')
  if from >= size then
    from = 0
  end
  for _, user in ipairs(redis.call('ZRANGE', K.parked, from, from + ROUND - 1)) do
    if absence(user) > grace + parked_for then
      redis.call('ZREM', K.parked, user)
      redis.call('ZREM', K.seen, user)
      redis.call('ZADD', K.expired, digits(now) .. '.5', user)
      note(K, user)
      dropped = dropped + 1
    end
  end
  redis.call('HSET', K.lecture, 'round', from + ROUND - dropped)
end

local function forget_the_expired()
  local old = redis.call('ZRANGEBYSCORE', K.expired, '-inf', digits(now - 3600000), 'LIMIT', 0, CHUNK)
  for _, user in ipairs(old) do
    redis.call('ZREM', K.expired, user)
    note(K, user)
  end
end

-- Who is next, and who is absent among those before the last of them.
local function scan(want)
  local next_ones, absent, from = {}, {}, 0
  local may_park = now >= line.opens_at + grace
  while #next_ones < want and from < SCAN do
    local size = math.min(SCAN - from, want - #next_ones + 20)
    local heads = redis.call('ZRANGE', K.queue, from, from + size - 1, 'WITHSCORES')
    for i = 1, #heads, 2 do
      local person = { user = heads[i], seq = digits(number(heads[i + 1])) }
      if #next_ones == want then
        return next_ones, absent
      elseif may_park and absence(person.user) > grace then
        absent[#absent + 1] = person
      else
        next_ones[#next_ones + 1] = person
      end
    end
    if #heads < 2 * size then
      break
    end
    from = from + size
  end
  return next_ones, absent
end

local fresh = not is_stale(line, now)
if fresh and line.outage > 0 then
  make_up()
end
if fresh and line.outage == 0 then
  reclaim()
  drop_the_long_gone()
  forget_the_expired()
end
local parked = 0
if is_admitting(line, now) then
  local held = redis.call('ZCARD', K.tickets) + redis.call('ZCARD', K.claims)
  local want = math.min(math.floor(tokens), room_for(line, held), CHUNK)
  if want > 0 then
    local next_ones, absent = scan(want)
    for _, person in ipairs(absent) do
      redis.call('ZREM', K.queue, person.user)
      redis.call('ZADD', K.parked, person.seq, person.user)
      note(K, person.user)
    end
    for _, person in ipairs(next_ones) do
      grant(K, line, person.user, person.seq, now)
    end
    granted, parked = #next_ones, #absent
    tokens = tokens - granted
    more = more or granted == CHUNK or (granted < want and parked > 0)
  end
end
keep_tokens(K, tokens, now)
if granted > 0 then
  line.granted = redis.call('HINCRBY', K.lecture, 'granted', granted)
end
if granted + parked > 0 then
  line.departed = redis.call('HINCRBY', K.lecture, 'departed', granted + parked)
end
local waiting = redis.call('ZCARD', K.queue)
local held = redis.call('ZCARD', K.tickets) + redis.call('ZCARD', K.claims)

-- The next call needs a whole token, and some time before they run over: what runs over is lost.
local full, best = 0, 0
if waiting > 0 and not more and is_admitting(line, now) and room_for(line, held) > 0 then
  local left = line.burst - tokens
  full = math.ceil(left / line.rate * 1000)
  best = math.ceil(math.max(1 - tokens, left * 0.75) / line.rate * 1000)
end

return {
  'OK', granted, expired, parked, dropped, waiting, held, (more and waiting > 0 or fresh and line.outage > 0) and 1 or 0,
  digits(line.granted), digits(line.departed), digits(line.used), digits(line.lapsed + expired), digits(now), is_admitting(line, now) and 1 or 0,
  is_closed(line, now) and 1 or 0, digits(full), digits(best),
}
