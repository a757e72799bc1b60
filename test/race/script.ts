/**
 * The scripts of a race: small steps of a host, its model and its tasks. A step names its target by a number, modulo the number of
 * targets, so that every script can run, and every shrunk one too.
 */
import fc from 'fast-check'

/**
 * How a host shows that its agent is busy: with a function; with a function and `notifyIdle`; with an Observable that replays its
 * latest value; with one that does not.
 */
export type HostKind = 'asked' | 'notifying' | 'replaying' | 'live'

export type Step =
  | { readonly do: 'register'; readonly owner: number }
  | { readonly do: 'complete' | 'fail' | 'cancel'; readonly nth: number }
  | { readonly do: 'end all' }
  | { readonly do: 'busy' | 'idle' | 'notify idle' | 'break' | 'end'; readonly host: number }
  | { readonly do: 'subscribe' | 'unsubscribe' | 'resubscribe'; readonly trigger: number }
  /** `updateCallbacks`; `update away`: while it is unsubscribed for a moment. */
  | {
      readonly do: 'update' | 'update away'
      readonly trigger: number
      readonly kind: HostKind
      readonly isBusy: boolean
    }
  | { readonly do: 'remind' | 'remind alone'; readonly owner: number }
  | { readonly do: 'accept' | 'refuse'; readonly nth: number }
  | { readonly do: 'mark notified'; readonly nth: number }
  | { readonly do: 'wait'; readonly mode: 'all' | 'any'; readonly nth: number; readonly ms: number | undefined }
  | { readonly do: 'abort wait'; readonly nth: number }
  /** Reads the result of the handle of a task. */
  | { readonly do: 'read result'; readonly nth: number }
  | { readonly do: 'release owner'; readonly owner: number; readonly to: number | undefined }
  | { readonly do: 'transfer'; readonly nth: number; readonly to: number }
  | { readonly do: 'stop listening' }
  | { readonly do: 'dispose' }
  | { readonly do: 'advance'; readonly ms: number }

/** How a turn ends. `late …`: after the delivery has expired or, without a deadline, at the end of the script. */
type TurnOutcome = 'accept' | 'refuse' | 'throw' | 'accept at once' | 'hang' | 'late accept' | 'late refuse'

export interface TurnScript {
  /** The steps before `triggerAgentTurn` returns. */
  readonly atOnce: readonly Step[]
  /** The steps while the turn is in flight. */
  readonly meanwhile: readonly Step[]
  readonly outcome: TurnOutcome
}

export interface TriggerScript {
  readonly owner: number
  readonly kind: HostKind
  readonly isBusy: boolean
  readonly isSubscribed: boolean
  readonly coalesceMs: number
  readonly timeoutMs: number | undefined
}

/** The steps of the host's callbacks: the first call takes the first step, and so on. */
export interface Hooks {
  readonly busy: readonly Step[]
  readonly error: readonly Step[]
  readonly abort: readonly Step[]
  readonly handler: readonly Step[]
}

export interface RaceScript {
  /** Whether the result of a cancelled task is owed. */
  readonly notifyCancelled: boolean
  /** The results of completed tasks are so long that only two fit into a message. */
  readonly isLong: boolean
  readonly triggers: readonly TriggerScript[]
  /** The owners of the tasks that are registered at the start. */
  readonly tasks: readonly number[]
  /** The sequences that race with each other. */
  readonly actors: readonly (readonly Step[])[]
  /** The turns, in the order in which they start. Later turns are accepted. */
  readonly turns: readonly TurnScript[]
  readonly hooks: Hooks
}

export const OWNERS = ['main', 'sub'] as const

/** A step in a few words, for the printed schedule. */
export function describeStep(step: Step): string {
  const { do: verb, ...rest } = step
  const operands = Object.entries(rest).flatMap(([name, value]) => (value === undefined ? [] : `${name}=${value}`))
  return [verb, ...operands].join(' ')
}

const nth = fc.nat(3)
const owner = fc.constantFrom(0, 0, 0, 0, 0, 1)
const kind = fc.constantFrom<HostKind[]>('asked', 'notifying', 'replaying', 'live')
const trigger = fc.nat(2)
const verb = <V extends string>(...verbs: V[]): fc.Arbitrary<V> => fc.constantFrom(...verbs)

const tasksStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: verb('register'), owner }) },
  { weight: 6, arbitrary: fc.record({ do: verb('complete', 'complete', 'fail', 'fail', 'cancel'), nth }) },
  { weight: 1, arbitrary: fc.record({ do: verb('end all') }) },
)

const hostStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: verb('busy', 'idle', 'idle', 'idle', 'notify idle'), host: trigger }) },
  { weight: 1, arbitrary: fc.record({ do: verb('break', 'end'), host: trigger }) },
)

const triggerStep: fc.Arbitrary<Step> = fc.oneof({
  weight: 3,
  arbitrary: fc.record({ do: verb('subscribe', 'unsubscribe', 'resubscribe'), trigger }),
})

const updateStep: fc.Arbitrary<Step> = fc.record({
  do: verb('update', 'update away'),
  trigger,
  kind,
  isBusy: fc.boolean(),
})

const messageStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: verb('remind', 'remind', 'remind alone'), owner }) },
  { weight: 4, arbitrary: fc.record({ do: verb('accept', 'refuse'), nth }) },
  { weight: 2, arbitrary: fc.record({ do: verb('mark notified'), nth }) },
)

const waitStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: verb('wait'),
    mode: verb('all', 'any'),
    nth,
    ms: fc.constantFrom(undefined, undefined, 0, 1000, 4000),
  }),
  fc.record({ do: verb('abort wait'), nth }),
)

const readStep: fc.Arbitrary<Step> = fc.record({ do: verb('read result'), nth })

const rareStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: verb('release owner'), owner, to: fc.constantFrom(undefined, 0, 1) }) },
  { weight: 2, arbitrary: fc.record({ do: verb('transfer'), nth, to: fc.constantFrom(0, 1) }) },
  { weight: 1, arbitrary: fc.record({ do: verb('stop listening') }) },
  { weight: 1, arbitrary: fc.record({ do: verb('dispose') }) },
)

const advanceStep: fc.Arbitrary<Step> = fc.record({
  do: verb('advance'),
  ms: fc.constantFrom(0, 0, 40, 1000, 1000, 3000, 8000),
})

/** The steps inside a callback: all but `advance`. */
const innerStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: tasksStep },
  { weight: 3, arbitrary: hostStep },
  { weight: 4, arbitrary: triggerStep },
  { weight: 4, arbitrary: messageStep },
  { weight: 2, arbitrary: waitStep },
  { weight: 2, arbitrary: readStep },
  { weight: 1, arbitrary: rareStep },
)

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: innerStep },
  { weight: 1, arbitrary: updateStep },
  { weight: 5, arbitrary: advanceStep },
)

const turn: fc.Arbitrary<TurnScript> = fc.record({
  atOnce: fc.array(fc.oneof({ weight: 9, arbitrary: innerStep }, { weight: 1, arbitrary: updateStep }), {
    maxLength: 2,
  }),
  meanwhile: fc.array(step, { maxLength: 2 }),
  outcome: fc.constantFrom<TurnOutcome[]>(
    'accept',
    'accept',
    'refuse',
    'refuse',
    'throw',
    'accept at once',
    'hang',
    'late accept',
    'late refuse',
  ),
})

const triggerScript: fc.Arbitrary<TriggerScript> = fc.record({
  owner,
  kind,
  isBusy: fc.constantFrom(false, false, false, true),
  isSubscribed: fc.constantFrom(true, true, true, false),
  coalesceMs: fc.constantFrom(0, 0, 0, 30),
  timeoutMs: fc.constantFrom(undefined, undefined, 3000),
})

const hook = fc.array(innerStep, { maxLength: 2 })

/** Any race. One actor ends tasks and one advances the clock, so that most races have a few deliveries. */
export const raceScript: fc.Arbitrary<RaceScript> = fc.record({
  notifyCancelled: fc.constantFrom(false, false, true),
  isLong: fc.constantFrom(false, false, true),
  triggers: fc.array(triggerScript, { minLength: 1, maxLength: 3 }),
  tasks: fc.array(owner, { minLength: 1, maxLength: 5 }),
  actors: fc
    .tuple(
      fc.array(tasksStep, { minLength: 2, maxLength: 6 }),
      fc.array(advanceStep, { minLength: 3, maxLength: 8 }),
      fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), { maxLength: 3 }),
    )
    .map(([ends, time, others]) => [ends, time, ...others]),
  turns: fc.array(turn, { minLength: 2, maxLength: 5 }),
  hooks: fc.record({ busy: hook, error: hook, abort: hook, handler: hook }),
})
