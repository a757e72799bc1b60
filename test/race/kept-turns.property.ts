/**
 * Hosts that are killed or disposed at any write, and go on in another process. Users send messages with ids and send them again; results arrive as messages and
 * in tool calls; turns launch tasks, and fail. In the end each stored message has one turn, each result is in one kept turn, unmarked, and each turn has
 * launched its tasks once, however often it was taken.
 */
import fc from 'fast-check'
import { createAgentTasks, type ConversationTurn } from '../../src/index.js'
import { memoryStore, type MemoryStore, type Store } from '../../src/store/index.js'

const OWNERS = ['ann', 'bob'] as const

const ownerArbitrary = fc.constantFrom(...OWNERS)

const stepArbitrary = fc.oneof(
  fc.record({ type: fc.constant('send'), owner: ownerArbitrary, id: fc.nat(3) }),
  fc.record({ type: fc.constant('launch'), owner: ownerArbitrary, ticks: fc.nat(6) }),
  fc.record({ type: fc.constant('collect'), owner: ownerArbitrary }),
  fc.record({ type: fc.constant('wait'), ticks: fc.nat(10) }),
)

type Step = Readonly<
  | { type: 'send'; owner: string; id: number }
  | { type: 'launch'; owner: string; ticks: number }
  | { type: 'collect'; owner: string }
  | { type: 'wait'; ticks: number }
>

interface Life {
  readonly steps: readonly Step[]
  /** The process ends at this write, counted from its start: before or after it is on the disk. */
  readonly killAt: number
  readonly isWritten: boolean
  /** Whether it is killed. Otherwise it is disposed. */
  readonly isKilled: boolean
  /** Which turns of the process fail. */
  readonly failing: readonly number[]
}

const lifeArbitrary: fc.Arbitrary<Life> = fc.record({
  steps: fc.array(stepArbitrary, { maxLength: 8 }),
  killAt: fc.nat(25),
  isWritten: fc.boolean(),
  isKilled: fc.boolean(),
  failing: fc.array(fc.nat(5), { maxLength: 2 }),
})

