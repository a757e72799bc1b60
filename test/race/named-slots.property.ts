/**
 * Tasks with keys, limits of subagents and rates, in any order of launches, ends, cancellations, waits and crashes: F18. FC_NUM_RUNS=100000 explores that
 * many orders.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AsyncTaskManager, type RunContext, type RunFunction, type RunnerDefinition } from '../../src/index.js'
import { memoryStore, type MemoryStore } from '../../src/store/index.js'
import { createManualClock } from '../../src/testing/index.js'
import { FamilyError, TaskLimitError } from '../../src/errors.js'
import type { LaunchTaskInput } from '../../src/protocol/async-tasks.js'

/** Breaks a manager. */
export type AlterManager = (manager: AsyncTaskManager) => void

const retry = { attempts: 3, on: ['rate-limited', 'interrupted'], backoff: { initialMs: 0 } } as const
const SUBAGENTS = {
  plain: {},
  two: { maxConcurrent: 2 },
  rated: { rate: { limit: 2, perMs: 100 } },
  rare: { maxConcurrent: 1, rate: { limit: 3, perMs: 200 }, retry },
} as const satisfies Record<string, Partial<RunnerDefinition>>
const KEYS = { one: 1, many: 2 } as const

type SubagentName = keyof typeof SUBAGENTS
type Key = keyof typeof KEYS

export type Step =
  | {
      readonly do: 'launch'
      readonly subagent: SubagentName
      readonly key: Key | undefined
      readonly priority: number
      readonly repeats: boolean
      readonly isForeground: boolean
      /** The run that launches it, if there is one. */
      readonly parent: number | undefined
    }
  | { readonly do: 'end'; readonly nth: number; readonly how: 'returned' | 'rate-limited' | 'broken' }
  | { readonly do: 'cancel' | 'detach'; readonly nth: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'crash' }

const nth = fc.nat(10)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constant('launch' as const),
      subagent: fc.constantFrom(...(Object.keys(SUBAGENTS) as SubagentName[])),
      key: fc.constantFrom(undefined, 'one' as const, 'one' as const, 'many' as const),
      priority: fc.nat(1),
      repeats: fc.boolean(),
      isForeground: fc.boolean(),
      parent: fc.option(nth, { nil: undefined, freq: 1 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      nth,
      how: fc.constantFrom('returned' as const, 'rate-limited' as const, 'broken' as const),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('cancel' as const, 'detach' as const), nth }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 50, 100, 200) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const) }) },
)

interface Live {
  readonly id: string
  readonly subagent: SubagentName
  readonly key: Key | undefined
  readonly context: RunContext
  readonly end: (how: 'returned' | 'rate-limited' | 'broken') => void
}

const tick = async (): Promise<void> => {
  for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve))
}

