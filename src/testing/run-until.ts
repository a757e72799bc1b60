/**
 * Waits without real time. Each function advances a manual clock from timer to timer, and lets promises continue in between. When no timer is left, it
 * fails with the states or events that it saw. The clock of a race is different: the race advances it, and the functions only wait.
 */
import type { AnyActorRef, EventFrom, SnapshotFrom } from 'xstate'
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { preview } from '../data/preview.js'
import type { ManualClock } from './manual-clock.js'
import { watchPromise, type Settling } from './promise-outcome.js'
import type { RaceClock } from './race-clock.js'

/** Options of `runUntilState`, `runUntilEvent` and `runUntilSettled`. */
export interface RunUntilOptions {
  /** The maximum time to wait, in ms of the clock. Default 3600000. */
  readonly timeoutMs?: number
}

/** How many microtasks run between two timers. */
const TICKS = 64

/** How many timers may run in one wait before it counts as a loop. */
const MAX_TIMERS = 10_000

/** How many states or events an error lists. */
const MAX_SEEN = 12

/**
 * Waits until an actor is in a state, and moves a manual clock meanwhile.
 * @param actor the actor
 * @param state a state value as `snapshot.matches` takes it, or a predicate of the snapshot
 * @param clock a manual clock, which is moved; or the clock of a race, which the race itself moves
 * @param options the time limit
 * @returns the snapshot that matched
 * @throws AgentTasksError `RUN_UNTIL_FAILED`, with the states that were seen, when the actor has stopped, no timer is left, 10,000 timers have run, or `timeoutMs`
 * has passed
 * @throws INVALID_INPUT for an invalid `timeoutMs`, or for a state value if the actor has no states
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
  const wait = createWait<SnapshotFrom<Actor>>(() => isStopped(actor))
  const look = (snapshot = actor.getSnapshot() as SnapshotFrom<Actor>): void => {
    wait.see(showState(snapshot))
    if (wait.found === undefined && matches(snapshot)) wait.find(snapshot)
    if (isStopped(actor)) wait.end()
  }
  look()
  const subscription = actor.subscribe({ next: look, error: () => look(), complete: () => look() })
  const what = `runUntilState: ${actor.id} was never ${typeof state === 'function' ? 'in the awaited state' : `in the state ${preview(state)}`}`
  const reason = await moveClock(clock, options, wait)
  subscription.unsubscribe()
  if (wait.found !== undefined) return wait.found.value
  throw failure(what, isStopped(actor) ? 'it has stopped' : reason, 'states', wait.seen)
}

/**
 * Moves the clock until an actor has received or emitted an event.
 * @param actor the actor
 * @param event the event's type, or a predicate of the event
 * @param clock the clock to move. The clock of a race is not moved
 * @param options the time limit
 * @returns the event
 * @throws AgentTasksError `RUN_UNTIL_FAILED`, with the events that were seen, when the actor has stopped, no timer is left, or `timeoutMs` has passed
 * @throws INVALID_INPUT for an invalid `timeoutMs`
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
  const matches: (given: EventOf<Actor, string>) => boolean =
    typeof event === 'function' ? event : ({ type }) => type === event
  const wait = createWait<EventOf<Actor, Type>>(() => isStopped(target))
  const look = (given: { readonly type: string }): void => {
    wait.see(given.type)
    if (wait.found === undefined && matches(given)) wait.find(given as EventOf<Actor, Type>)
  }
  const subscriptions = [
    target.system.inspect((inspected) => {
      if (inspected.type === '@xstate.event' && inspected.actorRef === target) look(inspected.event)
    }),
    target.on('*', look),
    target.subscribe({ error: () => wait.end(), complete: () => wait.end() }),
  ]
  const reason = await moveClock(clock, options, wait)
  for (const subscription of subscriptions) subscription.unsubscribe()
  if (wait.found !== undefined) return wait.found.value
  const what = `runUntilEvent: ${target.id} never got ${typeof event === 'function' ? 'the awaited event' : preview(event)}`
  throw failure(what, isStopped(target) ? 'it has stopped' : reason, 'events', wait.seen)
}

/**
 * Moves the clock until a promise has settled, such as that of `manager.waitFor` or `dispose`.
 * @param promise the promise
 * @param clock the clock to move. The clock of a race is not moved
 * @param options the time limit
 * @returns what the promise resolved with
 * @throws what the promise rejected with
 * @throws AgentTasksError `RUN_UNTIL_FAILED` when no timer is left, or `timeoutMs` has passed
 * @throws INVALID_INPUT for an invalid `timeoutMs`
 * @example
 * const { settled } = await runUntilSettled(manager.waitFor(['a']), clock)
 */
