-- Purpose: the claims that have outlived their time, by the clock that gave it to them. Changes nothing.
-- KEYS[1] claims     user -> claimUntil ms
-- KEYS[2] holds      user -> hold
-- ARGV: none
-- Returns: {user, attempt, claimUntil ms, ...} of up to 200 people, oldest first
local K = { claims = KEYS[1], holds = KEYS[2] }
local MOST = 200

local claims = {}
for _, user in ipairs(redis.call('ZRANGEBYSCORE', K.claims, '-inf', digits(clock()), 'LIMIT', 0, MOST)) do
  local hold = read_hold(K, user)
  if hold and hold.untilms then -- else somebody else wrote it
    claims[#claims + 1] = user
    claims[#claims + 1] = hold.attempt
    claims[#claims + 1] = hold.untilms
  end
end
return claims
