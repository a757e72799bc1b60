/**
 * The actions on a manager, as data. The model and the real manager take the same actions: those of the commands, and those of the
 * scripts that handlers, subscribers and abort listeners run when they are called.
 *
 * It is longer than most files because every kind of action is here twice: as a type and as an arbitrary.
 */
import fc from 'fast-check'
import type { RetryReason } from '../../src/protocol/retry-policy.js'
import { JUMPS } from '../support/jumping-clock.js'
import { nth, record, type Nth } from './drawing.js'

/** A running or a retained task, counted back from the latest registered, or the task with an id. */
export type Target = { readonly of: 'running' | 'all'; readonly nth: Nth } | { readonly id: string }

export interface TaskFields {
  readonly id?: string
  readonly owner?: string
  readonly controller?: string
  readonly timeoutMs?: number
  readonly graceMs?: number
  /** The task whose run launches it. */
  readonly parent?: Target
}

/** What only a launch has. */
export interface LaunchFields extends TaskFields {
  readonly whenFull?: 'queue'
  readonly priority?: number
  readonly concurrencyKey?: 'one' | 'two'
  readonly retry?: {
    readonly attempts: number
    readonly on: readonly RetryReason[]
    /** Each wait is as long as the first. */
    readonly backoff: { readonly initialMs: number; readonly factor: 1; readonly jitter: false }
  }
  readonly budget?: { readonly steps: number; readonly wrapUpMs: number }
  readonly after?: readonly Target[]
  readonly onFailedDependency?: 'run'
}

export type StreamName = 'transitions' | 'settled' | 'owed' | 'running' | 'progress' | 'actor'

/** The actions of a callback. */
export type Script = readonly Action[]

export type Action =
  | { readonly do: 'register'; readonly fields: TaskFields & { readonly id: string }; readonly reservation?: Nth }
  | {
      readonly do: 'launch'
      readonly fields: LaunchFields
      readonly reservation?: Nth
      readonly isForeground?: boolean
      readonly isRefused?: boolean
      readonly takesMessages?: boolean
    }
  | { readonly do: 'complete'; readonly task: Target; readonly value: number }
  | { readonly do: 'fail'; readonly task: Target; readonly reason: number }
  | { readonly do: 'cancel'; readonly task: Target; readonly reason?: string }
  | { readonly do: 'cancelAll'; readonly owner?: string; readonly reason?: string }
  | { readonly do: 'abort'; readonly controller: string }
  | { readonly do: 'reserve'; readonly ttlMs?: number }
  | { readonly do: 'cancelReservation'; readonly reservation: Nth }
  | { readonly do: 'setMax'; readonly max: number }
  | { readonly do: 'notify'; readonly task: Target }
  | { readonly do: 'markAllNotified' }
  | { readonly do: 'remind'; readonly owner?: string }
  | { readonly do: 'lease'; readonly owner?: string; readonly isExclusive?: boolean }
  | { readonly do: 'leaseReminder'; readonly owner?: string; readonly isExclusive?: boolean }
  | { readonly do: 'acknowledge'; readonly lease: Nth }
  | { readonly do: 'release'; readonly lease: Nth }
  | { readonly do: 'read'; readonly task: Target }
  | { readonly do: 'releaseOwner'; readonly owner: string; readonly to?: string }
  | { readonly do: 'transfer'; readonly owner: string; readonly to: string; readonly tasks: readonly Target[] }
  | { readonly do: 'progress'; readonly task: Target; readonly value: number }
  | { readonly do: 'append'; readonly task: Target; readonly text: string }
  | { readonly do: 'readOutput'; readonly task: Target; readonly cursor?: number }
  | { readonly do: 'prefix'; readonly prefix: string }
  | { readonly do: 'on'; readonly status: 'completed' | 'failed' | 'cancelled'; readonly script: Script }
  | { readonly do: 'subscribe'; readonly stream: StreamName; readonly script: Script }
  | { readonly do: 'listen'; readonly controller: string; readonly script: Script }
  | { readonly do: 'unsubscribe'; readonly subscription: Nth }
  | { readonly do: 'begin'; readonly run: Nth }
  | { readonly do: 'say'; readonly run: Nth; readonly text: string }
  | { readonly do: 'return'; readonly run: Nth; readonly value: number }
  | { readonly do: 'reject'; readonly run: Nth; readonly reason: number }
  | { readonly do: 'abandon'; readonly run: Nth }
  | { readonly do: 'spend'; readonly run: Nth }
  | { readonly do: 'ask'; readonly run: Nth }
  | { readonly do: 'withdraw'; readonly asked: Nth }
  | { readonly do: 'answer'; readonly task: Target; readonly question: number }
  | { readonly do: 'send'; readonly task: Target }
  | { readonly do: 'detach'; readonly task: Target }
  | { readonly do: 'pause'; readonly owner?: string }
  | { readonly do: 'resume'; readonly owner?: string }
  | { readonly do: 'take'; readonly run: Nth }
  | {
      readonly do: 'wait'
      readonly tasks: readonly Target[]
      readonly mode: 'all' | 'any'
      readonly timeoutMs?: number
    }
  | { readonly do: 'abortWait'; readonly wait: Nth }
  | { readonly do: 'bad'; readonly input: BadInput }
  | { readonly do: 'dispose' }
  | { readonly do: 'look' }
  | { readonly do: 'throw' }

