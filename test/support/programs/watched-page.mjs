// A page with background tasks and an inspector. The test calls the functions in `globalThis.page`, and decides when each task ends.
import { createAgentTasks, processRunner } from 'agent-tasks'
import { createInspector } from 'agent-tasks/inspect'

const uncaught = []
globalThis.addEventListener('error', ({ message }) => uncaught.push(message))
globalThis.addEventListener('unhandledrejection', ({ reason }) => uncaught.push(String(reason)))

const reported = []
const turns = []
const gates = new Map()
let inspector
let tasks

const page = {
  start(url) {
    inspector = createInspector({ url, onError: (error, source) => reported.push(`${source}: ${error.message}`) })
    tasks = createAgentTasks({
      inspect: inspector,
      isAgentBusy: () => false,
      triggerAgentTurn: (text) => void turns.push(text),
    })
  },
  launch(id) {
    const { promise, resolve } = openGate()
    gates.set(id, resolve)
    const input = { id, subagentName: 'helper', goalPrompt: `PROMPT of ${id}` }
    tasks.getAsyncTaskManager().launch(input, async ({ goal }, { append }) => {
      append('PRINTED')
      await promise
      return { final_message: `OUTPUT for ${goal}` }
    })
  },
  finish: (id) => gates.get(id)(),
  async ended() {
    const manager = tasks.getAsyncTaskManager()
    await manager.onIdle()
    return manager.getAllTasks().map(({ id, status, output }) => `${id} ${status}: ${output?.final_message}`)
  },
  async close() {
    await tasks.dispose()
    await inspector.close({ timeoutMs: 5000 })
    return page.state()
  },
  state: () => ({ stats: inspector.stats, turns, reported, uncaught }),
  startProgram() {
    try {
      processRunner({ command: 'ls', killSignal: 'SIGINT' })
    } catch ({ name, code, message }) {
      return { name, code, message }
    }
  },
}
globalThis.page = page

const button = globalThis.document.createElement('button')
button.textContent = 'Watch'
button.addEventListener('click', () => page.start(new globalThis.URL('viewer', button.dataset.origin).href))
globalThis.document.body.append(button)

function openGate() {
  let resolve
  const promise = new Promise((given) => (resolve = given))
  return { promise, resolve }
}
