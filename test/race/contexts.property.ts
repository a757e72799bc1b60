/**
 * Whose `AsyncLocalStorage` code of the host sees (H5). Several users launch tasks, take turns, cancel, and submit commands to one host, from calls
 * that some nest in a context of an SDK. Each run, turn, command and handler must see the contexts that belong to it, and no others.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import fc from 'fast-check'
import { currentTurn } from '../../src/isolation/current-turn.js'
import { createAgentTasks, type AgentTasks } from '../../src/index.js'
import { InstanceManager, localInstance, TaskManager } from '../../src/server/index.js'
import { memoryStore } from '../../src/store/index.js'
import type { SubagentRunner } from '../../src/tools/subagents.js'
import { createManualClock, createRaceScheduler, type RaceOrder, raceOrders } from '../../src/testing/index.js'
import { createTurns } from '../../src/parts.js'

const USERS = ['alice', 'bob', 'carol'] as const

interface Step {
  readonly do: 'launch' | 'launch in turn' | 'take' | 'cancel' | 'submit' | 'listen'
  /** Whether the step is taken inside a run of an SDK. */
  readonly isNested: boolean
}

interface Script {
  readonly isStored: boolean
  readonly maxAsyncTasks: number
  /** How often a run fails before it succeeds. */
  readonly failures: number
  /** The steps of each user. */
  readonly steps: readonly (readonly Step[])[]
}

const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom<Step['do'][]>('launch', 'launch', 'launch in turn', 'take', 'cancel', 'submit', 'listen'),
  isNested: fc.boolean(),
})

const scripts: fc.Arbitrary<Script> = fc.record({
  isStored: fc.boolean(),
  maxAsyncTasks: fc.integer({ min: 1, max: 2 }),
  failures: fc.constantFrom(0, 0, 1),
  steps: fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: USERS.length }),
})

// All runs share these. Node copies the value of each storage into each new promise, also after the run that made the storage.
const user = new AsyncLocalStorage<string>()
const sdk = new AsyncLocalStorage<string>()

/** @param sabotage makes a new host wrong, for a planted fault */
export const contextsProperty = (sabotage: (tasks: AgentTasks) => void = () => undefined) =>
  fc.asyncProperty(raceOrders(), scripts, (order, script) => run(sabotage, script, order))

async function run(sabotage: (tasks: AgentTasks) => void, script: Script, order: RaceOrder): Promise<void> {
  const scheduler = createRaceScheduler(order)
  const clock = createManualClock()
  const problems: string[] = []
  const here = (): string => `${user.getStore()} in ${sdk.getStore()}`
  const check = (what: string, expected: string): void => {
    if (here() !== expected) problems.push(`H5: ${what} of ${expected} sees ${here()}`)
  }
  const pause = (label: string): Promise<unknown> => scheduler.schedule(Promise.resolve(), label)
  const checkAround = async (what: string, expected: string): Promise<void> => {
    check(what, expected)
    await pause(`${what} of ${expected}`)
    check(`${what}, later,`, expected)
  }

  const failed = new Map<string, number>()
  const work: SubagentRunner = async ({ goal }, { taskId, signal }) => {
    if (currentTurn() !== undefined) problems.push(`H5: the run ${taskId} counts as a part of a turn`)
    signal.addEventListener('abort', () => check('an abort', goal))
    await checkAround('a run', goal)
    const count = failed.get(taskId) ?? 0
    failed.set(taskId, count + 1)
    if (count < script.failures) throw Object.assign(new Error('again'), { code: 'INTERRUPTED' })
    return 'done'
  }
  const instances = new InstanceManager({ clock })
  const command = {
    name: 'work',
    execute: async (args: unknown) => {
      await checkAround('a command', (args as { readonly by: string }).by)
      return 'done'
    },
  }
  const instance = localInstance({ id: 'one', tools: [command], clock })
  const turns = createTurns(async (text, _signal, delivery) => {
    const expected = delivery === undefined ? text.replace(/^launch /, '') : 'host in undefined'
    if (delivery === undefined && text.startsWith('launch ')) launch(expected)
    await checkAround('a turn', expected)
    if (currentTurn() === undefined) problems.push('H5: a turn is not known inside of it')
  })
  const stores = script.isStored ? [{ store: memoryStore() }, { store: memoryStore() }] : []
  const { tasks, commands } = user.run('host', () => {
    instances.connect(instance)
    return {
      tasks: createAgentTasks({
        ...stores[0],
        clock,
        maxAsyncTasks: script.maxAsyncTasks,
        whenFull: 'queue',
        subagents: { work: { run: work, retry: { attempts: 2, on: ['interrupted'], backoff: { initialMs: 1 } } } },
        isAgentBusy: turns.isBusy$,
        triggerAgentTurn: turns.triggerAgentTurn,
        onError: () => check('onError', 'host in undefined'),
      }),
      commands: new TaskManager({ ...stores[1], clock, instances }),
    }
  })
  sabotage(tasks)
  const { manager } = tasks
  const launch = (goal: string): void => void tasks.launch('work', goal)
  const taken: Promise<unknown>[] = []
  const perform = (kind: Step['do']): void => {
    const me = here()
    switch (kind) {
      case 'launch':
        launch(me)
        return
      case 'take':
      case 'launch in turn':
        taken.push(turns.take(kind === 'take' ? me : `launch ${me}`))
        return
      case 'cancel':
        for (const { id } of manager.getRunningTasks().slice(0, 1)) manager.cancelTask(id)
        return
      case 'submit':
        commands.submitTask({ task_name: me, commands: [{ tool_name: 'work', args: { by: me } }] })
        return
      case 'listen':
        manager.onTaskCompleted(() => check('a handler', me))
        manager.transitions$.subscribe(() => check('a subscriber', me))
        commands.on('complete', () => check('a handler of commands', me))
    }
  }
  for (const [nth, steps] of script.steps.entries()) {
    const name = USERS[nth] ?? 'nobody'
    user.run(name, () => {
      scheduler.scheduleSequence(
        steps.map(({ do: kind, isNested }, place) => ({
          label: `${name}: ${kind}`,
          builder: async () => {
            await Promise.resolve()
            const act = (): void => user.run(name, () => perform(kind))
            if (isNested) sdk.run(`run ${place} of ${name}`, act)
            else act()
          },
        })),
      )
    })
  }
  await scheduler.waitIdle()
  for (let round = 0; round < 3; round += 1) {
    user.run('nobody', () => {
      clock.advance(5000)
    })
    await scheduler.waitIdle()
  }
  await Promise.all(taken)
  await turns.dispose()
  await user.run('nobody', () => Promise.all([tasks.dispose(), commands.dispose()]))
  await instances.dispose()
  if (problems.length > 0) throw new Error(`${problems.join('\n')}\n${String(scheduler)}`)
}
