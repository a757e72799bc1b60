-- An instance has lost its connection to a node.
-- Returns 1, or 0 when it has another connection.
-- include: cluster.lua
local inst, node, epoch = unpack(ARGV)
local key = own..'inst:'..inst
local one = redis.call('HMGET', key, 'node', 'epoch')
if one[1] ~= node or one[2] ~= epoch then return 0 end
setLost(inst)
return 1
