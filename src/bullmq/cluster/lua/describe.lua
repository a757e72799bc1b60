-- Stores the tools of an instance, under the epoch of its connection.
-- include: cluster.lua
local inst, epoch, tools = unpack(ARGV)
if redis.call('HGET', own..'inst:'..inst, 'epoch') ~= epoch then return 0 end
return redis.call('HSET', own..'inst:'..inst, 'tools', tools)
