-- Purpose: takes tokens out of a bucket that fills at a rate, or says how long it takes until there are enough. The
-- bucket is one number, the time at which it is full again; there is no key for a full one.
-- KEYS[1] bucket   time at which it is full, µs
-- ARGV[1] rate     tokens it earns per second
-- ARGV[2] burst    tokens it holds when full
-- ARGV[3] want     tokens to take, at most burst
-- Returns: 0 (taken) | ms to wait (nothing was taken)
local bucket = KEYS[1]
local rate, burst, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local each = 1000000 / rate
local empty = now + burst * each

local function keep(full)
  redis.call('SET', bucket, string.format('%.0f', full), 'PX', string.format('%.0f', math.ceil((full - now) / 1000)))
end

local full = math.max(now, tonumber(redis.call('GET', bucket) or '0'))
if full > empty then
  -- The clock was set back, or the bucket was larger: it is empty, and nobody has a debt.
  full = empty
  keep(full)
end
local after = full + want * each
if after > empty then
  return math.max(1, math.ceil((after - empty) / 1000))
end
keep(after)
return 0
