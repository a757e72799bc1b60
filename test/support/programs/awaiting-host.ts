/**
 * A host whose module waits for the result of a task, and that disposes on signals. It writes `ready` when its task runs. Argument: `await`, `wrap`
 * (rejects with an error whose cause is that of the result), `reject` (also leaves a rejection of its own unhandled) or `listen` (does that, and
 * listens to uncaught exceptions).
 */
import { createAgentTasks, disposeOnSignals } from '../../../src/index.js'

const mode = process.argv[2]
const tasks = createAgentTasks({
  subagents: {
    waits: (_request, { signal }) =>
      new Promise<string>((_, reject) => {
        signal.addEventListener('abort', () => {
          if (mode === 'reject' || mode === 'listen') void Promise.reject(new Error('error of the host'))
          // Node raises unhandled rejections after the present microtasks, so the disposal has to outlast these.
          setImmediate(() => reject(new Error('stopped')))
        })
        // Keeps the process alive.
        setInterval(() => undefined, 1000)
        console.log('ready')
      }),
  },
})
disposeOnSignals(tasks)
if (mode === 'listen') process.on('uncaughtException', ({ message }) => console.log(`heard: ${message}`))
const { result } = tasks.launch('waits', 'for the signal')
await (mode === 'wrap' ? result.catch((cause: unknown) => Promise.reject(new Error('no result', { cause }))) : result)
