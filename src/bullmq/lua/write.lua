-- Writes what a run says, in its order, while its worker has the lock of its job. `write` is the number of this write: one that is sent again, since its
-- answer was lost, changes nothing. `host` is the channel of the host that sent the job; an entry of `up` costs `entryBytes` besides its text. What follows
-- are the items: what each is (`output`, `progress`, `set`, `delete`), its name and its text.
-- Returns 1, or 0 when the job is not the token's any more.
-- include: bullmq-layout.lua
local agent, up = unpack(KEYS)
local queue, id, token, lockMs, host, keptSeconds, mostBytes, entryBytes, write = unpack(ARGV, 1, 9)
local items = 10
if not bull.keep(queue, id, token, lockMs) then return 0 end
if redis.call('HGET', agent, 'written') == write then return 1 end
redis.call('HSET', agent, 'written', write)
local bytes = tonumber(redis.call('HGET', agent, 'bytes') or '0')
for i = items, #ARGV, 3 do
  local what, name, text = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if what == 'set' then
    redis.call('HSET', agent, name, text)
  elseif what == 'delete' then
    redis.call('HDEL', agent, name)
  else
    redis.call('XADD', up, '*', what, text)
    bytes = bytes + #text + entryBytes
  end
end
while bytes > tonumber(mostBytes) do
  local oldest = redis.call('XRANGE', up, '-', '+', 'COUNT', 16)
  if #oldest == 0 then break end
  for i = 1, #oldest do
    if bytes > tonumber(mostBytes) then
      redis.call('XDEL', up, oldest[i][1])
      bytes = bytes - #oldest[i][2][2] - entryBytes
    end
  end
end
redis.call('HSET', agent, 'bytes', bytes)
redis.call('EXPIRE', agent, keptSeconds)
redis.call('EXPIRE', up, keptSeconds)
redis.call('PUBLISH', redis.call('HGET', agent, 'host') or host, id)
return 1
