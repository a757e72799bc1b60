/**
 * A host whose module waits for the result of a task, and that disposes on signals. It writes `ready` when its task runs. Its argument:
 *
 * - `await` waits for the result;
 * - `wrap` rejects with an error whose cause is the error of the result;
 * - `reject` also leaves another rejection unhandled;
 * - `listen` does the same, and listens to uncaught exceptions.
 */
import { createAgentTasks, disposeOnSignals } from 'agent-tasks'

const mode = process.argv[2]
const tasks = createAgentTasks({
  subagents: {
    waits: (_request, { signal }) =>
      new Promise<string>((_, reject) => {
        signal.addEventListener('abort', () => {
          if (mode === 'reject' || mode === 'listen') void Promise.reject(new Error('error of the host'))
          // Node raises an unhandled rejection after the present microtasks, so the disposal must take longer than they do.
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
