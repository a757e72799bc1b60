/**
 * `npm run crash:steps -- --rounds N [--seed S] [--store sqlite|postgres]`: kills a host with SIGKILL at random moments, N times. Meanwhile a durable
 * task of ten steps works, sleeps, asks, waits for an event, and waits for a task that it has launched. When it has ended, another one follows.
 *
 * At the end it compares what was done with what the runs received. A step whose end was stored may not be done again. All runs must receive the same
 * results. Each result must be delivered once. No row of a step may be left in the store.
 */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createRandom } from '../../bench/soak/random.js'
import { startPostgres } from '../postgres-server.js'
import { SERVER_VARIABLE } from './crash-store.js'
import { judgeSteps } from './steps-judge.js'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10' },
    seed: { type: 'string', default: '20261128' },
    store: { type: 'string', default: 'sqlite' },
  },
})
const server = values.store === 'postgres' ? await startPostgres() : undefined
if (server !== undefined) process.env[SERVER_VARIABLE] = server.url
const random = createRandom(Number(values.seed))
const hostFile = fileURLToPath(new URL('steps-host.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-crash-steps-'))
const rounds = Number(values.rounds)

/** How long a host may take to end by itself, in ms. A task that hangs makes it longer, which is a fault. */
const MAX_LIFE_MS = 120_000

/** Runs a host. @param kill when to kill it; undefined if it may finish */
function runHost(
  tasks: number,
  kill?: { readonly after: 'starting' | 'ready'; readonly ms: number },
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = fork(hostFile, [folder, String(tasks)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    const limit = setTimeout(() => child.kill('SIGKILL'), MAX_LIFE_MS)
    let errors = ''
    let isKilled = false
    child.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    child.on('message', (message) => {
      if (message !== kill?.after) return
      setTimeout(() => (isKilled = child.kill('SIGKILL')), kill.ms)
    })
    child.once('exit', (code, signal) => {
      clearTimeout(limit)
      if (code === 0 || isKilled) resolve(isKilled)
      else reject(new Error(`the host ended with ${code ?? signal}: ${errors}`))
    })
  })
}

let kills = 0
for (let life = 0; life < rounds; life += 1) {
  const kill = random.chance(0.2)
    ? ({ after: 'starting', ms: random.below(60) } as const)
    : ({ after: 'ready', ms: random.below(120) } as const)
  // The host has more tasks to run than can end before it is killed.
  if (await runHost(1_000_000, kill)) kills += 1
}
await runHost(1)
const { tasks, givenUp, runs, done, again, faults } = judgeSteps(folder)
console.log(`steps: store ${values.store}, rounds ${rounds}, seed ${values.seed}`)
console.log(
  `  kills ${kills}, tasks ${tasks} (${givenUp} given up), runs ${runs}, steps done ${done} (${again} again, before they were stored)`,
)
console.log(`  faults ${faults.length}`)
if (faults.length === 0) rmSync(folder, { recursive: true })
else {
  process.exitCode = 1
  console.log(JSON.stringify({ folder, faults: faults.slice(0, 20) }, undefined, 2))
}
await server?.close()
