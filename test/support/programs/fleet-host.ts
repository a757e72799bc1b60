/** A host with a store, for tests that kill it: it launches tasks on workers, and says how they end. Each line of its output is JSON. */
import { bullmqRunner } from '../../../src/bullmq/index.js'
import { AsyncTaskManager } from '../../../src/index.js'
import { sqliteStore } from '../../../src/store/index.js'

const [url = '', file = '', lockMs = '3000', ...goals] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

const run = bullmqRunner({ connection: url, queue: 'research', lockMs: Number(lockMs), log: (log) => say({ log }) })
const manager = new AsyncTaskManager({ store: sqliteStore(file), maxAsyncTasks: -1, findRunner: () => run })
say({ recovered: await manager.recovered })
manager.onTaskCompleted(({ id }) => say({ completed: id }))
goals.forEach((goalPrompt, at) => manager.launch({ id: `task-${at}`, subagentName: 'research', goalPrompt }, run))
// Before that they may be lost with this process.
await manager.stored()
say({ launched: goals.length })
