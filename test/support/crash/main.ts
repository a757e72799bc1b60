/**
 * `npm run crash -- --rounds N [--seed S]`: kills a real host with SIGKILL at random moments, N times, each time with the same store. At the end it
 * compares what was launched with the transcript: nothing may be lost, nothing may be in it twice, and no program may be left.
 */
import { fork } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createRandom } from '../../bench/soak/random.js'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '25' }, seed: { type: 'string', default: '20261122' } },
})
const rounds = Number(values.rounds)
const seed = Number(values.seed)
const random = createRandom(seed)
const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-crash-'))
const hostFile = fileURLToPath(new URL('host.ts', import.meta.url))

/** Runs a host; kills it `killAfterMs` after it is ready, or lets it finish. */
function runHost(hostSeed: number, killAfterMs: number | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const args = [folder, String(hostSeed), ...(killAfterMs === undefined ? ['finish'] : [])]
    const child = fork(hostFile, args, {
      env: { ...process.env, [MARK]: folder },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    let errors = ''
    child.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    child.once('message', () => {
      if (killAfterMs !== undefined) setTimeout(() => child.kill('SIGKILL'), killAfterMs)
    })
    child.once('exit', (code, signal) => {
      const isExpected = killAfterMs === undefined ? code === 0 : signal === 'SIGKILL'
      if (isExpected) resolve()
      else reject(new Error(`the host ended with ${code ?? signal}: ${errors}`))
    })
  })
}

/** In the environment of every process that a host starts. */
const MARK = 'AGENT_TASKS_CRASH_TEST'

/** The processes that the hosts have left. */
function orphans(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`${MARK}=${folder}\0`)
      } catch {
        return false
      }
    })
    .map(Number)
}

const linesOf = (name: string): string[] => readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean)

for (let round = 0; round < rounds; round += 1) await runHost(seed + round, random.below(250))
await runHost(seed + rounds, undefined)

const launched = linesOf('launches')
const messages = linesOf('transcript').map((line) => line.split(' '))
const told = messages.flatMap(([, ...tasks]) => tasks.map((task) => task.split('=')))
const times = new Map<string, number>()
for (const [id = ''] of told) times.set(id, (times.get(id) ?? 0) + 1)
const lost = launched.filter((id) => !times.has(id))
const twice = [...times].filter(([, count]) => count > 1).map(([id]) => id)
const count = (status: string): number => told.filter((task) => task[1] === status).length
const left = orphans()

console.log(`rounds ${rounds}, seed ${seed}`)
console.log(
  `launched ${launched.length}, messages ${messages.length}, completed ${count('completed')}, failed ${count('failed')}`,
)
console.log(`lost ${lost.length}, told twice ${twice.length}, orphans ${left.length}`)
for (const pid of left) process.kill(pid, 'SIGKILL')
if (lost.length + twice.length + left.length > 0) {
  console.log(JSON.stringify({ folder, lost, twice, left }))
  process.exitCode = 1
} else {
  rmSync(folder, { recursive: true })
}
