-- Makes an instance one of a node, unless a later connection of it was. `force` is 1 to take it from another node. What follows are its fields and values.
-- Returns 1, or 0 and the node that has it.
-- include: cluster.lua
local inst, node, epoch, force, at = unpack(ARGV, 1, 5)
local fields = 6
local key = own..'inst:'..inst
local holder, latest = unpack(redis.call('HMGET', key, 'node', 'epoch'))
if latest and tonumber(latest) > tonumber(epoch) then return {0, holder or ''} end
if holder and holder ~= '' and holder ~= node and force ~= '1' and redis.call('EXISTS', own..'node:'..holder) == 1 then return {0, holder} end
redis.call('HSET', key, 'node', node, 'connectedAt', at, 'epoch', epoch)
redis.call('HDEL', key, 'lostAt', 'registeredAt')
redis.call('SREM', own..'waiting', inst)
for i = fields, #ARGV, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
redis.call('ZADD', own..'instances', 'NX', redis.call('INCR', own..'serial'), inst)
announce('t', 'instance', 'inst', inst, 'node', node)
return {1, ''}
