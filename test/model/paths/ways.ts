/**
 * Every way through a machine: each simple path, and after it each event that can happen then. The paths reach every state in
 * every manner that enters no state twice; the event after them takes every transition, also those that lead back. After the end of the machine,
 * which nothing changes, one way has all events that can happen then. A way with which others begin is taken with them: check each of its steps.
 */
import { initialTransition, transition, type AnyMachineSnapshot, type AnyStateMachine, type EventObject } from 'xstate'
import { getSimplePaths } from 'xstate/graph'
import { transitionsOf } from '../../../scripts/charts.js'
import { addWays } from '../../support/watched-xstate.js'

/** A delay of the machine has elapsed. */
export interface Elapsed<Delay extends string = string> {
  readonly type: `xstate.after.${string}`
  readonly delay: Delay
}

/** One event, and the machine before and after it. */
export interface Step<Event> {
  readonly event: Event
  readonly before: AnyMachineSnapshot
  readonly after: AnyMachineSnapshot
}

/** One way, as a test runs it. */
export interface Way<Event> {
  readonly title: string
  readonly start: AnyMachineSnapshot
  readonly steps: readonly Step<Event>[]
}

interface WayOptions<Event> {
  readonly input: unknown
  /** Every event there is. */
  readonly events: readonly Event[]
  /** Whether an event can happen in a state. Default: everywhere, but delays only where they run. */
  readonly canHappen?: (snapshot: AnyMachineSnapshot, event: Event) => boolean
}

/** Every way through a machine whose context is bounded. */
export function everyWay<Event extends EventObject>(
  machine: AnyStateMachine,
  { input, events, canHappen = () => true }: WayOptions<Event>,
): Way<Event>[] {
  const isPossible = (snapshot: AnyMachineSnapshot, event: Event): boolean =>
    (!isElapsed(event) || canElapse(snapshot, event)) && canHappen(snapshot, event)
  const paths = getSimplePaths(machine, {
    input,
    events,
    filterEvents: (snapshot, event) => isPossible(snapshot as AnyMachineSnapshot, event as unknown as Event),
    // With an unbounded context this would never end.
    limit: 10_000,
  })
  const reached = paths.map((path) => ({
    state: path.state as AnyMachineSnapshot,
    taken: path.steps.map(({ event }) => event as unknown as Event).filter(({ type }) => type !== 'xstate.init'),
    possible: events.filter((event) => isPossible(path.state as AnyMachineSnapshot, event)),
  }))
  const goesOn = new Set(reached.flatMap(({ taken, possible }) => (possible.length > 0 ? [JSON.stringify(taken)] : [])))
  return reached.flatMap(({ state, taken, possible }) => {
    const isActive = state.status === 'active'
    const ends = isActive ? possible.map((event) => [event]) : possible.length > 0 ? [possible] : []
    const ways = ends.map((last) => [...taken, ...last])
    return ways
      .filter((way) => !isActive || !goesOn.has(JSON.stringify(way)))
      .map((way) => readWay(machine, input, way))
  })
}

/** Runs every way against the implementation; a failure names the way. */
export async function takeEach<Event>(
  machine: AnyStateMachine,
  ways: readonly Way<Event>[],
  take: (way: Way<Event>) => Promise<void>,
): Promise<void> {
  if (ways.length === 0) throw new Error(`there is no way through ${machine.id}`)
  for (const way of ways) {
    try {
      await take(way)
    } catch (error) {
      throw new Error(`${machine.id}, on the way ${way.title}: ${(error as Error).message}`, { cause: error })
    }
  }
  addWays(machine.id, ways.length)
}

/** The event of a delay, as the machine gets it. @throws when there is no such delay */
export function elapsed<Delay extends string>(machine: AnyStateMachine, delay: Delay): Elapsed<Delay> {
  const found = transitionsOf(machine).find(({ event }) => event === `after ${delay}`)
  if (found === undefined) throw new Error(`${machine.id} has no delay ${delay}`)
  return { type: `xstate.after.${delay}.${found.from.id}`, delay }
}

function isElapsed(event: EventObject): event is Elapsed {
  return event.type.startsWith('xstate.after.')
}

/** Time passes also after the end; before it, a delay elapses only where it runs. */
function canElapse(snapshot: AnyMachineSnapshot, event: EventObject): boolean {
  return snapshot.status !== 'active' || snapshot.can(event)
}

function readWay<Event extends EventObject>(
  machine: AnyStateMachine,
  input: unknown,
  events: readonly Event[],
): Way<Event> {
  const [start] = initialTransition(machine, input) as [AnyMachineSnapshot, unknown]
  let before = start
  const steps = events.map((event): Step<Event> => {
    const [after] = transition(machine, before, event) as [AnyMachineSnapshot, unknown]
    const step = { event, before, after }
    before = after
    return step
  })
  return { title: events.map(titleOf).join(', '), start, steps }
}

function titleOf(event: EventObject): string {
  if (isElapsed(event)) return `after ${event.delay}`
  const { type, ...rest } = event
  return [type, ...Object.entries(rest).flatMap(([name, value]) => (value === true ? [name] : []))].join(' ')
}