const ticks = async (count: number): Promise<void> => {
  for (let n = 0; n < count; n += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** What all processes have seen. */
class History {
  launched = 0
  /** The results of launches that were stored. */
  readonly stored = new Set<string>()
  /** The messages whose `send` has resolved, and those with a turn that has begun and not failed: they are stored. */
  readonly answered = new Set<string>()
  /** The messages of turns that have failed. */
  readonly failed = new Set<string>()
  /** The tasks whose runs have begun, by their goals. */
  readonly begun = new Map<string, Set<string>>()
}

type Tasks = ReturnType<typeof hostOn>

/** @param end called at the write at which the process ends */
function endingAt(store: MemoryStore, { killAt, isWritten }: Life, end: () => void): Store {
  let writes = 0
  return {
    ...store,
    write: async (changes) => {
      writes += 1
      if (writes === killAt && !isWritten) end()
      await store.write(changes)
      if (writes === killAt && isWritten) end()
    },
  }
}

interface Observer {
  readonly onBegin: (message: string, isFailing: boolean) => void
  readonly onRun: (goal: string, taskId: string) => void
}

/** What a turn launches: a task for its message, or one for each result of a launch in it. */
const goalsOf = (owner: string, text: string): string[] => [
  ...[...text.matchAll(/^message-(\d+)\.$/g)].map(([, number]) => `own:${owner}:${number} 2`),
  ...new Set([...text.matchAll(/result-(\d+)\./g)].map(([, number]) => `next:${number} 2`)),
]

function hostOn(store: Store, failing: readonly number[], { onBegin, onRun }: Observer) {
  let turns = 0
  return createAgentTasks({
    store,
    keepTurns: Infinity,
    maxAsyncTasks: -1,
    graceMs: 0,
    notifyCancelled: true,
    onError: () => undefined,
    autoTrigger: { retry: { initialMs: 1, maxMs: 1 } },
    subagents: {
      work: {
        run: async ({ goal }, { taskId }) => {
          onRun(goal, taskId)
          const [number = '', length] = goal.split(' ')
          await ticks(Number(length))
          return `result-${number}.`
        },
        retry: { attempts: 100, on: ['interrupted'] },
      },
    },
    respond: async ({ text, conversation }: ConversationTurn) => {
      turns += 1
      const isFailing = failing.includes(turns)
      onBegin(`${conversation.id} ${text}`, isFailing)
      if (!text.startsWith('collect')) {
        for (const goal_prompt of goalsOf(conversation.id, text)) {
          await conversation.tools.task.execute({ subagent_name: 'work', goal_prompt, async: true })
        }
        if (isFailing) throw new Error('the model is away')
        return []
      }
      const found = await conversation.tools.wait_for_async_tasks.execute({ timeout_seconds: 0 })
      if (isFailing) throw new Error('the model is away')
      return [{ role: 'tool', content: found }]
    },
  })
}

function perform(step: Step, tasks: Tasks, history: History, isAlive: () => boolean): Promise<void> | undefined {
  if (step.type === 'wait') return ticks(step.ticks)
  const conversation = tasks.conversation(step.owner)
  if (step.type === 'launch') {
    history.launched += 1
    const result = `result-${history.launched}.`
    conversation.launch('work', `${history.launched} ${step.ticks}`)
    void tasks.manager
      .stored()
      .then(() => isAlive() && history.stored.add(result))
      .catch(() => undefined)
    return undefined
  }
  const [text, id] = step.type === 'send' ? [`message-${step.id}.`, `id-${step.id}`] : ['collect', undefined]
  void conversation.send(text, id === undefined ? {} : { id }).then(
    () => {
      if (isAlive() && id !== undefined) history.answered.add(`${step.owner} ${text}`)
    },
    () => undefined,
  )
  return undefined
}

type Change = (store: Store) => Partial<Store>

/** Starts a process, and returns what it leaves. */
async function live(store: MemoryStore, life: Life, history: History, change: Change): Promise<MemoryStore> {
  let left: MemoryStore | undefined
  let disposed: Promise<void> | undefined
  const isAlive = (): boolean => left === undefined
  const disk = endingAt(store, life, () => {
    if (life.isKilled) left = store.copy()
    else disposed = tasks.dispose()
  })
  const tasks = hostOn({ ...disk, ...change(disk) }, life.failing, {
    onBegin: (message, isFailing) => {
      if (!isAlive()) return
      // The message of a failed turn is dropped.
      if (isFailing) history.answered.delete(message)
      else history.answered.add(message)
      if (isFailing) history.failed.add(message)
    },
    onRun: (goal, taskId) => {
      if (isAlive()) noteRun(history, goal, taskId)
    },
  })
  for (const step of life.steps) if (isAlive() && disposed === undefined) await perform(step, tasks, history, isAlive)
  await ticks(5)
  await disposed
  left ??= store.copy()
  await tasks.dispose()
  return left
}

const noteRun = ({ begun }: History, goal: string, taskId: string): void =>
  void begun.set(goal, (begun.get(goal) ?? new Set()).add(taskId))

/** The launches of turns that were repeated. A message whose turn has failed was dropped, so it may be another one with the same text. */
function repeatedLaunches({ begun, failed }: History): string[] {
  const dropped = [...failed].flatMap((message) => {
    const [owner = '', text = ''] = message.split(' ')
    return goalsOf(owner, text)
  })
  return [...begun].flatMap(([goal, { size }]) =>
    size > 1 && !(goal.startsWith('own') && dropped.includes(goal)) ? [`${size} tasks for ${goal}`] : [],
  )
}

/** Lets a last process end everything. Returns the kept messages of each owner. */
async function finish(store: MemoryStore, history: History): Promise<Map<string, string[]>> {
  const tasks = hostOn(store, [], {
    onBegin: () => undefined,
    onRun: (goal, taskId) => noteRun(history, goal, taskId),
  })
  await tasks.recovered
  const kept = new Map<string, string[]>()
  for (const owner of OWNERS) {
    await tasks.conversation(owner).onIdle()
    const messages = (await tasks.conversation(owner).messages()) as { content: unknown }[]
    kept.set(
      owner,
      messages.map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content))),
    )
  }
  await tasks.dispose()
  return kept
}

const countIn = (messages: readonly string[], text: string): number =>
  messages.filter((message) => message.includes(text)).length

/** @param change what a fault changes of the store of each process */
export function keptTurnsProperty(change: Change = () => ({})) {
  return fc.asyncProperty(fc.array(lifeArbitrary, { minLength: 1, maxLength: 4 }), async (lives) => {
    const history = new History()
    let store = memoryStore()
    for (const life of lives) store = await live(store, life, history, change)
    const inputs = store.contents().featureStates.filter(({ feature }) => feature === 'inputs')
    const kept = await finish(store, history)
    const all = [...kept.values()].flat()
    const problems = [
      ...repeatedLaunches(history),
      ...all.filter((text) => text.includes('possible repeat')).map((text) => `marked: ${text}`),
      ...[...history.stored].filter((result) => countIn(all, result) === 0).map((result) => `0 of ${result}`),
      ...Array.from({ length: history.launched }, (_, n) => `result-${n + 1}.`)
        .filter((result) => countIn(all, result) > 1)
        .map((result) => `${countIn(all, result)} of ${result}`),
      ...OWNERS.flatMap((owner) =>
        Array.from({ length: 4 }, (_, n) => `message-${n}.`).flatMap((text) => {
          const count = countIn(kept.get(owner) ?? [], text)
          const isSent =
            history.answered.has(`${owner} ${text}`) ||
            inputs.some(({ data }) => data['owner'] === owner && data['text'] === text)
          return count > 1 || (isSent && count === 0) ? [`${count} of ${text} of ${owner}`] : []
        }),
      ),
    ]
    if (problems.length > 0) throw new Error(problems.join('\n'))
  })
}