/** An action that only a command may take, besides those of scripts. */
export type TopAction =
  Action | { readonly do: 'advance'; readonly ms: number } | { readonly do: 'jump'; readonly ms: number }

/** What a run may return, and what the record keeps. */
export const outputs: readonly { readonly given: unknown; readonly kept: object }[] = [
  { given: { final_message: 'done', emitted_vars: { n: 1 } }, kept: { final_message: 'done', emitted_vars: { n: 1 } } },
  { given: {}, kept: {} },
  { given: undefined, kept: {} },
  { given: null, kept: {} },
  { given: 'text', kept: { final_message: 'text' } },
  { given: 42, kept: { final_message: '42' } },
  { given: [1, { b: 2n }], kept: { final_message: '[1,{"b":"2"}]' } },
  { given: { deep: { list: [new Date(0)] } }, kept: { deep: { list: ['1970-01-01T00:00:00.000Z'] } } },
  { given: Object.defineProperty({}, 'x', { enumerable: true, get: throwing }), kept: { x: '[unreadable: no]' } },
  // Longer than REMINDER_CHARS allows.
  { given: { final_message: 'long '.repeat(100) }, kept: { final_message: 'long '.repeat(100) } },
]

/** The index of the output whose reminder is cut. */
export const LONG_OUTPUT = 9

/** What a run may fail with, and the error text and name of the record. */
export const reasons: readonly {
  readonly given: unknown
  readonly text: string
  readonly name?: string
  readonly code?: string
}[] = [
  { given: new Error('broken'), text: 'broken' },
  { given: 'plain words', text: 'plain words' },
  { given: undefined, text: 'The run failed without saying why.' },
  { given: new TypeError(''), text: 'TypeError', name: 'TypeError' },
  { given: { message: 'in a message' }, text: 'in a message' },
  { given: 42, text: 'The run failed with 42.' },
  { given: Object.assign(new Error(), { message: {} }), text: 'Error' },
  {
    given: Object.defineProperty(new Error(), 'message', { get: throwing }),
    text: 'The run failed with an object that cannot be shown.',
  },
  { given: Object.assign(new Error('too fast'), { code: 'RATE_LIMITED' }), text: 'too fast', code: 'RATE_LIMITED' },
]

/** The index of the reason that may be the last of a run, and not of its task. */
export const RATE_LIMITED = 8

function throwing(): never {
  throw new Error('no')
}

/** Calls with invalid arguments, and the code of the error they must throw, or what they must return. */
export const badInputs = {
  'register nothing': 'INVALID_INPUT',
  'register without a name': 'INVALID_INPUT',
  'register an empty id': 'INVALID_INPUT',
  'register a number as id': 'INVALID_INPUT',
  'register a negative deadline': 'INVALID_INPUT',
  'register an endless deadline': 'INVALID_INPUT',
  'register a controller that is none': 'INVALID_INPUT',
  'register for an empty owner': 'INVALID_INPUT',
  'launch nothing': 'INVALID_INPUT',
  'launch without a runner': 'INVALID_INPUT',
  'reserve for a negative time': 'INVALID_INPUT',
  'reserve for a word': 'INVALID_INPUT',
  'release an owner that is none': 'INVALID_INPUT',
  'release an owner to a number': 'INVALID_INPUT',
  'lease for a number': 'INVALID_INPUT',
  'read from a cursor that is none': 'INVALID_INPUT',
  'call what is no function': 'INVALID_INPUT',
  'limit of a half': 'INVALID_SETTING',
  'limit of minus two': 'INVALID_SETTING',
  'limit that is no number': 'INVALID_SETTING',
  'limit that is text': 'INVALID_SETTING',
  'limit that is endless': 'INVALID_SETTING',
  'complete a number': false,
  'fail nothing': false,
  'cancel nothing': false,
  'cancel a reservation that is none': false,
} as const satisfies Record<string, string | false>

