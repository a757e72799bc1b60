/**
 * The host of `npm run stops`. The first process of a store launches tasks of all kinds until it is stopped. The next one takes over, also until it is
 * stopped, and the last one ends when no result is owed.
 *
 * Its arguments: the folder, a seed, its number (`life`), `stopped` or `last`, and a fault to plant.
 */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  createAgentTasks,
  disposeOnSignals,
  processRunner,
  type OutputRunner,
  type RunContext,
  type RunFunction,
  type RunnerDefinition,
} from 'agent-tasks'
import { sqliteStore } from 'agent-tasks/store'
import { createRandom } from '../../bench/soak/random.js'
import { KINDS, type KindName } from './kinds.js'
import { note, notesOf } from './notes.js'
import { createTurns } from '../../../src/parts.js'

const [folder = '', seed = '0', number = '0', role, fault] = process.argv.slice(2)
const life = Number(number)
const random = createRandom(Number(seed) + life)

/** The first process launches this many tasks at once and one after another later, up to this many in all. */
const LAUNCHES = { first: 16, all: 34, everyMs: 25 } as const

/** The file to which each program adds the token of its run. */
const TOKENS = join(folder, 'tokens')

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Works for a while. @param aborted called when the signal aborts before */
function work(signal: AbortSignal, aborted: (resolve: () => void, reject: (reason: Error) => void) => void) {
  return new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, 20 + random.below(300))
    const onAbort = (): void =>
      aborted(
        () => {
          clearTimeout(timer)
          resolve()
        },
        (reason) => {
          clearTimeout(timer)
          reject(reason)
        },
      )
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}

const rejects: RunFunction = async ({ goal }, { signal }) => {
  await work(signal, (_resolve, reject) => reject(signal.reason as Error))
  return goal
}
const asks: RunFunction = async ({ goal }, { ask }) => {
  await ask('Go on?')
  return goal
}

/** The steps of a durable run. The function of a step returns within its grace. */
async function steps({ step, signal }: RunContext, names: readonly string[]): Promise<void> {
  for (const name of names) await step(name, () => work(signal, (resolve) => setTimeout(resolve, 10)))
}

/** Each program leaves a child, which has to be ended with it. A `detached` child has left the process group as well. */
const script = (kind: KindName, detached = ''): string[] => [
  '-c',
  `echo "${kind} $AGENT_TASKS_RUN" >> "$0"; ${detached} sleep 60 > /dev/null 2>&1 & sleep 0.3; echo {goal}`,
  TOKENS,
]
const program = (kind: KindName, detached?: string): OutputRunner =>
  processRunner({ command: 'sh', args: script(kind, detached), endDetached: true })

const again = { attempts: 9, on: ['interrupted'], backoff: { initialMs: 0 } } as const
const durable = { durable: true, releasesSlot: true } as const

const subagents: Readonly<Record<KindName, RunnerDefinition>> = {
  plain: { run: rejects },
  polite: {
    run: async ({ goal }, { signal }) => {
      await work(signal, (resolve) => setTimeout(resolve, random.below(100)))
      return goal
    },
  },
  stubborn: {
    run: async ({ goal }) => {
      await pause(600)
      return goal
    },
  },
  repeated: { run: rejects, retry: again },
  asking: { run: asks, retry: again },
  sleeping: {
    ...durable,
    run: async ({ goal }, context) => {
      await steps(context, ['before'])
      await context.sleep(random.below(400))
      await steps(context, ['after'])
      return goal
    },
  },
  stepping: {
    ...durable,
    run: async ({ goal }, context) => {
      await steps(context, ['a', 'b', 'c'])
      return goal
    },
  },
  durablyAsking: { ...durable, run: asks },
  program: program('program'),
  repeatedProgram: { ...program('repeatedProgram', 'setsid'), retry: again },
  survivor: processRunner({ command: 'sh', args: script('survivor'), endDetached: true, survivesHost: true }),
}

/** Writes down the begin of each attempt. A run that is followed does not begin. */
function noted(definition: RunnerDefinition): RunnerDefinition {
  const run = definition.run as RunFunction
  return {
    ...definition,
    run: (input, context) => {
      const { durability, attempt } = context
      if (durability?.isResumed !== true) note(folder, 'begins', { life, id: input.id, attempt })
      return run(input, context)
    },
  }
}

const definitions = Object.fromEntries(Object.entries(subagents).map(([name, each]) => [name, noted(each)]))

const turns = createTurns(async (_text, signal, delivery) => {
  await pause(random.below(10))
  // From the line in the transcript on, the agent has the message, whatever happens to its turn.
  signal.throwIfAborted()
  if (delivery === undefined) return
  const { deliveryId, taskIds, questions = [] } = delivery
  note(folder, 'transcript', {
    life,
    deliveryId,
    tasks: taskIds.map((id) => {
      const { status = 'unknown', output } = tasks.manager.getTask(id) ?? {}
      return { id, status, text: output?.['final_message'] ?? '' }
    }),
    questions: questions.map(({ taskId, questionId }) => `${taskId} ${questionId}`),
  })
  await pause(random.below(40))
})

const tasks = createAgentTasks({
  store: sqliteStore(join(folder, 'tasks.db')),
  subagents: definitions,
  maxAsyncTasks: 8,
  whenFull: 'queue',
  graceMs: 200,
  wasDelivered: (id) => {
    if (fault === 'repeat' || fault === 'lose') return fault === 'lose'
    return notesOf(folder, 'transcript').some(({ deliveryId }) => deliveryId === id)
  },
  isAgentBusy: turns.isBusy$,
  triggerAgentTurn: turns.triggerAgentTurn,
})
const { manager } = tasks

function dispose(): Promise<void> {
  if (fault === 'cancel') return tasks.dispose({ cancel: true })
  if (fault === 'queued') {
    for (const { id, status } of manager.getActiveTasks()) if (status === 'queued') manager.cancelTask(id)
  }
  return tasks.dispose()
}

disposeOnSignals(dispose, { input: process.stdin })
process.stdin.resume()
process.once('message', () => void dispose().then(() => process.exit()))
process.send?.('starting')

const { uncertain: _, ...found } = await manager.recovered
note(folder, 'found', { life, ...(found as Record<keyof typeof found, string[]>) })

async function launch(kind: KindName): Promise<void> {
  const { id } = manager.launch(
    { subagentName: kind, goalPrompt: `goal ${random.below(1_000_000)}` },
    definitions[kind]!,
  )
  // A task that is not stored yet may be lost.
  await manager.stored()
  note(folder, 'launches', { id })
}

if (life === 0) {
  const names = Object.keys(KINDS) as KindName[]
  await Promise.all(Array.from({ length: LAUNCHES.first }, (_each, at) => launch(names[at] ?? random.pick(names))))
  let launched = LAUNCHES.first
  const timer = setInterval(() => {
    launched += 1
    if (launched === LAUNCHES.all) clearInterval(timer)
    launch(random.pick(names)).catch(() => undefined)
  }, LAUNCHES.everyMs)
}
process.send?.('ready')

setInterval(() => {
  for (const { id, questions = [] } of manager.getActiveTasks()) {
    for (const question of questions) {
      if (role === 'last' || random.chance(0.1)) manager.answerTask(id, question.id, 'yes')
    }
  }
}, 10)
if (role === 'last') {
  await manager.onIdle()
  await tasks.dispose()
  appendFileSync(join(folder, 'over'), 'over\n')
  process.exit()
}
