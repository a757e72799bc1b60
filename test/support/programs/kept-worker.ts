/**
 * A remote worker with a `secretFile` and the tools `note` and `hold`. A call of `hold` never ends. The worker prints what happens, as lines of JSON.
 * Its arguments: the URL of the server, and the file. Without a file it has no `secretFile`.
 */
import { connectInstance, instanceTool } from 'agent-tasks/client'

const say = (line: object): void => console.log(JSON.stringify(line))

const [url = '', secretFile] = process.argv.slice(2)
const note = instanceTool({ name: 'note', execute: (_input, { taskId }) => say({ noted: taskId }) })
const hold = instanceTool({
  name: 'hold',
  execute: (_input, { taskId }) => {
    say({ held: taskId })
    return new Promise(() => undefined)
  },
})
try {
  const worker = await connectInstance(url, { id: 'w', tools: [note, hold], ...(secretFile && { secretFile }) })
  say({ connected: worker.instanceId })
} catch (error) {
  const { code, message } = error as Error & { code?: string }
  say({ refused: code, message })
}