export type BadInput = keyof typeof badInputs

export const OWNERS = ['main', 'sub', 'other'] as const
const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'ab', 'agent-1', 'agent-2', 'agent-3', '__proto__', 'a.b', '*'] as const
const CONTROLLERS = ['c1', 'c2', 'c3'] as const

// Arbitraries. Their weights are chosen so that most of the actions have an effect.

const id = fc.constantFrom(...IDS)
const owner = fc.constantFrom(...OWNERS)
const duration = fc.constantFrom(0, 1, 5, 10)
const controller = fc.constantFrom(...CONTROLLERS)
const value = fc.nat(outputs.length - 1)
const reason = fc.nat(reasons.length - 1)

const rarely = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })
const often = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 2 })

const target = (of: 'running' | 'all'): fc.Arbitrary<Target> =>
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ of: fc.constant(of), nth }) },
    { weight: 1, arbitrary: fc.record({ id }) },
  )
const runningTask = target('running')
const anyTask = target('all')

const action = <A extends Action['do']>(
  name: A,
  shape: {
    [K in keyof Omit<Extract<Action, { do: A }>, 'do'>]-?: fc.Arbitrary<Extract<Action, { do: A }>[K] | undefined>
  },
): fc.Arbitrary<Action> => record<Action>({ do: fc.constant(name), ...shape } as never)

const times = (n: number, arbitraries: fc.Arbitrary<Action>[]): fc.Arbitrary<Action>[] =>
  Array.from({ length: n }, () => arbitraries).flat()

const fields = (given: fc.Arbitrary<string | undefined>): fc.Arbitrary<TaskFields> =>
  record<TaskFields>({
    id: given,
    owner: often(owner),
    controller: rarely(controller),
    timeoutMs: rarely(duration),
    graceMs: rarely(duration),
  })

const retry = record<NonNullable<LaunchFields['retry']>>({
  attempts: fc.integer({ min: 1, max: 3 }),
  on: fc.constantFrom<RetryReason[]>(['rate-limited'], ['rate-limited', 'timeout', 'start-failed']),
  backoff: record({ initialMs: duration, factor: fc.constant(1 as const), jitter: fc.constant(false as const) }),
})
const budget = record<NonNullable<LaunchFields['budget']>>({ steps: fc.constantFrom(0, 1), wrapUpMs: duration })

const launchFields = (given: fc.Arbitrary<string | undefined>): fc.Arbitrary<LaunchFields> =>
  record<LaunchFields>({
    id: given,
    owner: often(owner),
    controller: rarely(controller),
    timeoutMs: rarely(duration),
    graceMs: rarely(duration),
    whenFull: often(fc.constant('queue' as const)),
    priority: often(fc.nat(1)),
    concurrencyKey: fc.option(fc.constantFrom('one' as const, 'two' as const), { nil: undefined, freq: 1 }),
    retry: often(retry),
    budget: often(budget),
    after: fc.option(fc.array(anyTask, { minLength: 1, maxLength: 2 }), { nil: undefined, freq: 2 }),
    onFailedDependency: often(fc.constant('run' as const)),
  })

const launch = action('launch', {
  fields: launchFields(often(id)),
  reservation: rarely(nth),
  isForeground: rarely(fc.constant(true)),
  isRefused: rarely(fc.constant(true)),
  takesMessages: often(fc.constant(true)),
})

const begin = action('begin', { run: nth })
const talk: fc.Arbitrary<Action>[] = [
  action('ask', { run: nth }),
  action('answer', { task: runningTask, question: fc.integer({ min: 1, max: 3 }) }),
  action('send', { task: anyTask }),
  action('detach', { task: anyTask }),
  action('take', { run: nth }),
]
const runs = [begin, action('spend', { run: nth }), ...talk]

