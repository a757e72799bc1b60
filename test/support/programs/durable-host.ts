/** A host with a store, for tests that kill it. It launches a program, or prints what it has taken over. Each line of its output is JSON. */
import { AsyncTaskManager, processRunner, type AgentTasksError } from 'agent-tasks'
import { sqliteStore } from 'agent-tasks/store'

const [file = '', action = '', script = ''] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)
const survives = action !== 'launch-guarded'
/** A test may set shorter times. */
const { STORE_TEST_TIMEOUT = '60000', STORE_TEST_GRACE = '5000' } = process.env
const runner = processRunner({
  command: 'sh',
  args: ['-c', script],
  graceMs: Number(STORE_TEST_GRACE),
  ...(survives && { survivesHost: true }),
})

function open(): AsyncTaskManager | undefined {
  try {
    return new AsyncTaskManager({ store: sqliteStore(file), findRunner: () => runner, onError: () => undefined })
  } catch (error) {
    const { code, pid } = error as AgentTasksError
    say({ refused: code === 'STORE_IN_USE' ? pid : String(error) })
    return undefined
  }
}

const limits = { timeoutMs: Number(STORE_TEST_TIMEOUT), budget: { seconds: 60 } } as const
const manager = open()
if (manager !== undefined && action.startsWith('launch')) {
  const { id } = manager.launch({ id: 'a', subagentName: 'program', goalPrompt: 'the goal', ...limits }, runner)
  manager.onTaskCompleted(({ output }) => say({ completed: output }))
  const timer = setInterval(() => {
    const { text = '' } = manager.readOutput(id) ?? {}
    if (text !== '') {
      say({ text })
      clearInterval(timer)
    }
  }, 20)
} else if (manager !== undefined) {
  say({ recovered: await manager.recovered })
  if (action === 'cancel') manager.cancelTask('a')
  const { settled } = await manager.waitFor(['a'])
  say({ settled: settled.map(({ status, output, error }) => ({ status, output, error })) })
  await manager.dispose()
}
