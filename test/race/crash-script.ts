/** What happens in a race with crashes: the steps of its actors, and what the host does. */
import fc from 'fast-check'

/** A step of an actor. `nth` picks among the tasks of all lives. */
export type CrashStep =
  | { readonly do: 'launch' }
  | { readonly do: 'register' }
  /** The run of a task launches another one. */
  | { readonly do: 'launch child'; readonly nth: number }
  /** Whoever does the work reports its end, maybe to a later life. */
  | { readonly do: 'complete' | 'fail' | 'cancel'; readonly nth: number }
  /** A turn that the host starts itself, with a reminder. */
  | { readonly do: 'turn'; readonly isAccepted: boolean }
  /** The host confirms the latest message of its transcript. */
  | { readonly do: 'confirm' }
  /** The host ends cleanly, and the next one starts on its store. */
  | { readonly do: 'restart' }

export interface CrashScript {
  /** What `wasDelivered` says; `silent`: there is none. */
  readonly answers: 'at once' | 'later' | 'never' | 'silent' | 'throws'
  readonly notifyCancelled: boolean
  /** How many runs a launched task may have in all. */
  readonly attempts: number
  /** With 0, a record is pruned as soon as it owes nothing. */
  readonly maxAsyncTasks: number
  /** The numbers of writes that fail, counted from 1. */
  readonly failing: readonly number[]
  /** What the auto-trigger's turns do, the rest accept. */
  readonly turns: readonly ('accept' | 'refuse')[]
  /** Whether a turn of the auto-trigger also calls a tool that returns what has ended meanwhile. */
  readonly takes: boolean
  /** Whether a turn takes a while before its message is in the transcript. */
  readonly isSlow: boolean
  /** Whether a write is acknowledged later than it is stored, with others in between. */
  readonly isStoreSlow: boolean
  readonly worker: readonly CrashStep[]
  readonly user: readonly CrashStep[]
  /** How often the host ends politely, and the next one starts, at any point. */
  readonly stops: number
}

const nth = fc.nat(1)
const turn = fc.record({ do: fc.constant('turn' as const), isAccepted: fc.constantFrom(true, true, false) })
const step: fc.Arbitrary<CrashStep> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ do: 'register' as const }) },
  { weight: 3, arbitrary: fc.constant({ do: 'launch' as const }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('complete' as const, 'fail' as const), nth }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), nth }) },
  { weight: 2, arbitrary: turn },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('launch child' as const), nth }) },
  { weight: 1, arbitrary: fc.constant({ do: 'confirm' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'restart' as const }) },
)

/** One task from its launch to its delivery. */
const life: fc.Arbitrary<CrashStep[]> = fc
  .tuple(
    fc.record({ do: fc.constantFrom('register' as const, 'launch' as const) }),
    fc.record({ do: fc.constantFrom('complete' as const, 'cancel' as const), nth: fc.constant(0) }),
    turn,
  )
  .map((steps) => [...steps])

/** One task, and a clean end of its host, which may be delivering it. */
const restarted: fc.Arbitrary<CrashStep[]> = fc.constant([
  { do: 'register' },
  { do: 'complete', nth: 0 },
  { do: 'restart' },
])

/** A run that is cancelled. */
const cancelled: fc.Arbitrary<CrashStep[]> = fc.constant([{ do: 'launch' }, { do: 'cancel', nth: 0 }])

/** A parent, a child, and the end of one of them. */
const family: fc.Arbitrary<CrashStep[]> = fc
  .tuple(
    fc.record({ do: fc.constantFrom('register' as const, 'launch' as const) }),
    fc.record({ do: fc.constant('launch child' as const), nth: fc.constant(0) }),
    fc.record({ do: fc.constantFrom('complete' as const, 'cancel' as const, 'fail' as const), nth }),
  )
  .map((steps) => [...steps])

/** Any script. */
export const crashScripts: fc.Arbitrary<CrashScript> = fc.record({
  answers: fc.constantFrom('at once', 'at once', 'later', 'never', 'silent', 'throws'),
  notifyCancelled: fc.boolean(),
  attempts: fc.constantFrom(1, 2, 3),
  maxAsyncTasks: fc.constantFrom(-1, 0),
  failing: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { maxLength: 3 }) },
  ),
  turns: fc.array(fc.constantFrom('accept' as const, 'refuse' as const), { maxLength: 2 }),
  takes: fc.boolean(),
  isSlow: fc.boolean(),
  isStoreSlow: fc.boolean(),
  worker: fc.oneof(
    { weight: 3, arbitrary: life },
    { weight: 1, arbitrary: family },
    { weight: 1, arbitrary: cancelled },
    { weight: 1, arbitrary: restarted },
    { weight: 3, arbitrary: fc.array(step, { minLength: 1, maxLength: 4 }) },
  ),
  user: fc.array(step, { maxLength: 3 }),
  stops: fc.constant(0),
})

/** Any script with polite ends of the host wherever it could crash. */
export const stopScripts: fc.Arbitrary<CrashScript> = fc
  .tuple(crashScripts, fc.integer({ min: 1, max: 2 }))
  .map(([script, stops]) => ({ ...script, stops }))
