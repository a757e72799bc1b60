/**
 * Values that no caller should pass, wherever one enters: small in memory and endless as text or as objects, or that throw when they are read. Each ends
 * in bounded work, and its task has one end, which can be shown, serialised and stored.
 */
import fc from 'fast-check'
import { AsyncTaskManager, type Runner } from '../../src/index.js'
import { preview } from '../../src/data/preview.js'
import { memoryStore } from '../../src/store/index.js'
import { createManualClock } from '../../src/testing/index.js'
import type { LaunchTaskInput } from '../../src/protocol/async-tasks.js'

/** How a value is made: data, which prints and shrinks. */
export type HostilePlan =
  | { readonly kind: 'shared'; readonly depth: number; readonly asArray: boolean }
  | {
      readonly kind:
        | 'circle'
        | 'throwing getter'
        | 'throwing toJSON'
        | 'throwing proxy'
        | 'revoked proxy'
        | 'big integer'
        | 'symbol'
        | 'function'
    }
  | { readonly kind: 'sparse'; readonly index: number; readonly times: number }
  /** Each read makes a new one, so that nothing is ever seen twice. */
  | { readonly kind: 'endless'; readonly by: 'getters' | 'proxy' | 'toJSON' | 'iterator' | 'map' | 'set' }
  | { readonly kind: 'json'; readonly value: fc.JsonValue }
  | { readonly kind: 'both'; readonly plans: readonly HostilePlan[] }

const leaf = fc.oneof(
  fc.record({ kind: fc.constant('shared' as const), depth: fc.integer({ min: 1, max: 60 }), asArray: fc.boolean() }),
  fc.record({
    kind: fc.constantFrom(
      ...(['circle', 'throwing getter', 'throwing toJSON', 'throwing proxy'] as const),
      ...(['revoked proxy', 'big integer', 'symbol', 'function'] as const),
    ),
  }),
  fc.record({
    kind: fc.constant('sparse' as const),
    index: fc.constantFrom(0, 999, 999_998, 1_000_001, 4_294_967_294),
    times: fc.integer({ min: 1, max: 50 }),
  }),
  fc.record({
    kind: fc.constant('endless' as const),
    by: fc.constantFrom(
      'getters' as const,
      'proxy' as const,
      'toJSON' as const,
      'iterator' as const,
      'map' as const,
      'set' as const,
    ),
  }),
  fc.record({ kind: fc.constant('json' as const), value: fc.jsonValue({ maxDepth: 2 }) }),
)

const hostilePlans: fc.Arbitrary<HostilePlan> = fc.oneof(
  { weight: 3, arbitrary: leaf },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('both' as const), plans: fc.array(leaf, { maxLength: 3 }) }) },
)

/** Reading more than this of one value is work without a bound: reads then throw, so that a run ends which would go on for ever. */
const MAX_READS = 1_000_000

/** Makes the value of a plan; `reads` counts what is read of it. */
function hostileValue(plan: HostilePlan, reads: { count: number }): unknown {
  const read = (): void => {
    reads.count += 1
    if (reads.count > MAX_READS) throw new Error('it is read without an end')
  }
  switch (plan.kind) {
    case 'shared': {
      let value: object = { end: true }
      for (let level = 0; level < plan.depth; level += 1) value = plan.asArray ? [value, value] : { a: value, b: value }
      return value
    }
    case 'circle': {
      const circle: Record<string, unknown> = {}
      return Object.assign(circle, { self: circle, list: [circle, circle] })
    }
    case 'sparse':
      return Array.from({ length: plan.times }, () => {
        const sparse: unknown[] = []
        sparse[plan.index] = 'x'
        return sparse
      })
    case 'throwing getter':
      return {
        get message(): string {
          throw new Error('no')
        },
        get a(): string {
          // eslint-disable-next-line @typescript-eslint/only-throw-error -- a caller may throw anything
          throw undefined
        },
      }
    case 'throwing toJSON':
      return {
        toJSON: () => {
          throw new Error('no')
        },
      }
    case 'throwing proxy': {
      const refuse = (): never => {
        throw new Error('no')
      }
      return new Proxy(
        {},
        { get: refuse, has: refuse, ownKeys: refuse, getPrototypeOf: refuse, getOwnPropertyDescriptor: refuse },
      )
    }
    case 'revoked proxy': {
      const { proxy, revoke } = Proxy.revocable([], {})
      revoke()
      return proxy
    }
    case 'endless':
      return endless(plan.by, read)
    case 'big integer':
      return 10n ** 400n
    case 'symbol':
      return Symbol('s')
    case 'function':
      return () => 1
    case 'json':
      return plan.value
    case 'both':
      return { parts: plan.plans.map((each) => hostileValue(each, reads)) }
  }
}