export async function runUntilSettled<T>(
  promise: PromiseLike<T>,
  clock: ManualClock | RaceClock,
  options: RunUntilOptions = {},
): Promise<T> {
  const wait: Wait<T> = createWait(() => watched.outcome !== undefined)
  const watched: Settling<T> = watchPromise(promise, () => wait.end())
  const reason = await moveClock(clock, options, wait)
  const { outcome } = watched
  if (outcome === undefined) {
    throw failure('runUntilSettled: the promise never settled', reason, 'times', [`${clock.now()} ms`])
  }
  if ('value' in outcome) return outcome.value
  throw outcome.error
}

/** The events of an actor with this type. For an event that the actor only emits, only the type is known. */
export type EventOf<Actor extends AnyActorRef, Type extends string> =
  Extract<EventFrom<Actor>, { type: Type }> extends never
    ? { readonly type: Type }
    : Extract<EventFrom<Actor>, { type: Type }>

interface Wait<T> {
  /** The awaited value. */
  readonly found: { readonly value: T } | undefined
  readonly seen: readonly string[]
  readonly isDone: boolean
  /** Resolves when the wait is done. */
  readonly done: Promise<void>
  see(shown: string): void
  /** Ends the wait with a value. The first value counts. */
  find(value: T): void
  end(): void
}

/** @param isOver returns whether the value can no longer be found */
function createWait<T>(isOver: () => boolean): Wait<T> {
  const seen: string[] = []
  let found: { readonly value: T } | undefined
  let end = (): void => undefined
  const done = new Promise<void>((resolve) => (end = resolve))
  return {
    get found() {
      return found
    },
    seen,
    get isDone() {
      return found !== undefined || isOver()
    },
    done,
    see: (shown) => {
      if (seen.at(-1) !== shown) seen.push(shown)
    },
    find: (value) => {
      found ??= { value }
      end()
    },
    end: () => end(),
  }
}

/** @returns why the clock advanced no further */
async function moveClock(
  clock: ManualClock | RaceClock,
  { timeoutMs = 3_600_000 }: RunUntilOptions,
  wait: Wait<unknown>,
): Promise<string> {
  if (!(timeoutMs >= 0)) throw new InvalidInputError('options.timeoutMs', timeoutMs, 'a number of ms >= 0')
  if (!('runNext' in clock) || !('advance' in clock)) {
    if (!wait.isDone) await wait.done
    return 'the race is over'
  }
  const latest = clock.now() + timeoutMs
  for (let timers = 0; ; timers += 1) {
    for (let tick = 0; tick < TICKS && !wait.isDone; tick += 1) await Promise.resolve()
    if (wait.isDone) return 'it is done'
    if (timers === MAX_TIMERS) return `${MAX_TIMERS} timers ran, which looks like an endless loop`
    const due = clock.nextDue
    if (due === undefined) return 'no timer is left to run'
    if (due > latest) return `${timeoutMs} ms have passed`
    clock.runNext()
  }
}

function failure(what: string, reason: string, of: string, seen: readonly string[]): AgentTasksError {
  const shown = seen.slice(-MAX_SEEN)
  const hidden = seen.length > shown.length ? `(${seen.length - shown.length} more), ` : ''
  const list = shown.length === 0 ? 'none' : hidden + shown.join(', ')
  return new AgentTasksError('RUN_UNTIL_FAILED', `${what}: ${reason}. Seen ${of}: ${list}.`)
}

const isStopped = (actor: AnyActorRef): boolean => (actor.getSnapshot() as { status?: string }).status !== 'active'

function toPredicate<Snapshot>(
  state: string | Readonly<Record<string, unknown>> | ((snapshot: Snapshot) => boolean),
): (snapshot: Snapshot) => boolean {
  if (typeof state === 'function') return state
  return (snapshot) => {
    const { matches } = snapshot as { matches?: (value: unknown) => boolean }
    if (typeof matches !== 'function') {
      throw new InvalidInputError(
        'state',
        state,
        'a predicate, because the actor is not a machine and has no state values',
      )
    }
    return matches.call(snapshot, state)
  }
}

function showState(snapshot: unknown): string {
  const { value, status } = snapshot as { value?: unknown; status?: string }
  const shown = value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)
  return status === 'active' && shown !== '' ? shown : [shown, `(${status ?? 'no status'})`].join(' ').trim()
}
