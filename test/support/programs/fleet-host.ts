/** A host with a store, for tests that kill it. It launches tasks on workers, and prints how they end. Each line of its output is JSON. */
import { bullmqRunner } from 'agent-tasks/bullmq'
import { AsyncTaskManager } from 'agent-tasks'
import { sqliteStore } from 'agent-tasks/store'

const [url = '', file = '', lockMs = '3000', ...goals] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

const run = bullmqRunner({ connection: url, queue: 'research', lockMs: Number(lockMs), log: (log) => say({ log }) })
const manager = new AsyncTaskManager({ store: sqliteStore(file), maxAsyncTasks: -1, findRunner: () => run })
say({ recovered: await manager.recovered })
manager.onTaskCompleted(({ id }) => say({ completed: id }))
goals.forEach((goalPrompt, at) => manager.launch({ id: `task-${at}`, subagentName: 'research', goalPrompt }, run))
// Before this, a crash of this process may lose the tasks.
await manager.stored()
say({ launched: goals.length })
