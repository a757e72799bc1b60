/**
 * XState whose actors are watched: what states they reach and which transitions they take, in a test that says
 * `vi.mock('xstate', () => import('.../watched-xstate.js').then(({ watchedXState }) => watchedXState()))`.
 *
 * The implementation under test makes its actors as ever; only `createActor` gets an inspector more.
 */
import { vi } from 'vitest'
import type { Actor, AnyActorLogic, AnyActorRef, AnyMachineSnapshot, InspectionEvent, StateValue } from 'xstate'
import { transitionKey, type Transition } from './charts.js'

type XState = typeof import('xstate')
/** As far as this file looks into a snapshot; an actor without a chart has neither. */
type ChartSnapshot = Partial<Pick<AnyMachineSnapshot, 'machine' | '_nodes' | 'value'>>

/** What the actors of one chart have reached. */
export interface Reached {
  /** How many ways through it were taken. */
  ways: number
  readonly states: Set<string>
  readonly transitions: Set<string>
}

interface Watch {
  /** By the id of the chart. */
  readonly reached: Map<string, Reached>
  /** The latest actor of each id. */
  readonly actors: Map<string, AnyActorRef>
}

// A setup file and a test may each load this module: both must see one watch.
const watchKey = 'agent-tasks watched charts'
const place = globalThis as { [watchKey]?: Watch }
const watch = (place[watchKey] ??= { reached: new Map(), actors: new Map() })

/** What every chart has reached in this test file so far. */
export const reachedCharts: ReadonlyMap<string, Reached> = watch.reached

/**
 * Reads the state of an actor, also after its end.
 * @param id of the actor; the latest that was started under it
 * @throws when there was none
 */
export function watchState(id: string): () => StateValue | undefined {
  const actor = watch.actors.get(id)
  if (actor === undefined) throw new Error(`no actor ${id}; there were ${[...watch.actors.keys()].join(', ')}`)
  return () => (actor.getSnapshot() as { readonly value?: StateValue }).value
}

/** Counts the ways through a chart that a test has taken. */
export function noteWays(chart: string, ways: number): void {
  reachedIn(chart).ways += ways
}

/** All of XState, with a `createActor` that watches. */
export async function watchedXState(): Promise<XState> {
  const original = await vi.importActual<XState>('xstate')
  const createActor = (
    logic: AnyActorLogic,
    options: Parameters<XState['createActor']>[1] = {},
  ): Actor<AnyActorLogic> => {
    // A child shares the inspectors of its parent.
    if (options.parent !== undefined) return original.createActor(logic, options)
    const { inspect } = options
    const tell = typeof inspect === 'function' ? inspect : inspect?.next?.bind(inspect)
    return original.createActor(logic, {
      ...options,
      inspect: (event) => {
        note(event)
        tell?.(event)
      },
    })
  }
  return { ...original, createActor: createActor as XState['createActor'] }
}

function note(event: InspectionEvent): void {
  const actor = event.actorRef as AnyActorRef
  if (event.type === '@xstate.event' && event.event.type === 'xstate.init') {
    watch.actors.set(actor.id, actor)
    noteStates(actor.getSnapshot() as ChartSnapshot)
  }
  if (event.type !== '@xstate.microstep') return
  const snapshot = event.snapshot as ChartSnapshot
  const reached = noteStates(snapshot)
  for (const transition of event._transitions as Transition[]) {
    reached?.transitions.add(transitionKey(transition))
    // A state that is left in the step in which it was entered is in no snapshot.
    reached?.states.add(transition.source.id)
  }
}

function noteStates({ machine, _nodes: nodes = [] }: ChartSnapshot): Reached | undefined {
  if (machine === undefined) return undefined
  const reached = reachedIn(machine.id)
  for (const { id } of nodes) reached.states.add(id)
  return reached
}

function reachedIn(id: string): Reached {
  const reached = watch.reached.get(id) ?? { ways: 0, states: new Set(), transitions: new Set() }
  watch.reached.set(id, reached)
  return reached
}