const beginnings: fc.Arbitrary<Action>[] = [
  launch,
  action('register', { fields: fields(id) as fc.Arbitrary<TaskFields & { id: string }>, reservation: often(nth) }),
  action('launch', {
    fields: fields(often(id)),
    reservation: often(nth),
    isForeground: rarely(fc.constant(true)),
    isRefused: rarely(fc.constant(true)),
    takesMessages: fc.constant(undefined),
  }),
  action('launch', {
    fields: record<LaunchFields>({
      id: often(id),
      timeoutMs: rarely(duration),
      parent: runningTask,
      retry: rarely(retry),
    }),
    reservation: fc.constant(undefined),
    isForeground: rarely(fc.constant(true)),
    isRefused: rarely(fc.constant(true)),
    takesMessages: fc.constant(undefined),
  }),
  // Not in place: whether such a wait would end is not modelled.
  action('launch', {
    fields: record<LaunchFields>({
      id: often(id),
      parent: runningTask,
      concurrencyKey: fc.constantFrom('one' as const, 'two' as const),
    }),
    reservation: fc.constant(undefined),
    isForeground: fc.constant(undefined),
    isRefused: fc.constant(undefined),
    takesMessages: fc.constant(undefined),
  }),
]

const endings: fc.Arbitrary<Action>[] = [
  action('complete', { task: runningTask, value }),
  action('fail', { task: runningTask, reason }),
  action('cancel', { task: runningTask, reason: rarely(fc.constant('why')) }),
  action('cancelAll', { owner, reason: rarely(fc.constant('why')) }),
  action('return', { run: nth, value }),
  action('reject', { run: nth, reason }),
  action('abort', { controller }),
]

const deliveries: fc.Arbitrary<Action>[] = [
  action('lease', { owner: rarely(owner), isExclusive: often(fc.boolean()) }),
  action('leaseReminder', { owner: often(owner), isExclusive: often(fc.boolean()) }),
  action('acknowledge', { lease: nth }),
  action('release', { lease: nth }),
  action('notify', { task: anyTask }),
  action('wait', {
    tasks: fc.array(anyTask, { maxLength: 3 }),
    mode: fc.constantFrom('all', 'any'),
    timeoutMs: rarely(duration),
  }),
]

const transfer = action('transfer', { owner, to: owner, tasks: fc.array(anyTask, { minLength: 1, maxLength: 3 }) })

const others: fc.Arbitrary<Action>[] = [
  action('reserve', { ttlMs: often(duration) }),
  action('reserve', { ttlMs: often(duration) }),
  action('cancelReservation', { reservation: nth }),
  action('setMax', { max: fc.integer({ min: -1, max: 3 }) }),
  action('markAllNotified', {}),
  action('remind', { owner: often(owner) }),
  action('read', { task: anyTask }),
  action('releaseOwner', { owner, to: often(owner) }),
  action('releaseOwner', { owner, to: often(owner) }),
  transfer,
  action('progress', { task: runningTask, value: fc.nat(3) }),
  action('append', { task: runningTask, text: fc.constantFrom('', 'x', 'line\n') }),
  action('readOutput', { task: anyTask, cursor: often(fc.nat(6)) }),
  action('pause', { owner: often(owner) }),
  action('resume', { owner: often(owner) }),
  action('resume', { owner: often(owner) }),
  action('prefix', { prefix: fc.constantFrom('', 'a', 'ab', 'agent', 'z') }),
  action('unsubscribe', { subscription: nth }),
  action('unsubscribe', { subscription: nth }),
  action('begin', { run: nth }),
  action('begin', { run: nth }),
  action('say', { run: nth, text: fc.constantFrom('y', 'said\n') }),
  action('abandon', { run: nth }),
  action('abandon', { run: nth }),
  action('abortWait', { wait: nth }),
  action('abortWait', { wait: nth }),
  action('withdraw', { asked: nth }),
  action('bad', { input: fc.constantFrom(...(Object.keys(badInputs) as BadInput[])) }),
]

/** All actions but subscriptions. */
const plain = [...times(6, beginnings), ...times(4, endings), ...times(3, deliveries), ...times(2, runs), ...others]

const subscribing = (script: fc.Arbitrary<Script>): fc.Arbitrary<Action>[] => [
  action('on', { status: fc.constantFrom('completed', 'failed', 'cancelled'), script }),
  action('subscribe', {
    stream: fc.constantFrom('transitions', 'settled', 'owed', 'running', 'progress', 'actor'),
    script,
  }),
  action('listen', { controller, script }),
]

