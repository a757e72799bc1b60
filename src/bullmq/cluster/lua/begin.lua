-- Starts a task that was fetched. Nothing of it has run when this does not return `run`.
-- Returns `run`; `joining` when its submission is not confirmed yet; `stale` when the instance has another connection; `unlocked` when the lock of its job is
-- not the token's; `begun` when it was started under another token; `over` or `gone` when there is nothing to start.
-- include: ../../lua/bullmq-layout.lua, cluster.lua
local id, queue, token, epoch, at = unpack(ARGV)
local task = redis.call('HMGET', own..'task:'..id, 'status', 'instanceId', 'owner')
if not task[1] then return 'gone' end
if isOver(task[1]) then return 'over' end
if redis.call('ZSCORE', own..'joining', id) then return 'joining' end
if redis.call('HGET', own..'inst:'..task[2], 'epoch') ~= epoch then return 'stale' end
if bull.holder(queue, id) ~= token then return 'unlocked' end
if task[1] ~= 'queued' then return task[3] == token and 'run' or 'begun' end
redis.call('HSET', own..'task:'..id, 'status', 'running', 'startedAt', at, 'owner', token)
return 'run'
