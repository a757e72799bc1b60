/**
 * Conversations of one host, whose tools and commands are called with the tasks of each other: none sees or changes a task of another, and none waits
 * because of the limits of another (H7, H9). The tools and commands of the host belong to its own owner.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createAgentTasks, runCommandLine, type AgentTasks } from '../../src/index.js'

const HOST = 'main'
const NAMES = ['ann', 'bob', 'cleo', HOST] as const
const MAX_TASKS = 4
const MAX_RUNNING = 2

type Name = (typeof NAMES)[number]

/** What the agent and the person of a conversation have. */
export type Party = Pick<AgentTasks, 'tools' | 'commands'>

/** Changes what one of the parties has. */
export type AlterParty = (party: Party, tasks: AgentTasks) => Party

const HOW = [
  'launch',
  'launch',
  'launch',
  'launch',
  'launch',
  'launch',
  'launch after',
  'list',
  'peek',
  'read',
  'cancel',
  'answer',
  'wait',
  'send',
  '/task end',
  '/task send',
  '/task answer',
  '/background',
  '/tasks',
  '/pause',
  '/resume',
] as const

const operation = fc.record({
  by: fc.constantFrom(...NAMES),
  of: fc.constantFrom(...NAMES),
  how: fc.constantFrom(...HOW),
  isLong: fc.boolean(),
})

type Operation = typeof operation extends fc.Arbitrary<infer O> ? O : never

const aborted = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve('aborted')))

const tick = async (): Promise<void> => {
  for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Does something with a task by its id, and returns all that is shown. */
async function use({ tools, commands }: Party, { by, how, isLong }: Operation, id: string): Promise<string> {
  const shown = async (result: unknown): Promise<string> => JSON.stringify(await result)
  const launch = { subagent_name: isLong ? 'asks' : 'quick', goal_prompt: `secret-${by}`, async: true }
  switch (how) {
    case 'launch':
      return shown(tools.task.execute(launch))
    case 'launch after':
      return shown(tools.task.execute({ ...launch, after: [id] }))
    case 'list':
      return shown(tools.check_async_tasks.execute({}))
    case 'peek':
      return shown(tools.check_async_tasks.execute({ task_id: id, action: 'peek' }))
    case 'read':
      return shown(tools.check_async_tasks.execute({ task_id: id, action: 'output', part: 'result' }))
    case 'cancel':
      return shown(tools.check_async_tasks.execute({ task_id: id, action: 'cancel' }))
    case 'answer':
      return shown(tools.check_async_tasks.execute({ task_id: id, action: 'answer', answer: 'yes' }))
    case 'wait':
      return shown(tools.wait_for_async_tasks.execute({ task_ids: [id], timeout_seconds: 0 }))
    case 'send':
      return shown(tools.send_to_task.execute({ task_id: id, message: by }))
    case '/tasks':
    case '/pause':
    case '/resume':
      return shown(runCommandLine(commands, how))
    default:
      return shown(runCommandLine(commands, `${how} ${id} ${by}`))
  }
}

/** A conversation below its own limit has no waiting task while a slot is free, whatever the others have. */
function checkWaiting(tasks: AgentTasks, paused: ReadonlySet<Name>): void {
  const { manager } = tasks
  const running = manager.getRunningTasks()
  for (const task of manager.getQueuedTasks()) {
    const ofOwner = running.filter(({ owner }) => owner === task.owner).length
    const mayWait =
      task.waitsFor !== undefined ||
      paused.has(task.owner as Name) ||
      ofOwner >= MAX_RUNNING ||
      running.length >= MAX_TASKS
    assert.ok(mayWait, `${task.id} of ${task.owner} waits, and nothing of its own holds it up`)
  }
  for (const name of NAMES) {
    assert.ok(running.filter(({ owner }) => owner === name).length <= MAX_RUNNING, `${name} is above its limit`)
  }
}

async function explore(operations: readonly Operation[], alter: AlterParty): Promise<void> {
  const leaks: string[] = []
  const tasks = createAgentTasks({
    graceMs: 0,
    maxAsyncTasks: MAX_TASKS,
    whenFull: 'queue',
    ownerLimits: { maxRunning: MAX_RUNNING, maxQueued: 3 },
    onError: () => undefined,
    subagents: {
      quick: ({ goal }) => `result of ${goal}`,
      asks: {
        takesMessages: true,
        run: async ({ goal }, { ask, messages, signal }) => {
          const listen = async (): Promise<void> => {
            for await (const message of messages) {
              if (goal !== `secret-${message}`) leaks.push(`${goal} is told ${message}`)
            }
          }
          void listen()
          const answer = await Promise.race([ask(`question of ${goal}`), aborted(signal)])
          return `answered ${JSON.stringify(answer)}`
        },
      },
    },
    respond: ({ conversation: { id }, text }) => {
      for (const other of NAMES) if (other !== id && text.includes(`secret-${other}`)) leaks.push(`${id} reads ${text}`)
    },
  })
  const latest = new Map<Name, string>()
  const paused = new Set<Name>()
  tasks.manager.transitions$.subscribe(({ kind, taskId, owner }) => {
    if (kind === 'status') latest.set(owner as Name, taskId)
  })
  const recordOf = (id: string): string => JSON.stringify(tasks.manager.getTask(id) ?? null)
  try {
    for (const each of operations) {
      const { by, of, how } = each
      const party = alter(by === HOST ? tasks : tasks.conversation(by), tasks)
      const id = latest.get(of) ?? 'none'
      const before = recordOf(id)
      const shown = await use(party, each, id)
      for (const other of NAMES) if (other !== by) assert.ok(!shown.includes(`secret-${other}`), `${by} reads ${shown}`)
      if (of !== by) assert.equal(recordOf(id), before, `${by} has changed a task of ${of} by ${how}`)
      if (how === '/pause') paused.add(by)
      if (how === '/resume') paused.delete(by)
      await tick()
      checkWaiting(tasks, paused)
      assert.deepEqual(leaks, [])
    }
  } finally {
    await tasks.dispose()
  }
}

export const conversationsProperty = (alter: AlterParty = (party) => party) =>
  fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 30 }), (operations) => explore(operations, alter))