const inScripts = [
  ...plain,
  ...times(2, subscribing(fc.constant([]))),
  ...times(3, [action('look', {}), action('throw', {}), action('unsubscribe', { subscription: nth })]),
]

const script: fc.Arbitrary<Script> = fc.oneof(
  { weight: 60, arbitrary: fc.array(fc.oneof(...inScripts), { minLength: 1, maxLength: 4, size: 'max' }) },
  { weight: 1, arbitrary: fc.tuple(action('dispose', {}), fc.oneof(...plain)) },
)

// Rare: after it, other actions have little effect.
const disposal = fc.oneof({ weight: 3, arbitrary: fc.oneof(...plain) }, { weight: 1, arbitrary: action('dispose', {}) })

const advance: fc.Arbitrary<TopAction> = record<TopAction>({
  do: fc.constant('advance'),
  ms: fc.constantFrom(0, 1, 4, 5, 10, 30),
})

/** Somebody sets the clock. */
const jump: fc.Arbitrary<TopAction> = record<TopAction>({ do: fc.constant('jump'), ms: fc.constantFrom(...JUMPS) })

/** The actions of the commands. */
export const topActions: fc.Arbitrary<TopAction>[] = [
  ...plain,
  ...times(4, subscribing(script)),
  disposal,
  advance,
  advance,
  advance,
  jump,
]

const namesake = fields(fc.constantFrom('a', 'a', 'b'))

/** Few ids, used again and again, and runs that go on after their tasks have ended. */
export const namesakeActions: fc.Arbitrary<TopAction>[] = [
  ...times(6, [
    action('launch', {
      fields: namesake,
      reservation: fc.constant(undefined),
      isForeground: fc.constant(true),
      isRefused: fc.constant(undefined),
      takesMessages: fc.constant(undefined),
    }),
    action('cancel', { task: runningTask, reason: rarely(fc.constant('why')) }),
  ]),
  ...times(4, [action('return', { run: fc.nat(2), value })]),
  ...times(2, [action('complete', { task: runningTask, value }), action('markAllNotified', {})]),
  action('register', {
    fields: namesake as fc.Arbitrary<TaskFields & { id: string }>,
    reservation: fc.constant(undefined),
  }),
  action('reject', { run: nth, reason }),
  action('begin', { run: nth }),
  action('abandon', { run: nth }),
  action('wait', { tasks: fc.array(anyTask, { maxLength: 2 }), mode: fc.constant('any'), timeoutMs: rarely(duration) }),
  action('on', { status: fc.constantFrom('completed', 'cancelled'), script }),
  advance,
]

const twoOwners = fc.constantFrom('main', 'sub')

/** The ledger: leases, late acceptances, released owners, cut messages. */
export const ledgerActions: fc.Arbitrary<TopAction>[] = [
  ...times(3, [
    action('register', {
      fields: record<TaskFields & { id: string }>({ id, owner: rarely(fc.constant('sub')) }),
      reservation: fc.constant(undefined),
    }),
    action('complete', { task: runningTask, value: fc.constantFrom(0, LONG_OUTPUT) }),
    action('leaseReminder', { owner: rarely(twoOwners), isExclusive: fc.boolean() }),
  ]),
  action('cancel', { task: runningTask, reason: rarely(fc.constant('why')) }),
  ...times(2, deliveries.slice(2)),
  action('lease', { owner: rarely(twoOwners), isExclusive: fc.boolean() }),
  action('read', { task: anyTask }),
  action('markAllNotified', {}),
  action('releaseOwner', { owner: twoOwners, to: fc.constantFrom(undefined, undefined, 'main', 'sub') }),
  transfer,
  action('abortWait', { wait: nth }),
  action('setMax', { max: fc.nat(2) }),
  ...subscribing(script),
]

