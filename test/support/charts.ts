/** Reads the charts of machines/: their states and transitions as plain data, for documentation and for coverage. */
import { readdirSync } from 'node:fs'
// Types alone: the watched XState reads its actors' charts with this file before it is there itself.
import type { AnyStateMachine, AnyStateNode, EventObject, MachineContext, TransitionDefinition } from 'xstate'

/** A transition as XState has it, whatever the chart. */
export type Transition = TransitionDefinition<MachineContext, EventObject>

/** A chart and the file that holds it. */
export interface Chart {
  /** Relative to the root of the project. */
  readonly file: string
  readonly machine: AnyStateMachine
}

/** One state, the machine itself included. */
export interface ChartState {
  readonly node: AnyStateNode
  readonly id: string
  /** Its path below the machine; empty for the machine itself. */
  readonly path: string
  readonly description: string | undefined
  /** What it does besides: actions on entry and exit, actors that it invokes. */
  readonly effects: readonly string[]
}

/** One transition; each branch of a choice is one. */
export interface ChartTransition {
  /** The same for each copy of the machine that `provide` makes. */
  readonly key: string
  readonly from: AnyStateNode
  readonly kind: 'event' | 'delayed' | 'always'
  /** The event, `after` and the name of the delay, or `always`. */
  readonly event: string
  readonly guard: string | undefined
  /** None: the state stays as it is. */
  readonly target: AnyStateNode | undefined
  readonly isReentered: boolean
  readonly actions: readonly string[]
  readonly description: string | undefined
}

const machines = new URL('../../machines/', import.meta.url)

/** Every chart that a file of machines/ exports, in the order of their files. */
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

/** Every state of a chart, parents before their children. */
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

/** Every transition of a chart, in the order of its states. */
export function transitionsOf({ root }: AnyStateMachine): ChartTransition[] {
  return withDescendants(root).flatMap((node) => candidatesOf(node).map(readTransition))
}

/** What names a transition in every copy of its machine. */
export function transitionKey(transition: Transition): string {
  const { source, eventType } = transition
  const isAlways = source.always?.includes(transition) === true
  const branches = isAlways ? source.always : source.transitions.get(eventType)
  return `${source.id} ${isAlways ? 'always' : eventType} ${branches?.indexOf(transition) ?? 0}`
}

/** The path of a state below its machine, dotted. */
export function pathOf(node: AnyStateNode): string {
  return node.path.join('.')
}

function isMachine(value: unknown): value is AnyStateMachine {
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

/** Everything in a chart is named, so that a person can read it. @throws for what is not */
function nameOf(named: unknown): string {
  if (typeof named === 'string') return named
  const type = typeof named === 'object' && named !== null ? (named as { type?: unknown }).type : undefined
  if (typeof type !== 'string') throw new TypeError(`a chart has an effect or a guard without a name: ${String(named)}`)
  return type
}
