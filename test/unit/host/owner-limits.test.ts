/** Limits of each conversation of a host. */
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  createAgentTasks,
  runCommandLine,
  type AgentTasks,
  type AgentTasksOptions,
  type RunFunction,
} from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { tick } from '../../support/limited-tasks.js'
import { TaskLimitError } from '../../../src/errors.js'
import { createTaskCommands } from '../../../src/parts.js'

const long: RunFunction = (_input, { signal }) =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve('ended')))

function createHost(options: Partial<AgentTasksOptions> = {}): AgentTasks {
  const tasks = createAgentTasks({
    graceMs: 0,
    subagents: { long, quick: ({ goal }) => `done: ${goal}` },
    respond: () => [],
    ...options,
  }) as AgentTasks
  onTestFinished(() => tasks.dispose())
  return tasks
}

const settle = async (): Promise<void> => {
  for (let n = 0; n < 20; n += 1) await tick()
}

const statuses = (tasks: AgentTasks, owner: string): string[] =>
  tasks
    .conversation(owner)
    .list()
    .map(({ status }) => status)

function errorOf(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error
  }
}

describe('the limits of a conversation', () => {
  it('H9: a conversation that is busy leaves slots for the others', () => {
    const tasks = createHost({ whenFull: 'queue' })
    for (let n = 0; n < 10; n += 1) tasks.conversation('ann').launch('long', 'g')
    for (let n = 0; n < 3; n += 1) tasks.conversation('bob').launch('long', 'g')
    const count = (owner: string, status: string): number =>
      statuses(tasks, owner).filter((each) => each === status).length
    expect([count('ann', 'running'), count('ann', 'queued')]).toEqual([3, 7])
    expect([count('bob', 'running'), count('bob', 'queued')]).toEqual([2, 1])
  })

  it('H9: a launch above a limit says whose limit, which, and how much counts', async () => {
    const tasks = createHost({ ownerLimits: { maxRunning: 1, maxQueued: 1, maxQueuedBytes: 1000 } })
    const ann = tasks.conversation('ann')
    ann.launch('long', 'g')
    const full = errorOf(() => ann.launch('long', 'g')) as TaskLimitError
    expect(full).toBeInstanceOf(TaskLimitError)
    expect([full.code, full.owner, full.maxAsyncTasks]).toEqual(['TASK_LIMIT', 'ann', 1])
    expect(full.message).toBe('Max async tasks of "ann" (1, ownerLimits.maxRunning) reached: 1 run')
    const large = errorOf(() => ann.launch('long', 'x'.repeat(2000), { whenFull: 'queue' })) as TaskLimitError
    expect(large.message).toMatch(
      /^The waiting tasks of "ann" have no room for \d+ bytes \(0 of 1000 bytes are in use, ownerLimits\.maxQueuedBytes\)$/,
    )
    ann.launch('long', 'g', { whenFull: 'queue' })
    const queued = errorOf(() => ann.launch('long', 'g', { whenFull: 'queue' })) as TaskLimitError
    expect(queued.message).toBe('Max waiting tasks of "ann" (1, ownerLimits.maxQueued) reached: 1 wait')
    const { llmContent } = await ann.tools.task.execute({ subagent_name: 'long', goal_prompt: 'g', async: true })
    expect(llmContent).toContain(
      'Max async tasks of "ann" (1, ownerLimits.maxRunning) reached: 1 run. Wait until one has ended',
    )
    expect(tasks.conversation('bob').launch('long', 'g').record.status).toBe('running')
    expect(tasks.manager.canLaunchAsync('ann')).toEqual({ allowed: false, reason: full.message })
    expect(tasks.manager.canLaunchAsync('bob').allowed).toBe(false)
    expect(tasks.manager.canLaunchAsync().allowed).toBe(true)
  })

  it('H9: a task that moves to the background needs a slot of its owner', () => {
    const tasks = createHost({ ownerLimits: { maxRunning: 1 } })
    const ann = tasks.conversation('ann')
    ann.launch('long', 'g')
    const { id } = tasks.manager.launch(
      { subagentName: 'long', goalPrompt: 'g', owner: 'ann', isForeground: true },
      long,
    )
    expect(() => tasks.detach(id)).toThrow('Max async tasks of "ann" (1, ownerLimits.maxRunning) reached: 1 run')
    const other = { subagentName: 'long', goalPrompt: 'g', owner: 'bob', isForeground: true }
    expect(tasks.detach(tasks.manager.launch(other, long).id)).toEqual({ detached: true })
  })

  it('H9: commands of runs count for the owner of the run, and its children do not', async () => {
    const tasks = createHost({
      ownerLimits: { maxRunning: 1 },
      subagents: {
        parent: ({ goal }, context) => {
          const kinds = ['command', undefined, undefined] as const
          const launched = kinds.map((kind) =>
            context.launch(
              { subagentName: 's', goalPrompt: goal, whenFull: 'queue', ...(kind && { kind }) } as never,
              long,
            ),
          )
          return new Promise<never>((_resolve, reject) =>
            context.signal.addEventListener('abort', () => reject(new Error(String(launched.length)))),
          )
        },
      },
    })
    tasks.conversation('ann').launch('parent', 'g')
    await settle()
    expect(tasks.manager.getRunningTasks()).toHaveLength(4)
    expect(tasks.manager.registry.pools.command.heldBy('ann')).toBe(1)
    expect(tasks.manager.registry.pools.command.hasRoomFor('ann')).toBe(false)
  })

  it('H9: 30 tasks of one conversation push out no record of another', async () => {
    const tasks = createHost({ maxAsyncTasks: -1 })
    const kept = tasks.conversation('bob').launch('quick', 'g').id
    await settle()
    for (let n = 0; n < 30; n += 1) {
      tasks.conversation('ann').launch('quick', 'g')
      await tasks.conversation('ann').onIdle()
    }
    expect(
      tasks
        .conversation('bob')
        .list()
        .map(({ id }) => id),
    ).toEqual([kept])
    expect(tasks.conversation('ann').list()).toHaveLength(10)
  })

  it('H9: what the tasks of a conversation have used survives a restart, also when their records were pruned', async () => {
    const store = memoryStore()
    const options: Partial<AgentTasksOptions> = {
      store,
      keepTurns: 0,
      ownerLimits: { maxKept: 1 },
      subagents: {
        spender: (_input, context) => {
          context.spend({ tokens: 5 })
          return 'done'
        },
      },
    }
    const first = createHost(options)
    for (let n = 0; n < 4; n += 1) {
      first.conversation('ann').launch('spender', 'g')
      await first.conversation('ann').onIdle()
    }
    // The last message is not confirmed, so its result is kept as well.
    expect(first.conversation('ann').list()).toHaveLength(2)
    await first.dispose()
    const next = createHost(options)
    await next.recovered
    expect([next.manager.spent('ann'), next.manager.spent('bob'), next.manager.spent()]).toEqual([
      { tokens: 20 },
      {},
      { tokens: 20 },
    ])
    next.conversation('ann').launch('spender', 'g')
    await next.conversation('ann').onIdle()
    expect(next.manager.spent('ann')).toEqual({ tokens: 25 })
  })

  it('H9: the commands of the host belong to its owner', () => {
    const tasks = createHost()
    const secret = tasks.conversation('ann').launch('long', 'secret of ann').id
    const own = tasks.launch('long', 'own task').id
    const list = runCommandLine(tasks.commands, '/tasks')?.text
    expect(list).toContain('own task')
    expect(list).not.toContain('secret of ann')
    expect(runCommandLine(tasks.commands, `/task end ${secret}`)).toMatchObject({ type: 'error' })
    expect(runCommandLine(tasks.commands, '/pause all')).toMatchObject({ type: 'error' })
    const ofOperator = createTaskCommands({ getAsyncTaskManager: () => tasks.manager })
    expect(runCommandLine(ofOperator, '/tasks')?.text).toContain('secret of ann')
    expect(runCommandLine(ofOperator, `/task end ${secret}`)).toMatchObject({ type: 'info' })
    expect(tasks.manager.getTask(own)?.status).toBe('running')
  })

  it.each([
    { ownerLimits: { maxRunning: 0 } },
    { ownerLimits: { maxRunning: 1.5 } },
    { ownerLimits: { maxQueued: -2 } },
    { ownerLimits: { maxKept: 0.5 } },
    { ownerLimits: { maxRuning: 1 } },
  ])('refuses %o', (options) => {
    expect(() => createAgentTasks(options as AgentTasksOptions)).toThrow(/(Setting |options\.)ownerLimits\.max\w+: /)
  })
})