/** Tasks that wait, are repeated, exceed a budget, ask and are told something (F6 to F10). */
export const waitingActions: fc.Arbitrary<TopAction>[] = [
  ...times(6, [launch]),
  ...times(3, [
    ...runs,
    action('return', { run: nth, value: fc.constantFrom(0, 1) }),
    action('reject', { run: nth, reason: fc.constantFrom(0, RATE_LIMITED, RATE_LIMITED) }),
  ]),
  ...[advance, advance, advance],
  ...times(2, [
    action('cancel', { task: anyTask, reason: rarely(fc.constant('why')) }),
    action('leaseReminder', { owner: often(owner), isExclusive: fc.constant(false) }),
    action('withdraw', { asked: nth }),
  ]),
  action('register', { fields: fields(id) as fc.Arbitrary<TaskFields & { id: string }>, reservation: often(nth) }),
  action('complete', { task: anyTask, value: fc.constantFrom(0, 1) }),
  action('fail', { task: anyTask, reason: fc.constant(0) }),
  ...times(2, [action('pause', { owner: often(owner) }), action('resume', { owner: often(owner) })]),
  action('cancelAll', { owner, reason: fc.constant(undefined) }),
  action('abort', { controller }),
  action('abandon', { run: nth }),
  action('reserve', { ttlMs: often(duration) }),
  action('cancelReservation', { reservation: nth }),
  action('setMax', { max: fc.integer({ min: -1, max: 2 }) }),
  action('releaseOwner', { owner, to: often(owner) }),
  transfer,
  action('acknowledge', { lease: nth }),
  action('release', { lease: nth }),
  action('progress', { task: anyTask, value: fc.nat(3) }),
  action('append', { task: anyTask, text: fc.constant('x') }),
  action('wait', {
    tasks: fc.array(anyTask, { maxLength: 2 }),
    mode: fc.constantFrom('all', 'any'),
    timeoutMs: rarely(duration),
  }),
  ...subscribing(script),
]

/** Runs that ask and are told something (F6, F7). */
export const talkingActions: fc.Arbitrary<TopAction>[] = [
  ...times(2, [
    action('launch', {
      fields: record<LaunchFields>({ id: often(id) }),
      reservation: fc.constant(undefined),
      isForeground: fc.constant(undefined),
      isRefused: fc.constant(undefined),
      takesMessages: often(fc.constant(true)),
    }),
    ...[begin, ...talk],
    action('answer', { task: runningTask, question: fc.constantFrom(1, 1, 2) }),
    action('leaseReminder', { owner: fc.constant(undefined), isExclusive: fc.constant(false) }),
    action('acknowledge', { lease: nth }),
    action('release', { lease: nth }),
  ]),
  action('withdraw', { asked: nth }),
  action('cancel', { task: runningTask, reason: fc.constant(undefined) }),
  action('return', { run: nth, value: fc.constant(0) }),
  action('releaseOwner', { owner: fc.constant('main'), to: fc.constantFrom('main', 'sub', undefined) }),
  transfer,
]

/** The options of a manager. */
export interface RegistrySettings {
  readonly maxAsyncTasks: number
  readonly notifyCancelled: boolean
  readonly graceMs: number
  readonly queue?: { readonly max?: number; readonly maxWaitMs?: number; readonly agingMs?: number }
}

export const registrySettings: fc.Arbitrary<RegistrySettings> = fc.record({
  maxAsyncTasks: fc.constantFrom(0, 1, 1, 2, 2, 3, 4, -1),
  notifyCancelled: fc.boolean(),
  graceMs: duration,
})

/** Few slots, and a queue of a few places. */
export const crowdedSettings: fc.Arbitrary<RegistrySettings> = fc.record({
  maxAsyncTasks: fc.constantFrom(0, 1, 1, 2),
  notifyCancelled: fc.boolean(),
  graceMs: duration,
  queue: record<NonNullable<RegistrySettings['queue']>>({
    max: fc.constantFrom(1, 3, 100),
    maxWaitMs: rarely(fc.constantFrom(0, 5, 20)),
    agingMs: rarely(fc.constantFrom(-1, 1, 5)),
  }),
})

/** No limit. */
export const roomySettings: fc.Arbitrary<RegistrySettings> = fc.record({
  maxAsyncTasks: fc.constant(-1),
  notifyCancelled: fc.boolean(),
  graceMs: duration,
})

/** A history that keeps at most two records that owe nothing. */
export const forgetfulSettings: fc.Arbitrary<RegistrySettings> = fc.record({
  maxAsyncTasks: fc.constantFrom(0, 1),
  notifyCancelled: fc.constant(false),
  graceMs: duration,
})

/** A history that keeps no record that owes nothing. */
export const obliviousSettings: fc.Arbitrary<RegistrySettings> = fc.record({
  maxAsyncTasks: fc.constant(0),
  notifyCancelled: fc.constant(false),
  graceMs: duration,
})
