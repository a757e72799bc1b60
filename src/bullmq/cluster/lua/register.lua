-- Registers a worker, which connects later. `secret` is the digest of its secret; at most `most` are registered and not connected, if fewer are connected.
-- Returns `OK`, `IN_USE`, `AWAITED`, or how many are not connected when there is no room.
-- include: cluster.lua
local inst, secret, registration, graceMs, most = unpack(ARGV)
local key = own..'inst:'..inst
local registeredAt = redis.call('HGET', key, 'registeredAt')
if isConnected(inst) then return 'IN_USE' end
if redis.call('ZCARD', own..'live:'..inst) > 0 then return 'AWAITED' end
if registeredAt and registeredAt + graceMs > now() then return 'IN_USE' end
local waiting = redis.call('SCARD', own..'waiting')
if waiting >= math.max(tonumber(most), redis.call('ZCARD', own..'instances') - waiting) then return waiting end
redis.call('HSET', key, 'node', '', 'lostAt', now(), 'registeredAt', now(), 'secret', secret, 'registration', registration, 'kind', 'websocket')
redis.call('SADD', own..'waiting', inst)
redis.call('ZADD', own..'instances', 'NX', redis.call('INCR', own..'serial'), inst)
return 'OK'
