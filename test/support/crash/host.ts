/**
 * The host of `npm run crash`: it takes over what an earlier one left, launches tasks, and delivers their results into a transcript, until it
 * is killed. Its arguments: the folder, a seed, and `finish` for the last one, which launches nothing and ends when nothing is owed.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AsyncTaskManager, processRunner, type Runner } from 'agent-tasks'
import { sqliteStore } from 'agent-tasks/store'
import { createRandom } from '../../bench/soak/random.js'

const [folder = '', seed = '0', mode] = process.argv.slice(2)
const isLast = mode === 'finish'
const random = createRandom(Number(seed))

const transcript = join(folder, 'transcript')
const launches = join(folder, 'launches')
const linesOf = (file: string): string[] =>
  existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []

const script = (seconds: number): string[] => ['-c', `echo begin; sleep ${seconds}; echo {goal}`]
const runners: Readonly<Record<string, Runner>> = {
  function: ({ goalPrompt }) =>
    new Promise((resolve) => setTimeout(() => resolve({ final_message: goalPrompt }), random.below(80))),
  program: processRunner({ command: 'sh', args: script(0.05) }),
  survivor: processRunner({ command: 'sh', args: script(0.3), survivesHost: true }),
}

const manager = new AsyncTaskManager({
  store: sqliteStore(join(folder, 'tasks.db')),
  maxAsyncTasks: -1,
  findRunner: (name) => runners[name],
  wasDelivered: (deliveryId) => linesOf(transcript).some((line) => line.startsWith(`${deliveryId} `)),
})

/** A message is accepted when its line, with its id and its tasks, is in the transcript: one write, as a host appends to its own. */
function deliver(): void {
  const lease = manager.lease()
  if (lease === undefined) return
  const tasks = lease.tasks.map(({ id, status, isRepeat }) => `${id}=${status}${isRepeat === true ? '=repeat' : ''}`)
  appendFileSync(transcript, `${lease.deliveryId} ${tasks.join(' ')}\n`)
  lease.acknowledge()
}

function launch(): void {
  const names = Object.keys(runners)
  const name = names[random.below(names.length)] ?? 'function'
  const runner = runners[name]
  if (runner === undefined) return
  const { id } = manager.launch({ subagentName: name, goalPrompt: `goal ${random.below(1000)}` }, runner)
  // Only what was launched for sure is counted: the process may die before this line is written.
  appendFileSync(launches, `${id}\n`)
}

await manager.recovered
manager.settled$.subscribe(() => setImmediate(deliver))
deliver()
process.send?.('ready')
if (isLast) {
  await manager.onIdle()
  await manager.dispose()
  process.exit()
}
setInterval(launch, 5)
