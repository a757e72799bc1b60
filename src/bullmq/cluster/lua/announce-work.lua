-- A job has left the queue of an instance by other means than its end: there may be work.
-- include: cluster.lua
local inst = unpack(ARGV)
announce('t', 'work', 'inst', inst)
return 1
