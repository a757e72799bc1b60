/**
 * A host with a store. In its first life it launches tasks, and kills itself when the agent has read the result of one of them, before it
 * can say so. In its second life it takes over what the first one left. Its arguments: a folder, and the time at which the demo started.
 */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createAgentTasks, disposeOnSignals, processRunner } from 'agent-tasks'
import { sqliteStore } from 'agent-tasks/store'
import { createAgent } from './agent.js'
import { readLines, type TranscriptLine } from './crash.js'
import { createDisplay } from './display.js'
import { lastLine, program, readProgress, subagents } from './subagents.js'

const [folder = '', startedAt = '0'] = process.argv.slice(2)
const transcript = join(folder, 'transcript')
const launches = join(folder, 'launches')
const append = (file: string, line: object): void => appendFileSync(file, `${JSON.stringify(line)}\n`)
const isFirstLife = readLines(launches).length === 0

const countPrimes = {
  command: process.execPath,
  args: [program('count-primes'), '{goal}'],
  progress: readProgress,
  parse: lastLine,
}
const tasks = createAgentTasks({
  store: sqliteStore(join(folder, 'tasks.db')),
  wasDelivered: (id) => readLines<TranscriptLine>(transcript).some(({ deliveryId }) => deliveryId === id),
  subagents: {
    git: subagents['git'] ?? (() => ({})),
    survivor: processRunner({ ...countPrimes, survivesHost: true }),
    repeated: { run: processRunner(countPrimes), retry: { attempts: 2, on: ['interrupted'] } },
    thinker: () => pause(10_000, {}),
    note: () => pause(1000, { final_message: 'the host dies when this has been read' }),
  },
})
disposeOnSignals(tasks)
const manager = tasks.getAsyncTaskManager()
const display = createDisplay(manager, Number(startedAt))

const agent = createAgent({
  onAccepted: () => undefined,
  onResults: (_text, taskIds, deliveryId) => {
    const results = taskIds.map((id) => ({ id, status: manager.getTask(id)?.status ?? 'unknown' }))
    append(transcript, { deliveryId, results })
    display.say(`the agent has read ${taskIds.join(', ')}`)
    if (isFirstLife && taskIds.some((id) => id.startsWith('note-'))) process.kill(process.pid, 'SIGKILL')
    return Promise.resolve()
  },
})

async function launch(name: string, goal: string): Promise<void> {
  const { metadata } = await tasks.tools.task.execute({ subagent_name: name, goal_prompt: goal, async: true })
  append(launches, { id: metadata?.['agentId'] })
}

const { adopted, retried, interrupted } = await tasks.recovered
if (isFirstLife) {
  await launch('git', 'which version is this?')
  await launch('survivor', '3')
  await launch('repeated', '2')
  await launch('thinker', 'think about it')
  await launch('note', 'say when')
} else {
  display.say(`adopted, because its program survived: ${adopted.join(', ')}`)
  display.say(`run again, as its subagent allows: ${retried.join(', ')}`)
  display.say(`failed, because its run ended with the host: ${interrupted.join(', ')}`)
}
tasks.setupAsyncTaskAutoTrigger(agent.busy$, agent.triggerAgentTurn)
await manager.onIdle()
display.close()
await tasks.dispose()
