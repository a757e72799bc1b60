#!/usr/bin/env bash
# bullmq 6.7.0 (ioredis 5.11.1, Redis 7.0.15): a worker whose fetch is refused by Redis with an error reply, here READONLY after its server has become a
# replica, fetches again at once. The option `runRetryDelay` (15 s by default) is applied to errors of the connection only, so each refusal is an `error`
# event, and there are hundreds or thousands a second until Redis accepts writes again.
#
# Seen: `error events in 2 s: 4965, READONLY` (the number depends on the machine; the script expects more than 50).
# Exits 1 when that changes. Needs `redis-server` in PATH.
set -euo pipefail
folder=$(mktemp -d)
redis=
trap 'if [ -n "$redis" ]; then kill "$redis" 2> /dev/null || true; wait "$redis" 2> /dev/null || true; fi; rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts bullmq@6.7.0 ioredis@5.11.1
port=$(node -e "const s = require('net').createServer().listen(0, '127.0.0.1', () => { console.log(s.address().port); s.close() })")
redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$folder" --logfile redis.log &
redis=$!
cat > fetch.mjs <<'JS'
import { setTimeout as wait } from 'node:timers/promises'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
const url = `redis://127.0.0.1:${process.argv[2]}`
const admin = new Redis(url, { maxRetriesPerRequest: null })
const queue = new Queue('q', { connection: admin })
await queue.addBulk([1, 2, 3].map((data) => ({ name: 'job', data })))
const connection = new Redis(url, { maxRetriesPerRequest: null })
// The server becomes a replica while the first job runs, as in a failover that keeps connections.
const worker = new Worker('q', () => admin.replicaof('127.0.0.1', 1), { connection })
let count = 0
let code = ''
worker.on('error', ({ message }) => {
  count += 1
  code = /[A-Z]{5,}/.exec(message)?.[0] ?? message
})
await wait(2000)
console.log(`error events in 2 s: ${count}, ${code}`)
process.exit(count > 50 && code === 'READONLY' ? 0 : 1)
JS
node fetch.mjs "$port"
