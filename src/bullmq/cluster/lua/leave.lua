-- A node has ended.
-- include: cluster.lua
local node = unpack(ARGV)
return redis.call('DEL', own..'node:'..node)
