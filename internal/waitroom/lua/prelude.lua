-- Purpose: words that the scripts share. Prepended to each of them; runs no command by itself.
-- KEYS: none of its own. Functions take K, the table in which each script names its keys.
-- ARGV: none.
-- Returns: nothing.

-- Seats older than this are stale: nothing is granted, nothing runs out (protocol.md rule 9). In ms.
local STALE_AFTER = 10000
-- How long a ticket lasts at least after an outage, and after a failed enrolment. In ms.
local AFTER_OUTAGE, AFTER_FAILURE = 30000, 10000
-- How many entries the change feed keeps, and how many are trimmed at a time.
local FEED, FEED_TRIM = 10000, 200

local FIELDS = {
  'epoch', 'seq', 'chg', 'tokens', 'tokens_at', 'remaining', 'version', 'synced', 'beat', 'steady',
  'opens_at', 'closes_at', 'paused', 'rate', 'burst', 'ttl_ms', 'overbook',
  'outage', 'trimmed', 'granted', 'departed', 'used', 'lapsed', 'lost',
}

-- Redis time in ms: the only clock of the line.
local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- A number as text without loss; tostring keeps only 14 digits.
local function digits(n)
  return string.format('%.0f', n)
end

-- The number that a score's text stands for. miniredis shortens round ones to 1e+9, which its Lua does not read.
local function number(text)
  local mantissa, exponent = string.match(text, '^(.-)e%+(%d+)$')
  if mantissa then
    return tonumber(mantissa) * 10 ^ tonumber(exponent)
  end
  return tonumber(text)
end

-- The lecture's hash as numbers, or nil where the line does not know the lecture.
local function read_line(K)
  local values = redis.call('HMGET', K.lecture, unpack(FIELDS))
  if not values[1] then
    return nil
  end
  local line = {}
  for i, name in ipairs(FIELDS) do
    line[name] = tonumber(values[i] or '0') or 0
  end
  return line
end

-- Whether the seats are too old to act on.
local function is_stale(line, now)
  return now - line.synced > STALE_AFTER
end

-- Whether no ticket may run out: during an outage, and until the first fresh admit has made up for it.
local function is_frozen(line, now)
  return is_stale(line, now) or line.outage > 0
end

local function is_closed(line, now)
  return line.closes_at > 0 and now >= line.closes_at
end

-- Tokens at now: earned only while open, not paused and not closed.
local function earn(line, now)
  local earned = 0
  if line.paused == 0 then
    local from, to = math.max(line.tokens_at, line.opens_at), now
    if line.closes_at > 0 then
      to = math.min(to, line.closes_at)
    end
    earned = math.max(0, to - from) / 1000 * line.rate
  end
  return math.min(line.burst, line.tokens + earned)
end

local function keep_tokens(K, tokens, now)
  redis.call('HSET', K.lecture, 'tokens', string.format('%.6f', tokens), 'tokens_at', digits(now))
end

-- How many more tickets the free seats allow.
local function room_for(line, held)
  return math.floor(line.remaining * line.overbook / 100) - held
end

local function is_admitting(line, now)
  return line.paused == 0 and now >= line.opens_at and not is_closed(line, now) and not is_stale(line, now)
end

-- Tells the hubs of every instance that this person's state changed.
local function note(K, user)
  local n = redis.call('HINCRBY', K.lecture, 'chg', 1)
  redis.call('ZADD', K.changed, digits(n), user)
  if redis.call('ZCARD', K.changed) > FEED then
    local last = redis.call('ZRANGE', K.changed, FEED_TRIM - 1, FEED_TRIM - 1, 'WITHSCORES')
    redis.call('HSET', K.lecture, 'trimmed', digits(number(last[2])))
    redis.call('ZREMRANGEBYRANK', K.changed, 0, FEED_TRIM - 1)
  end
end

-- The key of a ticket's mirror. Only the user is encoded: all but A-Z a-z 0-9 . _ ~ -
local function mirror(K, user)
  return K.mirrors .. string.gsub(user, '[^A-Za-z0-9%._~%-]', function(c)
    return string.format('%%%02X', string.byte(c))
  end)
end

-- A hold's four parts as text: sequence, deadline in ms, attempt or '-', claimUntil in ms or 0.
local function read_hold(K, user)
  local hold = redis.call('HGET', K.holds, user)
  if not hold then
    return nil
  end
  local seq, deadline, attempt, untilms = string.match(hold, '^(%S+) (%S+) (%S+) (%S+)$')
  return { seq = seq, deadline = deadline, attempt = attempt, untilms = untilms }
end

-- Writes a ticket: the set, the hold and the mirror. seq and deadline are text.
local function write_ticket(K, user, seq, deadline, now)
  redis.call('ZADD', K.tickets, deadline, user)
  redis.call('HSET', K.holds, user, seq .. ' ' .. deadline .. ' - 0')
  local left = tonumber(deadline) - now
  if left > 0 then
    redis.call('SET', mirror(K, user), deadline .. ' ' .. seq, 'PX', digits(left))
  end
end

-- Takes a ticket away: the set, the hold and the mirror.
local function remove_ticket(K, user)
  redis.call('ZREM', K.tickets, user)
  redis.call('HDEL', K.holds, user)
  redis.call('DEL', mirror(K, user))
end

-- Turns a person in line into one with a ticket. seq is text.
local function grant(K, line, user, seq, now)
  local deadline = now + line.ttl_ms
  if line.closes_at > 0 then
    deadline = math.min(deadline, line.closes_at)
  end
  redis.call('ZREM', K.queue, user)
  redis.call('ZREM', K.seen, user)
  write_ticket(K, user, seq, digits(deadline), now)
  note(K, user)
  return digits(deadline)
end

-- Ends a ticket that ran out; the person reads EXPIRED for an hour.
local function lapse(K, user, now)
  remove_ticket(K, user)
  redis.call('ZADD', K.expired, digits(now), user)
  redis.call('HINCRBY', K.lecture, 'lapsed', 1)
  note(K, user)
end

-- One reading of the whole line. All numbers are text; times in ms.
local function reading(K, line, now)
  return {
    digits(now), digits(line.epoch), digits(line.chg), digits(line.trimmed), digits(line.version),
    digits(line.remaining), digits(line.opens_at), digits(line.closes_at), digits(line.paused),
    string.format('%.6f', line.rate), digits(line.overbook), is_frozen(line, now) and '1' or '0',
    digits(redis.call('ZCARD', K.queue)), digits(redis.call('ZCARD', K.parked)),
    digits(redis.call('ZCARD', K.tickets)), digits(redis.call('ZCARD', K.claims)),
    digits(line.granted), digits(line.departed), digits(line.used), digits(line.lapsed), digits(line.lost),
    redis.call('HGET', K.lecture, 'message') or '', digits(line.burst),
  }
end
