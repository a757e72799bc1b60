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
/** Works for a second, and says so. */
const work = async (what: string, signal: AbortSignal): Promise<string> => {
  display.say(`builder: ${what}`)
  await pause(1000, undefined, { signal })
  return `${what}: done`
}

const tasks = createAgentTasks({
  maxAsyncTasks: 10,
  store: sqliteStore(join(folder, 'tasks.db')),
  wasDelivered: (id) => readLines<TranscriptLine>(transcript).some(({ deliveryId }) => deliveryId === id),
  subagents: {
    git: subagents['git'] ?? (() => ({})),
    survivor: processRunner({ ...countPrimes, survivesHost: true }),
    repeated: { run: processRunner(countPrimes), retry: { attempts: 2, on: ['interrupted'] } },
    thinker: () => pause(10_000, {}),
    builder: {
      durable: true,
      run: async (_input, { step, signal }) => {
        const done = [
          await step('compile', () => work('compile', signal)),
          await step('test', () => work('test', signal)),
        ]
        done.push(await step('pack', () => work('pack', signal)))
        return done.join(', ')
      },
    },
    deployer: {
      durable: true,
      run: async (_input, { ask }) => {
        const { content } = await ask('Deploy to production?')
        return `The answer was: ${String(content?.['answer'])}`
      },
    },
    writer: (_input, { previous }) => (previous === undefined ? 'A draft.' : `A second draft of ${previous.goal}.`),
    note: () => pause(2300, { final_message: 'the host dies when this has been read' }),
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
  const { metadata, error, llmContent } = await tasks.tools.task.execute({
    subagent_name: name,
    goal_prompt: goal,
    async: true,
  })
  if (error !== undefined) throw new Error(llmContent)
  append(launches, { id: metadata?.['agentId'] })
}

const { adopted, retried, interrupted } = await tasks.recovered
if (isFirstLife) {
  await launch('git', 'which version is this?')
  await launch('survivor', '5')
  await launch('repeated', '4')
  await launch('thinker', 'think about it')
  await launch('builder', 'build the package')
  await launch('deployer', 'deploy the package')
  await launch('writer', 'the announcement')
  await launch('note', 'say when')
} else {
  display.say(`adopted, because its program survived: ${adopted.join(', ')}`)
  display.say(`run again, as its subagent allows: ${retried.join(', ')}`)
  display.say(`failed, because its run ended with the host: ${interrupted.join(', ')}`)
  const all = manager.getAllTasks()
  const deployer = all.find(({ questions }) => questions !== undefined)
  const [question] = deployer?.questions ?? []
  if (deployer === undefined || question === undefined) throw new Error('The question of the deployer is lost.')
  display.say(`${deployer.id} still asks: ${question.message} The user answers yes`)
  manager.answerTask(deployer.id, question.id, 'yes')
  const writer = all.find(({ subagentName }) => subagentName === 'writer')
  if (writer === undefined) throw new Error('The result of the writer is lost.')
  const { id } = tasks.continue(writer.id, 'shorter, please')
  append(launches, { id })
  display.say(`${writer.id} is continued by ${id}`)
}
tasks.setupAsyncTaskAutoTrigger(agent.busy$, agent.triggerAgentTurn)
await manager.onIdle()
display.close()
await tasks.dispose()
