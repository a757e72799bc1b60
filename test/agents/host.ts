/** A host of its own process, which a case kills. The arguments are an action and settings in JSON; the last line of its output is JSON. */
import { createAgentTasks } from '../../src/index.js'
import { sqliteStore } from '../../src/store/index.js'
import { AGENTS, type Place } from './agents.js'

interface HostSettings {
  readonly program: string
  readonly place: Place
  readonly file: string
  readonly goal: string
}

const [action = '', json = '{}'] = process.argv.slice(2)
const { program, place, file, goal } = JSON.parse(json) as HostSettings
const agent = AGENTS.find((one) => one.program === program)
if (agent === undefined) throw new Error(`unknown agent ${program}`)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

const isDurable = action === 'launch-durable' || action === 'adopt'
const tasks = createAgentTasks({
  store: sqliteStore(file),
  subagents: { agent: agent.runner(place, { access: 'full', isDurable }) },
})

if (action.startsWith('launch')) {
  tasks.launch('agent', goal, { id: 'task' })
} else {
  await tasks.manager.recovered
  const before = await endOf('task')
  if (action === 'adopt') say(before)
  else {
    const next = tasks.continue('task', goal)
    say({ before: before.status, ...(await endOf(next.id)) })
  }
  await tasks.dispose()
}

async function endOf(id: string): Promise<{ status: string; final_message?: string; error?: string }> {
  const { settled } = await tasks.manager.waitFor([id])
  const [record] = settled
  if (record === undefined) return { status: 'unknown' }
  const { status } = record
  if (status === 'completed') return { status, final_message: record.output.final_message ?? '' }
  return { status }
}
