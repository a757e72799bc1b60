/**
 * Waits without real time: moves a manual clock from timer to timer, lets promises go on in between, and says what was seen
 * when there is nothing left that could bring what is awaited. In a race, whose clock moves by itself, they only wait.
 */
import type { AnyActorRef, EventFrom, SnapshotFrom } from 'xstate'
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { preview } from '../preview.js'
import type { ManualClock } from './manual-clock.js'
import type { RaceClock } from './race-clock.js'

/** How far to go. */
export interface RunUntilOptions {
  /** The longest to wait, in ms of the clock. Default 3600000. */
  readonly timeoutMs?: number
}

/** How many promises may follow each other between two timers. */
const TICKS = 64

/** How many timers may run in one wait before it is taken for a loop. */
const MAX_TIMERS = 10_000

/** How much of what was seen an error tells. */
const MAX_SEEN = 12

/**
 * Moves the clock until an actor is in a state.
 * @param state the value of a state as `snapshot.matches` takes it, or a predicate of the snapshot
 * @returns the snapshot that matched
 * @throws AgentTasksError `RUN_UNTIL_FAILED` that lists the states that were seen, when the actor has stopped, no timer is left, or
 *   `timeoutMs` has passed
 * @example
 * const snapshot = await runUntilState(actor, 'backingOff', clock)
 * await runUntilState(actor, ({ context }) => context.failures === 3, clock, { timeoutMs: 60_000 })
 */
export async function runUntilState<Actor extends AnyActorRef>(
  actor: Actor,
  state: string | Readonly<Record<string, unknown>> | ((snapshot: SnapshotFrom<Actor>) => boolean),
  clock: ManualClock | RaceClock,
  options: RunUntilOptions = {},
): Promise<SnapshotFrom<Actor>> {
  const matches = toPredicate<SnapshotFrom<Actor>>(state)
  const seen: string[] = []
  let found: { readonly value: SnapshotFrom<Actor> } | undefined
  const isOver = (): boolean => (actor.getSnapshot() as { status?: string }).status !== 'active'
  const wait = createWait()
  const look = (snapshot: SnapshotFrom<Actor>): void => {
    const shown = showState(snapshot)
    if (seen.at(-1) !== shown) seen.push(shown)
    if (found === undefined && matches(snapshot)) found = { value: snapshot }
    if (found !== undefined || isOver()) wait.end()
  }
  look(actor.getSnapshot() as SnapshotFrom<Actor>)
  const subscription = actor.subscribe({
    next: look,
    error: () => look(actor.getSnapshot() as SnapshotFrom<Actor>),
    complete: () => look(actor.getSnapshot() as SnapshotFrom<Actor>),
  })
  const what = `runUntilState: ${actor.id} was never ${typeof state === 'function' ? 'as awaited' : preview(state)}`
  const why = await run(clock, options, wait, () => found !== undefined || isOver())
  subscription.unsubscribe()
  // It is changed by the callbacks above, which the compiler cannot see.
  const match = found as { readonly value: SnapshotFrom<Actor> } | undefined
  if (match !== undefined) return match.value
  throw failure(what, isOver() ? 'it has stopped' : why, 'states', seen)
}

/**
 * Moves the clock until an actor has received or emitted an event.
 * @param event the event's type, or a predicate of the event
 * @returns the event
 * @throws AgentTasksError `RUN_UNTIL_FAILED` that lists the events that were seen
 * @example
 * const { deliveryId } = await runUntilEvent(actor, 'delivery.accepted', clock)
 */
export async function runUntilEvent<Actor extends AnyActorRef, Type extends string>(
  actor: Actor,
  event: Type | ((event: EventOf<Actor, string>) => boolean),
  clock: ManualClock | RaceClock,
  options: RunUntilOptions = {},
): Promise<EventOf<Actor, Type>> {
  const target: AnyActorRef = actor
  const isIt: (given: EventOf<Actor, string>) => boolean =
    typeof event === 'function' ? event : ({ type }) => type === event
  const seen: string[] = []
  let found: { readonly value: EventOf<Actor, Type> } | undefined
  const wait = createWait()
  const look = (given: { readonly type: string }): void => {
    if (seen.at(-1) !== given.type) seen.push(given.type)
    if (found !== undefined || !isIt(given)) return
    found = { value: given as EventOf<Actor, Type> }
    wait.end()
  }
  const isOver = (): boolean => (target.getSnapshot() as { status?: string }).status !== 'active'
  const inspection = target.system.inspect((inspected) => {
    if (inspected.type === '@xstate.event' && inspected.actorRef === target) look(inspected.event)
  })
  const emission = target.on('*', look)
  const ended = target.subscribe({ error: () => wait.end(), complete: () => wait.end() })
  const why = await run(clock, options, wait, () => found !== undefined || isOver())
  for (const subscription of [inspection, emission, ended]) subscription.unsubscribe()
  // It is changed by the callbacks above, which the compiler cannot see.
  const seenEvent = found as { readonly value: EventOf<Actor, Type> } | undefined
  if (seenEvent !== undefined) return seenEvent.value
  const what = `runUntilEvent: ${target.id} never got ${typeof event === 'function' ? 'the awaited event' : preview(event)}`
  throw failure(what, isOver() ? 'it has stopped' : why, 'events', seen)
}

