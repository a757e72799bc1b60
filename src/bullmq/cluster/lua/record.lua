-- Writes events of a running task, and what they change of its record. What follows are the fields and their values (`fieldParts` in all), the places of
-- reports to drop (`drops`), and then the place and the message of each event.
-- Returns `ok`; `over` when the task has ended; `stale` when the lock of its job is not the token's.
-- include: ../../lua/bullmq-layout.lua, cluster.lua
local id, queue, token, isEnd, logMs, maxRetained, bytes, fieldParts, drops = unpack(ARGV, 1, 9)
local fields = 10
local dropped = fields + fieldParts
local events = dropped + drops
local task = redis.call('HMGET', own..'task:'..id, 'status', 'instanceId', 'seq')
if not task[1] then return 'over' end
local isMine = bull.holder(queue, id) == token
-- A connection that was lost sends again what it got no answer to.
if isOver(task[1]) then return isMine and isEnd == '1' and tonumber(task[3]) >= tonumber(ARGV[#ARGV - 1]) and 'ok' or 'over' end
if not isMine then return 'stale' end
for i = fields, dropped - 1, 2 do redis.call('HSET', own..'task:'..id, ARGV[i], ARGV[i + 1]) end
for i = dropped, events - 1 do redis.call('XDEL', own..'log:'..id, ARGV[i]..'-0') end
local last = tonumber(task[3])
for i = events, #ARGV, 2 do
  local seq = tonumber(ARGV[i])
  if seq > last then append(id, task[2], ARGV[i], ARGV[i + 1]); last = seq end
end
redis.call('HSET', own..'task:'..id, 'seq', last)
if tonumber(bytes) > 0 then
  redis.call('HINCRBY', own..'task:'..id, 'bytes', bytes)
  redis.call('INCRBY', own..'bytes', bytes)
end
if isEnd == '1' then keepEnd(id, task[2], logMs, maxRetained) end
return 'ok'
