/**
 * The host of `npm run crash`. It takes over what an earlier host left, launches and cancels tasks, and delivers their results into a transcript. It
 * runs until it is killed, or until its parent asks it to end cleanly.
 *
 * Its arguments: the folder, a seed, `transcript` or `blind` (whether it may read the transcript after a crash), and `finish` for the last host. The
 * last host launches nothing, and ends when no result is owed.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AsyncTaskManager, functionRunner, processRunner, type OutputRunner, type RunnerDefinition } from 'agent-tasks'
import { openStore } from 'agent-tasks/store'
import { createRandom } from '../../bench/soak/random.js'
import { crashStore, isOnServer } from './crash-store.js'
import { BEGIN, END, MAX_ATTEMPTS } from './judge.js'

const [folder = '', seed = '0', mode, last] = process.argv.slice(2)
const isLast = last === 'finish'
const random = createRandom(Number(seed))

const transcript = join(folder, 'transcript')
const note = (file: string, line: string): void => appendFileSync(join(folder, file), `${line}\n`)

/** The program leaves a child process that sleeps for long. If the host does not stop that process, the test finds it. */
const script = (seconds: number): string[] => [
  '-c',
  `sleep 60 > /dev/null 2>&1 & echo begin; sleep ${seconds}; echo {goal}`,
]
const wait = functionRunner(
  ({ goal }, { signal }) =>
    new Promise((resolve) => {
      const end = (): void => resolve({ final_message: goal })
      setTimeout(end, random.below(80))
      signal.addEventListener('abort', end)
    }),
)
/** Records each attempt of a run when it begins, with the seed of the host. */
const noted = (runner: OutputRunner): OutputRunner => ({
  ...runner,
  run: (input, context) => {
    note('runs', `${input.id} ${context.attempt} ${seed}`)
    return runner.run(input, context)
  },
})
const repeated = (runner: OutputRunner): RunnerDefinition => ({
  run: noted(runner),
  retry: { attempts: MAX_ATTEMPTS, on: ['interrupted'] },
})
const program = processRunner({ command: 'sh', args: script(0.05) })
const subagents: Readonly<Record<string, RunnerDefinition>> = {
  function: noted(wait),
  program: noted(program),
  // This program needs files on its machine, which a store on a server does not have.
  ...(!isOnServer && { survivor: processRunner({ command: 'sh', args: script(0.3), survivesHost: true }) }),
  repeatedFunction: repeated(wait),
  repeatedProgram: repeated(program),
}

note('transcript', BEGIN)
process.send?.('starting')
const manager = new AsyncTaskManager({
  store: await openStore(crashStore(folder)),
  maxAsyncTasks: -1,
  graceMs: 200,
  findRunner: (name) => subagents[name],
  ...(mode === 'transcript' && { wasDelivered: isInTranscript }),
})

function isInTranscript(deliveryId: string): boolean {
  const lines = existsSync(transcript) ? readFileSync(transcript, 'utf8').split('\n') : []
  return lines.some((line) => line.startsWith(`${deliveryId} `))
}

/**
 * Delivers the owed results in one message. A message is accepted when its line is in the transcript, with its id and its tasks. The whole line is one
 * write, as a host appends to its own transcript.
 */
async function deliver(): Promise<void> {
  const lease = manager.lease()
  if (lease === undefined) return
  try {
    await lease.stored
  } catch {
    // The manager was disposed meanwhile. The next host delivers the results.
    return
  }
  const tasks = lease.tasks.map(({ id, status, isRepeat }) => `${id}=${status}${isRepeat === true ? '=repeat' : ''}`)
  note('transcript', `${lease.deliveryId} ${tasks.join(' ')}`)
  lease.acknowledge()
  await manager.stored()
  note('accepted', lease.deliveryId)
}

async function launch(): Promise<void> {
  const name = random.pick(Object.keys(subagents))
  const { run } = subagents[name] ?? {}
  if (run === undefined) return
  const { id } = manager.launch({ subagentName: name, goalPrompt: `goal ${random.below(1000)}` }, run)
  // A task that is not stored yet may be lost in a crash.
  await manager.stored()
  note('launches', id)
  if (random.chance(0.1)) setTimeout(() => void cancel(id), random.below(100))
}

/** Cancels a task. After the line `asked`, the task may be cancelled. After the line `done`, it is certainly cancelled. */
async function cancel(id: string): Promise<void> {
  note('cancellations', `asked ${id}`)
  if (!manager.cancelTask(id)) return
  await manager.stored()
  note('cancellations', `done ${id}`)
}

async function noteHistory(): Promise<void> {
  let before: string | undefined
  do {
    const page = await manager.history({ limit: 1000, ...(before !== undefined && { before }) })
    for (const { id } of page.tasks) note('history', id)
    before = page.next
  } while (before !== undefined)
}

const { adopted, retried, interrupted } = await manager.recovered
note('recoveries', `${adopted.length} ${retried.length} ${interrupted.length}`)
manager.settled$.subscribe(() => setImmediate(() => void deliver()))
void deliver()
process.send?.('ready')
if (isLast) {
  await manager.onIdle()
  await noteHistory()
  await manager.dispose()
  process.exit()
}
const launching = setInterval(() => void launch(), 5)
process.once('message', () => {
  clearInterval(launching)
  note('stopped', seed)
  void manager.dispose().then(() => {
    note('transcript', END)
    process.exit()
  })
})
