/** Reads the state machines of `machines/`: their states and transitions as plain data, for the documentation and for coverage. */
import { readdirSync } from 'node:fs'
// Only types are imported, because the mock of XState imports this file while the mock is being set up.
import type { AnyStateMachine, AnyStateNode, EventObject, MachineContext, TransitionDefinition } from 'xstate'

/** A transition of any machine. */
export type Transition = TransitionDefinition<MachineContext, EventObject>

/** A machine and its file. */
export interface Chart {
  /** The path of the file, from the root of the project. */
  readonly file: string
  readonly machine: AnyStateMachine
}

/** A state, or the machine itself. */
export interface ChartState {
  readonly node: AnyStateNode
  readonly id: string
  /** The path of the state below the machine, such as `running.asking`; empty for the machine itself. */
  readonly path: string
  readonly description: string | undefined
  /** The names of its entry and exit actions, and of the actors that it invokes. */
  readonly effects: readonly string[]
}

/** A transition. A choice with several guards has one for each branch. */
export interface ChartTransition {
  /** Identifies the transition, also in the copies of a machine that `provide` makes. */
  readonly key: string
  readonly from: AnyStateNode
  readonly kind: 'event' | 'delayed' | 'always'
  /** The name of the event, `after` with the name of a delay, or `always`. */
  readonly event: string
  readonly guard: string | undefined
  /** The state that it leads to. Undefined if the machine stays in the same state. */
  readonly target: AnyStateNode | undefined
  readonly isReentered: boolean
  readonly actions: readonly string[]
  readonly description: string | undefined
}

const machines = new URL('../machines/', import.meta.url)

/** Every machine that a file of machines/ exports, in the order of the files. */
export async function findCharts(): Promise<Chart[]> {
  const files = readdirSync(machines).filter((file) => file.endsWith('.ts') && file !== 'index.ts')
  const found = await Promise.all(
    files.map(async (file) => {
      const exported = (await import(new URL(file, machines).href)) as Record<string, unknown>
      const charts = Object.values(exported).filter(isMachine)
      return charts.map((machine): Chart => ({ file: `machines/${file}`, machine }))
    }),
  )
  return found.flat()
}

/** Every state of a machine, parents before children. */
export function statesOf({ root }: AnyStateMachine): ChartState[] {
  return withDescendants(root).map((node) => ({
    node,
    id: node.id,
    path: pathOf(node),
    description: node.description,
    effects: [
      ...namesOf(node.config.entry).map((name) => `entry: ${name}`),
      ...namesOf(node.config.exit).map((name) => `exit: ${name}`),
      ...node.invoke.map(({ src }) => `invokes ${nameOf(src)}`),
    ],
  }))
}

/** Every transition of a machine, in the order of its states. */
export function transitionsOf({ root }: AnyStateMachine): ChartTransition[] {
  return withDescendants(root).flatMap((node) => candidatesOf(node).map(readTransition))
}

/** Returns a text that identifies a transition, also in a copy of its machine. */
export function transitionKey(transition: Transition): string {
  const { source, eventType } = transition
  const isAlways = source.always?.includes(transition) === true
  const branches = isAlways ? source.always : source.transitions.get(eventType)
  return `${source.id} ${isAlways ? 'always' : eventType} ${branches?.indexOf(transition) ?? 0}`
}

/** The path of a state below its machine, with dots between the names. */
export function pathOf(node: AnyStateNode): string {
  return node.path.join('.')
}

export function isMachine(value: unknown): value is AnyStateMachine {
  return typeof value === 'object' && value !== null && 'getStateNodeById' in value
}

function readTransition(transition: Transition): ChartTransition {
  const { source, eventType, guard, target, reenter, description } = transition
  const delay = source.after.find((delayed) => delayed.eventType === eventType)?.delay
  const isAlways = source.always?.includes(transition) === true
  return {
    key: transitionKey(transition),
    from: source,
    kind: isAlways ? 'always' : delay === undefined ? 'event' : 'delayed',
    event: isAlways ? 'always' : delay === undefined ? eventType : `after ${String(delay)}`,
    guard: guard === undefined ? undefined : nameOf(guard),
    target: target?.[0],
    isReentered: reenter,
    actions: namesOf(transition.actions),
    description,
  }
}

function candidatesOf(node: AnyStateNode): Transition[] {
  return [...[...node.transitions.values()].flat(), ...(node.always ?? [])] as Transition[]
}

function withDescendants(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(withDescendants)]
}

function namesOf(named: unknown): string[] {
  if (named === undefined) return []
  return (Array.isArray(named) ? (named as unknown[]) : [named]).map(nameOf)
}

/** @throws TypeError for an action, guard or actor without a name, because the documentation could not name it */
function nameOf(named: unknown): string {
  if (typeof named === 'string') return named
  const type = typeof named === 'object' && named !== null ? (named as { type?: unknown }).type : undefined
  if (typeof type !== 'string') {
    throw new TypeError(`a machine has an effect or a guard without a name: ${String(named)}`)
  }
  return type
}