function endless(by: Extract<HostilePlan, { kind: 'endless' }>['by'], read: () => void): unknown {
  const next = (): unknown => {
    read()
    return endless(by, read)
  }
  const iterate = function* () {
    for (;;) {
      read()
      yield 1
    }
  }
  switch (by) {
    case 'getters':
      return { get a() { return next() }, get b() { return next() } } // prettier-ignore
    case 'proxy':
      return new Proxy({ a: 1, b: 1 }, { get: (_target, key) => (key === 'a' || key === 'b' ? next() : undefined) })
    case 'toJSON':
      return { toJSON: () => ({ a: next(), b: next() }) }
    case 'iterator':
      return Object.assign([1], { [Symbol.iterator]: iterate })
    case 'map':
      return Object.assign(new Map(), { [Symbol.iterator]: iterate, entries: iterate, forEach: iterate })
    case 'set':
      return Object.assign(new Set(), { [Symbol.iterator]: iterate, values: iterate, forEach: iterate })
  }
}

/** Where a value enters. */
const places = [
  'returned',
  'thrown',
  'rejected',
  'reported',
  'asked',
  'schema',
  'answered',
  'params',
  'queued',
  'completed',
  'failed',
  'spent',
] as const

/** How a task may end whose end the value is; elsewhere a cancellation may end it. */
const ends: Partial<Record<(typeof places)[number], readonly string[]>> = {
  returned: ['completed', 'failed'],
  completed: ['completed', 'failed'],
  thrown: ['failed'],
  rejected: ['failed'],
  failed: ['failed'],
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export interface HostileValuesOptions {
  /** Wraps what a task is given: for planted faults. */
  readonly alter?: (manager: AsyncTaskManager) => AsyncTaskManager
}

/** A1: a value of any kind has its task end once, in bounded work. */
export function hostileValuesProperty({
  alter = (manager) => manager,
}: HostileValuesOptions = {}): fc.IAsyncPropertyWithHooks<[HostilePlan, (typeof places)[number]]> {
  return fc.asyncProperty(hostilePlans, fc.constantFrom(...places), async (plan, place) => {
    const reads = { count: 0 }
    const store = memoryStore()
    const seen: string[] = []
    const clock = createManualClock()
    const manager = alter(
      new AsyncTaskManager({ store, clock, maxAsyncTasks: 1, graceMs: 0, whenFull: 'queue', onError: () => undefined }),
    )
    manager.transitions$.subscribe(({ kind, taskId, to }) => {
      if (kind === 'status' && taskId === 'a' && to !== 'running' && to !== 'queued') seen.push(to)
    })
    try {
      const isRefused = await enter(manager, place, hostileValue(plan, reads))
      for (let count = 0; count < 5; count += 1) await turn()
      // A question or a queue may have kept it.
      manager.cancelTask('a')
      await turn()
      const record = manager.getTask('a')
      if (isRefused && record === undefined) return
      if (record === undefined || record.status === 'running' || record.status === 'queued') {
        throw new Error('it has not ended')
      }
      if (seen.length !== 1) throw new Error(`it has ended ${seen.length} times: ${seen.join()}`)
      if (ends[place]?.includes(record.status) === false) throw new Error(`${place}: it is ${record.status}`)
      if (preview(record).length > 80) throw new Error('it cannot be shown')
      const row = store.contents().tasks.find(({ id }) => id === 'a')
      if (row?.status !== record.status) throw new Error(`${String(row?.status)} is stored, and it is ${record.status}`)
      const reminder = manager.lease()
      if (record.status !== 'cancelled' && reminder === undefined) throw new Error('nothing is owed for it')
      reminder?.release()
    } finally {
      await manager.dispose()
    }
    if (reads.count > MAX_READS) throw new Error('it was read without an end')
  })
}

/** Passes the value to the task `a`. Returns whether it was refused with an error. */
async function enter(manager: AsyncTaskManager, place: (typeof places)[number], value: unknown): Promise<boolean> {
  const any = value as never
  const input: LaunchTaskInput & { readonly id: string } = { id: 'a', subagentName: 's', goalPrompt: 'g' }
  const runners: Partial<Record<typeof place, Runner>> = {
    returned: () => any,
    thrown: () => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- a caller may throw anything
      throw any
    },
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- a caller may reject with anything
    rejected: () => Promise.reject(any),
    reported: (_input, context) => {
      context.report(any)
      return undefined
    },
    asked: async (_input, context) => (await context.ask(any)).action,
    schema: async (_input, context) => (await context.ask({ message: 'm', schema: any })).action,
    answered: async (_input, context) => (await context.ask('m')).action,
    spent: (_input, context) => {
      context.spend(any)
      return undefined
    },
  }
  const run: Runner = runners[place] ?? (() => undefined)
  try {
    switch (place) {
      case 'params':
        manager.launch({ ...input, context: any }, run)
        break
      case 'queued': {
        let end = (): void => undefined
        manager.launch(
          { ...input, id: 'first' },
          () => new Promise<undefined>((resolve) => (end = () => resolve(undefined))),
        )
        await turn()
        try {
          manager.launch({ ...input, context: any }, run)
        } finally {
          end()
        }
        break
      }
      case 'completed':
        manager.registerTask(input)
        manager.completeTask('a', any)
        break
      case 'failed':
        manager.registerTask(input)
        manager.failTask('a', any)
        break
      default:
        manager.launch(input, run)
    }
    await turn()
    if (place === 'answered') {
      const question = manager.getTask('a')
      const [asked] = question?.status === 'running' ? (question.questions ?? []) : []
      if (asked !== undefined) manager.answerTask('a', asked.id, any)
    }
    return false
  } catch {
    return true
  }
}
