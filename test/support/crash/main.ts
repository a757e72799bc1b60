/**
 * `npm run crash -- --rounds N [--seed S] [--store sqlite|postgres]`: kills a real host with SIGKILL at random moments, N times, also while the host
 * takes over what the last one left. Some hosts end cleanly. Half of the rounds share one store, and their hosts read their transcript after a crash.
 * The other rounds share a second store, and their hosts cannot read it.
 *
 * At the end it compares the launched tasks with the transcripts:
 * - No result may be lost.
 * - No result may be delivered twice. Without a transcript it may be, if it is marked as a possible repeat. But not after a host that delivered it has
 * ended cleanly, and not after the repeat was accepted.
 * - No attempt may run twice, unless a clean end has stopped it.
 * - The history must have each task that has ended once.
 * - No program may be left, and no process of others may be touched.
 */
import { fork } from 'node:child_process'
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createRandom } from '../../bench/soak/random.js'
import { startPostgres } from '../postgres-server.js'
import { SERVER_VARIABLE } from './crash-store.js'
import { judge } from './judge.js'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '25' },
    seed: { type: 'string', default: '20261122' },
    store: { type: 'string', default: 'sqlite' },
  },
})
const server = values.store === 'postgres' ? await startPostgres() : undefined
if (server !== undefined) process.env[SERVER_VARIABLE] = server.url
// Imported late, because the module reads `SERVER_VARIABLE` when it is loaded.
const { startForeigner } = await import('./foreign.js')
const rounds = Number(values.rounds)
const seed = Number(values.seed)
const random = createRandom(seed)
const hostFile = fileURLToPath(new URL('host.ts', import.meta.url))

type Mode = 'transcript' | 'blind'

/**
 * When a host is killed: `ms` after it has begun to take over (`starting`), or has done so (`ready`). With `isClean`, the host is asked to end instead.
 * Undefined if it may finish.
 */
type Kill = { readonly after: 'starting' | 'ready'; readonly ms: number; readonly isClean?: true } | undefined

/** A variable in the environment of every process that a host starts. Its value is the folder. */
const MARK = 'AGENT_TASKS_CRASH_TEST'

/** Runs a host, and kills it as `kill` says. */
function runHost(folder: string, mode: Mode, hostSeed: number, kill: Kill): Promise<void> {
  return new Promise((resolve, reject) => {
    const args = [folder, String(hostSeed), mode, ...(kill === undefined ? ['finish'] : [])]
    const child = fork(hostFile, args, {
      env: { ...process.env, [MARK]: folder },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    let errors = ''
    child.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    child.on('message', (message) => {
      if (message !== kill?.after) return
      setTimeout(() => (kill.isClean === true ? child.send('end') : child.kill('SIGKILL')), kill.ms)
    })
    child.once('exit', (code, signal) => {
      const isExpected = kill === undefined || kill.isClean === true ? code === 0 : signal === 'SIGKILL'
      if (isExpected) resolve()
      else reject(new Error(`the host ended with ${code ?? signal}: ${errors}`))
    })
  })
}

/** How long processes that were killed may take to end, in ms. The processes that the programs leave live longer than that. */
const ENDING_MS = 10_000

/** The pids of the processes that the hosts have left. */
function orphans(folder: string): number[] {
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

/** Returns the processes that are still there after a while, because a process that was killed may take a moment to end. */
async function lastingOrphans(folder: string): Promise<number[]> {
  for (let waited = 0; waited < ENDING_MS && orphans(folder).length > 0; waited += 50) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return orphans(folder)
}

async function runSeries(mode: Mode, lives: number): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-crash-'))
  const foreigners = Array.from({ length: 5 }, startForeigner)
  for (let life = 0; life < lives; life += 1) {
    const kill: Kill = random.chance(0.2)
      ? { after: 'ready', ms: random.below(250), isClean: true }
      : random.chance(0.25)
        ? { after: 'starting', ms: random.below(60) }
        : { after: 'ready', ms: random.below(250) }
    await runHost(folder, mode, seed + life, kill)
    if (!random.chance(0.3)) continue
    for (const id of await random.pick(foreigners).plant(folder)) appendFileSync(join(folder, 'launches'), `${id}\n`)
  }
  await runHost(folder, mode, seed + lives, undefined)

  const { figures, faults } = judge(folder, mode === 'blind')
  const left = await lastingOrphans(folder)
  const touched = foreigners.filter(({ isAlive }) => !isAlive()).length
  for (const { end } of foreigners) end()
  for (const pid of left) process.kill(pid, 'SIGKILL')
  const { launches, ends, deliveries, cancelled, adopted, retried, interrupted } = figures
  console.log(`${mode}: store ${values.store}, rounds ${lives}, seed ${seed}`)
  console.log(`  launches ${launches}, ends ${ends} (cancelled ${cancelled}), deliveries ${deliveries}`)
  console.log(`  clean ends ${figures.cleanEnds}, told again although confirmed ${faults.unconfirmed.length}`)
  console.log(`  adopted ${adopted}, retried ${retried}, interrupted ${interrupted}`)
  console.log(
    `  lost ${faults.lost.length}, told twice ${figures.toldTwice}, possible repeats ${figures.possibleRepeats} (unmarked ${faults.unmarked.length})`,
  )
  console.log(
    `  told although cancelled ${faults.toldCancelled.length}, attempts miscounted ${faults.miscounted.length}, not in the history ${faults.notInHistory.length}, orphans ${left.length}, foreign processes touched ${touched}`,
  )
  const isClean = Object.values(faults).flat().length + left.length + touched === 0
  if (isClean) rmSync(folder, { recursive: true })
  else console.log(JSON.stringify({ folder, ...faults, left }))
  return isClean
}

const blindRounds = Math.floor(rounds / 2)
const areClean = [await runSeries('transcript', rounds - blindRounds), await runSeries('blind', blindRounds)]
if (areClean.includes(false)) process.exitCode = 1
await server?.close()