async function explore(steps: readonly Step[], agingMs: number, alter: AlterManager): Promise<void> {
  const clock = createManualClock(0)
  const starts: { readonly subagent: SubagentName; readonly at: number }[] = []
  let live: Live[] = []
  let processes = 0
  let launched = 0
  const definitionOf = (name: SubagentName, key: Key | undefined): RunnerDefinition => {
    const process = processes
    return {
      ...SUBAGENTS[name],
      run: ({ id }, context) => {
        if (process !== processes) return new Promise(() => undefined)
        // A start counts from the change that makes it: its run begins when that is stored.
        const { startedAt, launchedAt = 0 } = manager.getTask(id) ?? {}
        starts.push({ subagent: name, at: startedAt ?? launchedAt })
        return new Promise((resolve, reject) => {
          const leave = (): void => {
            live = live.filter((one) => one !== run)
          }
          const run: Live = {
            id,
            subagent: name,
            key,
            context,
            end: (how) => {
              leave()
              if (how === 'returned') resolve({})
              else reject(Object.assign(new Error(how), { code: how === 'broken' ? 'BROKEN' : 'RATE_LIMITED' }))
            },
          }
          live.push(run)
          context.signal.addEventListener('abort', () => run.end('returned'))
        })
      },
    }
  }
  const open = (store: MemoryStore): AsyncTaskManager => {
    const manager = new AsyncTaskManager({
      store,
      clock,
      graceMs: 0,
      maxAsyncTasks: 3,
      limits: { many: KEYS.many },
      queue: { agingMs },
      onError: (error) => assert.fail(String(error)),
      findRunner: (name) => ({
        ...SUBAGENTS[name as SubagentName],
        run: (input, context) => {
          const key = manager.getTask(input.id)?.concurrencyKey as Key | undefined
          return (definitionOf(name as SubagentName, key).run as RunFunction)(input, context)
        },
      }),
    })
    alter(manager)
    return manager
  }
  let store = memoryStore()
  let manager = open(store)

  const take = (action: Step): void => {
    switch (action.do) {
      case 'launch': {
        const { subagent, key, priority, repeats, isForeground, parent } = action
        const above = parent === undefined || live.length === 0 ? undefined : live[parent % live.length]
        const input: LaunchTaskInput = {
          id: `t${(launched += 1)}`,
          subagentName: subagent,
          goalPrompt: 'g',
          priority,
          ...(isForeground && { isForeground }),
          ...(key !== undefined && { concurrencyKey: key }),
          ...(repeats && { retry }),
        }
        try {
          if (above === undefined) manager.launch(input, definitionOf(subagent, key))
          else above.context.launch(input, definitionOf(subagent, key))
        } catch (error) {
          if (!(error instanceof TaskLimitError || error instanceof FamilyError)) throw error
        }
        return
      }
      case 'end':
        live[action.nth % live.length]?.end(action.how)
        return
      case 'cancel':
      case 'detach': {
        const active = manager.getActiveTasks()
        const id = active[action.nth % active.length]?.id
        if (id === undefined) return
        if (action.do === 'cancel') manager.cancelTask(id)
        else {
          try {
            manager.detachTask(id)
          } catch (error) {
            if (!(error instanceof TaskLimitError)) throw error
          }
        }
        return
      }
      case 'advance':
        clock.advance(action.ms)
        return
      case 'crash': {
        const left = store.copy()
        processes += 1
        live = []
        void manager.dispose()
        store = left
        manager = open(store)
      }
    }
  }

  const mayStart = (name: SubagentName, key: Key | undefined): boolean => {
    const definition: Partial<RunnerDefinition> = SUBAGENTS[name]
    const { maxConcurrent = Infinity, rate } = definition
    const recent = starts.filter(({ subagent, at }) => subagent === name && at > clock.now() - (rate?.perMs ?? 0))
    return (
      live.filter(({ subagent }) => subagent === name).length < maxConcurrent &&
      (key === undefined || live.filter((run) => run.key === key).length < KEYS[key]) &&
      (rate === undefined || recent.length < rate.limit)
    )
  }

  const check = (what: string): void => {
    for (const [key, max] of Object.entries(KEYS)) {
      assert.ok(live.filter((run) => run.key === key).length <= max, `${what}: ${key} is held more than ${max} times`)
    }
    for (const [name, definition] of Object.entries<Partial<RunnerDefinition>>(SUBAGENTS)) {
      const { maxConcurrent = Infinity, rate } = definition
      const count = live.filter(({ subagent }) => subagent === name).length
      assert.ok(count <= maxConcurrent, `${what}: ${count} tasks of ${name} run`)
      const times = starts.filter(({ subagent }) => subagent === name).map(({ at }) => at)
      if (rate === undefined) continue
      times.forEach((at, index) => {
        const before = times[index - rate.limit]
        assert.ok(before === undefined || at - before >= rate.perMs, `${what}: ${name} starts too often`)
      })
    }
    const { pools, limits } = manager.registry
    const queued = manager.getQueuedTasks()
    const isReserved = agingMs !== -1 && queued.some(({ launchedAt }) => clock.now() - launchedAt >= 10 * agingMs)
    for (const task of queued) {
      const entry = manager.registry.history.get(task.id)
      const hasRoom = task.isForeground === true || (entry !== undefined && pools.ofTask(task).hasRoom())
      const isFree = mayStart(task.subagentName as SubagentName, task.concurrencyKey as Key | undefined)
      assert.ok(isReserved || !hasRoom || !isFree, `${what}: ${task.id} waits for nothing`)
    }
    const held = queued.length + live.length
    assert.ok(limits.size <= held, `${what}: ${limits.size} tasks hold slots or wait, and only ${held} may`)
  }

  for (const action of steps) {
    take(action)
    await tick()
    check(JSON.stringify(action))
  }
  // Whatever waits starts in the end, and nothing is left.
  for (let n = 0; manager.getActiveTasks().length > 0; n += 1) {
    assert.ok(n < 500, `${manager.getActiveTasks().length} tasks never end`)
    live[0]?.end('returned')
    await tick()
    if (live.length === 0) clock.advance(50)
    await tick()
    check('end')
  }
  assert.deepEqual([live.length, manager.registry.limits.size, manager.actor.getSnapshot().slots], [0, 0, 0])
  await manager.dispose()
  assert.equal(clock.pending, 0)
}

export const namedSlotsProperty = (alter: AlterManager = () => undefined) =>
  fc.asyncProperty(
    fc.array(step, { minLength: 1, maxLength: 40 }),
    fc.constantFrom(60_000, 60_000, 10, -1),
    (steps, agingMs) => explore(steps, agingMs, alter),
  )