/**
 * Moves the clock until a promise has settled: of `manager.waitFor`, `dispose`, a turn.
 * @returns what it resolved with
 * @throws what it rejected with; AgentTasksError `RUN_UNTIL_FAILED` when no timer is left that could settle it
 * @example
 * const { settled } = await runUntilSettled(manager.waitFor(['a']), clock)
 */
export async function runUntilSettled<T>(
  promise: PromiseLike<T>,
  clock: ManualClock | RaceClock,
  options: RunUntilOptions = {},
): Promise<T> {
  let outcome: { readonly value: T } | { readonly error: unknown } | undefined
  const wait = createWait()
  promise.then(
    (value) => {
      outcome = { value }
      wait.end()
    },
    (error: unknown) => {
      outcome = { error }
      wait.end()
    },
  )
  const why = await run(clock, options, wait, () => outcome !== undefined)
  // It is changed by the callbacks above, which the compiler cannot see.
  const settled = outcome as { readonly value: T } | { readonly error: unknown } | undefined
  if (settled === undefined) {
    throw failure('runUntilSettled: the promise never settled', why, 'times', [`${clock.now()} ms`])
  }
  if ('value' in settled) return settled.value
  throw settled.error
}

/** The events of an actor that have this type; one that it only emits is known by its type alone. */
export type EventOf<Actor extends AnyActorRef, Type extends string> =
  Extract<EventFrom<Actor>, { type: Type }> extends never
    ? { readonly type: Type }
    : Extract<EventFrom<Actor>, { type: Type }>

interface Wait {
  readonly over: Promise<void>
  end(): void
}

function createWait(): Wait {
  let end = (): void => undefined
  const over = new Promise<void>((resolve) => (end = resolve))
  return { over, end: () => end() }
}

/** @returns why it went no further */
async function run(
  clock: ManualClock | RaceClock,
  { timeoutMs = 3_600_000 }: RunUntilOptions,
  wait: Wait,
  isDone: () => boolean,
): Promise<string> {
  if (!(timeoutMs >= 0)) throw new InvalidInputError('options.timeoutMs', timeoutMs, 'a number of ms >= 0')
  if (!('runNext' in clock) || !('advance' in clock)) {
    if (!isDone()) await wait.over
    return 'the race is over'
  }
  const latest = clock.now() + timeoutMs
  for (let timers = 0; ; timers += 1) {
    for (let tick = 0; tick < TICKS && !isDone(); tick += 1) await Promise.resolve()
    if (isDone()) return 'it is done'
    if (timers === MAX_TIMERS) return `${MAX_TIMERS} timers ran`
    const due = clock.nextDue
    if (due === undefined) return 'no timer is left that could bring it'
    if (due > latest) return `${timeoutMs} ms have passed`
    clock.runNext()
  }
}

function failure(what: string, why: string, of: string, seen: readonly string[]): AgentTasksError {
  const shown = seen.slice(-MAX_SEEN)
  const hidden = seen.length > shown.length ? `(${seen.length - shown.length} more), ` : ''
  const list = shown.length === 0 ? 'none' : hidden + shown.join(', ')
  return new AgentTasksError('RUN_UNTIL_FAILED', `${what}: ${why}. Seen ${of}: ${list}.`)
}

function toPredicate<Snapshot>(
  state: string | Readonly<Record<string, unknown>> | ((snapshot: Snapshot) => boolean),
): (snapshot: Snapshot) => boolean {
  if (typeof state === 'function') return state
  return (snapshot) => {
    const { matches } = snapshot as { matches?: (value: unknown) => boolean }
    if (typeof matches !== 'function') {
      throw new InvalidInputError('state', state, 'a predicate: the actor is no machine and has no state values')
    }
    return matches.call(snapshot, state)
  }
}

function showState(snapshot: unknown): string {
  const { value, status } = snapshot as { value?: unknown; status?: string }
  const shown = value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)
  return status === 'active' && shown !== '' ? shown : [shown, `(${status ?? 'no status'})`].join(' ').trim()
}
