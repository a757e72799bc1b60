#!/usr/bin/env bash
# bullmq 6.7.0 (ioredis 5.11.1, Redis 7.0.15): when Redis refuses the command that moves a job to `completed` with an error reply, here READONLY in a moment
# in which its server is a replica, the worker handles that error as if the processor had thrown it. The job, whose processor has returned a value, becomes
# `failed` with the text of the refusal; the value is lost, and a job with attempts left is processed again.
#
# Seen: `processed: 2; state: failed; reason: READONLY …; value: null; failed events: 2; completed events: 0` for a job with two attempts.
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
cat > completed.mjs <<'JS'
import { setTimeout as wait } from 'node:timers/promises'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
const url = `redis://127.0.0.1:${process.argv[2]}`
const queue = new Queue('q', { connection: new Redis(url, { maxRetriesPerRequest: null }) })
const connection = new Redis(url, { maxRetriesPerRequest: null })
const events = { processed: 0, completed: 0, failed: 0 }
const processor = async () => {
  events.processed += 1
  // From here to the next `error` event the server is a replica. Both commands use the worker's connection, so their order is certain.
  await connection.replicaof('127.0.0.1', 1)
  return 'done'
}
const worker = new Worker('q', processor, { connection })
worker.on('error', () => void connection.replicaof('NO', 'ONE'))
worker.on('completed', () => (events.completed += 1))
worker.on('failed', () => (events.failed += 1))
const { id } = await queue.add('job', {}, { attempts: 2 })
for (let tries = 0; tries < 100 && events.failed < 2 && events.completed === 0; tries += 1) await wait(50)
const job = await queue.getJob(id)
const state = await job.getState()
const { failedReason = '', returnvalue } = job
console.log(
  `processed: ${events.processed}; state: ${state}; reason: ${failedReason.slice(0, 60)}; value: ${returnvalue}; ` +
    `failed events: ${events.failed}; completed events: ${events.completed}`,
)
const isSame = events.processed === 2 && state === 'failed' && failedReason.includes('READONLY') && returnvalue === null
process.exit(isSame ? 0 : 1)
JS
node completed.mjs "$port"
