-- Purpose: what a hub needs each tick, however many watch: one reading of the line, the ranks as a digest, and who
-- changed since the last peek. Its work is bounded whatever the length of the line. Changes nothing.
-- KEYS[1] lecture    hash
-- KEYS[2] queue      user -> sequence
-- KEYS[3] tickets    user -> deadline ms
-- KEYS[4] claims     user -> claimUntil ms
-- KEYS[5] parked     user -> sequence
-- KEYS[6] changed    user -> change number
-- ARGV[1] cursor     change number up to which the caller knows; -1 = from now on
-- ARGV[2] exact      lines up to this length are returned whole
-- ARGV[3] head       of longer ones this many are, then samples
-- ARGV[4] samples    how many samples of the rest, evenly spaced, the last one always among them
-- Returns: {UNKNOWN} | {OK, reading, {users changed, up to 500, oldest first}, change number of the last of them,
--          {sequence of ranks 0, 1, 2, ... up to the head}, {rank, sequence, ... of the samples}}
local K = {
  lecture = KEYS[1], queue = KEYS[2], tickets = KEYS[3], claims = KEYS[4], parked = KEYS[5], changed = KEYS[6],
}
local cursor, exact, head, samples = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local FEED_CHUNK = 500

local line = read_line(K)
if not line then
  return { 'UNKNOWN' }
end
local now = clock()

local users, last = {}, line.chg
if cursor >= 0 and cursor < line.chg then
  local feed = redis.call('ZRANGEBYSCORE', K.changed, '(' .. digits(cursor), '+inf', 'WITHSCORES', 'LIMIT', 0, FEED_CHUNK)
  for i = 1, #feed, 2 do
    users[#users + 1] = feed[i]
  end
  if #users == FEED_CHUNK then
    last = number(feed[#feed])
  end
end

local length = redis.call('ZCARD', K.queue)
if length <= exact then
  head = length
end
local first, sampled = {}, {}
if head > 0 then
  local people = redis.call('ZRANGE', K.queue, 0, head - 1, 'WITHSCORES')
  for i = 2, #people, 2 do
    first[#first + 1] = people[i]
  end
end
if length > head then
  local step = math.max(1, math.ceil((length - head) / samples))
  local rank = head
  while rank < length do
    sampled[#sampled + 1] = digits(rank)
    sampled[#sampled + 1] = redis.call('ZRANGE', K.queue, rank, rank, 'WITHSCORES')[2]
    if rank < length - 1 and rank + step > length - 1 then
      rank = length - 1
    else
      rank = rank + step
    end
  end
end
return { 'OK', reading(K, line, now), users, digits(last), first, sampled }
