/**
 * XState with an inspector in every `createActor`, which records the states and transitions that actors reach. A test uses it with
 * `vi.mock('xstate', () => import('.../watched-xstate.js').then(({ watchedXState }) => watchedXState()))`.
 */
import { vi } from 'vitest'
import type {
  Actor,
  AnyActorLogic,
  AnyActorRef,
  AnyMachineSnapshot,
  AnyStateNode,
  InspectionEvent,
  StateValue,
} from 'xstate'
import { transitionKey, type Transition } from '../../scripts/charts.js'

type XState = typeof import('xstate')
/** The snapshot of a machine. The snapshots of other actors have no such fields. */
type ChartSnapshot = Partial<Pick<AnyMachineSnapshot, 'machine' | 'value'>>

/** What the actors of one machine have reached. */
export interface Reached {
  /** How many paths through the machine were taken. */
  ways: number
  readonly states: Set<string>
  readonly transitions: Set<string>
}

interface Watch {
  /** What was reached, by the id of the machine. */
  readonly reached: Map<string, Reached>
  /** The latest actor with each id, by that id. */
  readonly actors: Map<string, AnyActorRef>
}

// The watch is a global object, because a setup file and a test may each load this module and must share it.
const watchKey = 'agent-tasks watched charts'
const place = globalThis as { [watchKey]?: Watch }
const watch = (place[watchKey] ??= { reached: new Map(), actors: new Map() })

/** What the actors of this test file have reached, by the id of the machine. */
export const reachedCharts: ReadonlyMap<string, Reached> = watch.reached

/**
 * Returns a function that reads the state of an actor, also after the actor has ended.
 * @param id the id of the actor. If several actors had this id, the latest one is read
 * @throws Error when there is no such actor
 */
export function watchState(id: string): () => StateValue | undefined {
  const actor = watch.actors.get(id)
  if (actor === undefined) throw new Error(`no actor ${id}; there were ${[...watch.actors.keys()].join(', ')}`)
  return () => (actor.getSnapshot() as { readonly value?: StateValue }).value
}

/** Counts the paths through a machine that a test has taken. */
export function addWays(chart: string, ways: number): void {
  reachedIn(chart).ways += ways
}

/** Returns XState with a `createActor` that watches actors. */
export async function watchedXState(): Promise<XState> {
  const original = await vi.importActual<XState>('xstate')
  const createActor = (
    logic: AnyActorLogic,
    options: Parameters<XState['createActor']>[1] = {},
  ): Actor<AnyActorLogic> => {
    // A child has the inspectors of its parent.
    if (options.parent !== undefined) return original.createActor(logic, options)
    const { inspect } = options
    const notify = typeof inspect === 'function' ? inspect : inspect?.next?.bind(inspect)
    return original.createActor(logic, {
      ...options,
      inspect: (event) => {
        record(event)
        notify?.(event)
      },
    })
  }
  return { ...original, createActor: createActor as XState['createActor'] }
}

function record(event: InspectionEvent): void {
  const actor = event.actorRef as AnyActorRef
  if (event.type === '@xstate.event' && event.event.type === 'xstate.init') {
    watch.actors.set(actor.id, actor)
    recordStates(actor.getSnapshot() as ChartSnapshot)
  }
  if (event.type !== '@xstate.microstep') return
  const snapshot = event.snapshot as ChartSnapshot
  const reached = recordStates(snapshot)
  for (const transition of event._transitions as Transition[]) {
    reached?.transitions.add(transitionKey(transition))
    // A state may be left in the microstep after it was entered. No snapshot has such a state.
    reached?.states.add(transition.source.id)
  }
}

function recordStates({ machine, value = {} }: ChartSnapshot): Reached | undefined {
  if (machine === undefined) return undefined
  const reached = reachedIn(machine.id)
  for (const id of activeStates(machine.root, value as StateValue)) reached.states.add(id)
  return reached
}

/** Returns the ids of a state and of its active descendants. */
function activeStates({ id, states }: AnyStateNode, value: StateValue): string[] {
  const children = typeof value === 'string' ? { [value]: {} } : value
  return [id, ...Object.entries(children).flatMap(([name, nested]) => activeStates(states[name]!, nested ?? {}))]
}

function reachedIn(id: string): Reached {
  const reached = watch.reached.get(id) ?? { ways: 0, states: new Set(), transitions: new Set() }
  watch.reached.set(id, reached)
  return reached
}
