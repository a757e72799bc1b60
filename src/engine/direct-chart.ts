/**
 * Runs a chart without the machinery that most of its transitions do not need. XState computes the sets of states to exit and to enter
 * anew at every event; for the plain part of a chart they are always the same, so they are computed once for each state and event.
 *
 * The plain part: one active leaf, no history, no invocations, actions that are functions, `assign`s or timers. For everything else
 * (raised events, ends inside a chart, parallel states) the chart itself is asked, so that what happens is what XState does; the property
 * in test/model/direct-chart.test.ts holds the two together. It is one file because compiling and running share every type.
 */
import type { AnyActorScope, AnyEventObject, AnyMachineSnapshot, AnyStateMachine, AnyStateNode } from 'xstate'

interface Args {
  readonly context: unknown
  readonly event: AnyEventObject
  readonly self: unknown
  readonly system: unknown
}

type Assigner = (args: Args, params: unknown) => object
type Assignment = Assigner | Readonly<Record<string, unknown>>

interface Action {
  readonly run: ((args: Args, params: unknown) => unknown) | undefined
  readonly assignment: Assignment | undefined
  /** An action of XState's that sets a timer, or takes one back. */
  readonly timer: TimerAction | undefined
  readonly params: unknown
}

/** What XState's own actions are made of. */
interface TimerAction {
  resolve(
    scope: AnyActorScope,
    snapshot: AnyMachineSnapshot,
    args: Args,
    params: unknown,
    action: unknown,
    extra: { readonly internalQueue: unknown[] },
  ): readonly [AnyMachineSnapshot, unknown]
  execute(scope: AnyActorScope, params: unknown): void
}

interface Guard {
  readonly check: (args: { context: unknown; event: AnyEventObject }, params: unknown) => unknown
  readonly params: unknown
}

/** One transition. */
interface Step {
  readonly guard: Guard | undefined
  readonly actions: readonly Action[]
  /** Where it leads; undefined: nowhere. */
  readonly target: Place | undefined
  /** An eventless transition that the chart has to take. */
  readonly isHard: boolean
  /** The chart's own description of it, for inspectors. */
  readonly described: readonly unknown[]
}

/** A state that can be at rest. */
interface Place {
  readonly leaf: AnyStateNode
  /** A snapshot of it, but for the context and the children. */
  readonly template: AnyMachineSnapshot
  /** What an event may do, first come first served; undefined: the chart has to be asked. */
  readonly steps: Map<string, readonly Step[] | undefined>
  always: readonly Step[]
  /** Whether all that can happen without an event is plain, here and wherever that leads; unknown until it is asked for. */
  isRestful: boolean | undefined
  readonly end: ((context: unknown, self: unknown) => unknown) | undefined
}

/** The chart has something here that is not plain. */
class NotPlain extends Error {}

/** How the type of a child's last event begins. */
const DONE = 'xstate.done.actor.'

/** What XState does something about that no chart says. */
const isOfXState = (type: string): boolean =>
  type.startsWith('xstate.') && !type.startsWith(DONE) && !type.startsWith('xstate.after.')

/** A chart that takes more steps than this without an event will not end. */
const MAX_ALWAYS = 100

const NO_STEPS: readonly Step[] = []

const HARD: Step = { guard: undefined, actions: [], target: undefined, isHard: true, described: [] }

/**
 * The same chart, run directly where it is plain. Events that a wildcard of the chart covers (`xstate.done.actor.task.*`) arrive as that
 * wildcard: XState keeps what it found out for each type of event for ever, which for types with an id in them is a leak.
 * @param isDirect false: the chart is asked for everything, so that an inspector sees its actions as well as its microsteps, and whoever
 *   brings implementations of their own may use all of XState
 */
export function runDirectly<M extends AnyStateMachine>(machine: M, isDirect: boolean): M {
  const made = isDirect ? direct : indirect
  let logic = made.get(machine)
  if (logic === undefined) made.set(machine, (logic = makeLogic(machine, isDirect)))
  return logic as M
}

const direct = new WeakMap<AnyStateMachine, AnyStateMachine>()
const indirect = new WeakMap<AnyStateMachine, AnyStateMachine>()

function makeLogic(machine: AnyStateMachine, isDirect: boolean): AnyStateMachine {
  const chart = isDirect ? new Chart(machine) : undefined
  const declared = new Set<string>(machine.events)
  const wildcards = [...declared].filter((type) => type.endsWith('.*')).map((type) => type.slice(0, -1))
  const normalise = (event: AnyEventObject): AnyEventObject => {
    if (declared.has(event.type)) return event
    const wildcard = wildcards.find((prefix) => event.type.startsWith(prefix))
    if (wildcard !== undefined) return { ...event, type: `${wildcard}*` }
    // Nobody asked to hear of the end of this child.
    return event.type.startsWith(DONE) ? { ...event, type: DONE } : event
  }
  // The chart stays what it is to whoever looks at it; only how it is run is another.
  return Object.create(machine, {
    transition: {
      value: (snapshot: AnyMachineSnapshot, event: AnyEventObject, scope: AnyActorScope): AnyMachineSnapshot => {
        const known = normalise(event)
        return chart?.transition(snapshot, known, scope) ?? machine.transition(snapshot, known, scope as never)
      },
    },
    getInitialSnapshot: {
      value: (scope: AnyActorScope, input: unknown): AnyMachineSnapshot =>
        chart?.initial(scope, input) ?? (machine.getInitialSnapshot(scope as never, input) as AnyMachineSnapshot),
    },
  }) as AnyStateMachine
}

class Chart {
  readonly #machine: AnyStateMachine
  readonly #byLeaf = new Map<AnyStateNode, Place>()
  /** The values of the templates, which every snapshot made here shares. */
  readonly #byValue = new Map<unknown, Place>()
  readonly #events: ReadonlySet<string>
  /** It has wildcards, so that an event it does not name may still be one it takes. */
  readonly #takesAnything: boolean
  readonly #first: Place | undefined

  constructor(machine: AnyStateMachine) {
    this.#machine = machine
    this.#events = new Set(machine.events as string[])
    this.#takesAnything = (machine.events as string[]).includes('*')
    this.#first = plainly(() => {
      const { root } = machine
      if (pathTo(initialLeaf(root)).some(({ entry, invoke }) => entry.length + invoke.length > 0)) throw new NotPlain()
      return this.#place(initialLeaf(root))
    })
  }

  /** The snapshot to start with; undefined: the chart has to be asked. */
  initial(scope: AnyActorScope, input: unknown): AnyMachineSnapshot | undefined {
    const place = this.#first
    if (place === undefined) return undefined
    const event = { type: 'xstate.init', input }
    const given: unknown = (this.#machine.config as { context?: unknown }).context
    let context: unknown = given ?? {}
    if (typeof given === 'function') {
      try {
        context = (given as (args: object) => unknown)({ input, self: scope.self, spawn: mustNotSpawn })
      } catch {
        // It spawns, or it fails: either is the chart's to do.
        return undefined
      }
    }
    for (const { guard } of place.always) if (passes(guard, context, event)) return undefined
    return withContext(place.template, context)
  }

  /** The snapshot after an event; undefined, and nothing done, when the chart has to be asked. */
  transition(
    snapshot: AnyMachineSnapshot,
    event: AnyEventObject,
    scope: AnyActorScope,
  ): AnyMachineSnapshot | undefined {
    const { type } = event
    const isDeclared = this.#events.has(type)
    if (snapshot.status !== 'active' || (!isDeclared && (this.#takesAnything || isOfXState(type)))) return undefined
    const place = this.#byValue.get(snapshot.value) ?? this.#find(snapshot)
    if (place === undefined) return undefined
    const steps = isDeclared ? this.#stepsOf(place, type) : NO_STEPS
    if (steps === undefined) return undefined
    let next = firstOpen(steps, snapshot.context, event) ?? firstOpen(place.always, snapshot.context, event)
    // After the first action there is no way back: all that may follow has to be plain.
    if (next !== undefined && (next.isHard || !isRestful(next.target ?? place))) return undefined
    let current = snapshot as AnyMachineSnapshot
    if (next === undefined) showMicrostep(scope, event, current, [])
    let at = place
    for (let count = 0; next !== undefined; count += 1) {
      if (count === MAX_ALWAYS) throw new Error(`chart ${this.#machine.id} turns in circles without an event`)
      current = perform(next, current, event, scope)
      showMicrostep(scope, event, current, next.described)
      at = next.target ?? at
      next = at.end === undefined ? firstOpen(at.always, current.context, event) : undefined
    }
    return current
  }

  /** The place of a snapshot that the chart made. */
  #find(snapshot: AnyMachineSnapshot): Place | undefined {
    let node: AnyStateNode | undefined = this.#machine.root
    let value: unknown = snapshot.value
    while (typeof value === 'object' && value !== null) {
      const [key, ...others] = Object.keys(value)
      if (key === undefined || others.length > 0) return undefined
      node = node.states[key]
      if (node === undefined) return undefined
      value = (value as Record<string, unknown>)[key]
    }
    const leaf: AnyStateNode | undefined = typeof value === 'string' ? node.states[value] : undefined
    return leaf === undefined ? undefined : plainly(() => this.#place(leaf))
  }

  #place(leaf: AnyStateNode): Place {
    const known = this.#byLeaf.get(leaf)
    if (known !== undefined) return known
    if (leaf.parent === undefined || (leaf.type !== 'atomic' && leaf.type !== 'final')) throw new NotPlain()
    const path = pathTo(leaf)
    if (path.some(({ type, invoke }) => type === 'parallel' || invoke.length > 0)) throw new NotPlain()
    const isFinal = leaf.type === 'final'
    // The end of a part of a chart raises an event, and what is left when all ends may have something to do.
    if (isFinal && (leaf.parent !== this.#machine.root || leaf.output !== undefined)) throw new NotPlain()
    if (isFinal && path.some(({ exit }) => exit.length > 0)) throw new NotPlain()
    const template = this.#machine.resolveState({ value: valueOf(leaf), context: {} } as never) as AnyMachineSnapshot
    const place: Place = {
      leaf,
      template,
      steps: new Map(),
      always: [],
      isRestful: undefined,
      end: isFinal ? this.#endOf(leaf) : undefined,
    }
    this.#byLeaf.set(leaf, place)
    this.#byValue.set(template.value, place)
    place.always = path.flatMap((node) =>
      (node.always ?? []).map((transition): Step => {
        const guard = plainly(() => (transition.guard === undefined ? undefined : this.#guard(transition.guard)))
        if (guard === undefined && transition.guard !== undefined) return HARD
        return plainly(() => this.#step(place, transition, true)) ?? { ...HARD, guard }
      }),
    )
    return place
  }

  #endOf(leaf: AnyStateNode): (context: unknown, self: unknown) => unknown {
    const output: unknown = this.#machine.root.output
    const event = { type: `xstate.done.state.${leaf.id}`, output: undefined }
    return typeof output === 'function'
      ? (context, self): unknown => (output as (args: object) => unknown)({ context, event, self })
      : () => output
  }

  #stepsOf(place: Place, type: string): readonly Step[] | undefined {
    if (place.steps.has(type)) return place.steps.get(type)
    const steps = plainly(() =>
      pathTo(place.leaf).flatMap((node) => {
        const descriptors = [...node.transitions.keys()]
        // The order in which wildcards are tried is XState's business; the whole type is the only one that is plain.
        if (descriptors.some((one) => one !== type && one.endsWith('*'))) {
          if (descriptors.some((one) => one !== type && one.endsWith('*') && type.startsWith(one.slice(0, -1)))) {
            throw new NotPlain()
          }
        }
        return (node.transitions.get(type) ?? []).map((transition) => this.#step(place, transition, false))
      }),
    )
    place.steps.set(type, steps)
    return steps
  }

  #step(
    place: Place,
    transition: AnyStateNode['always'] extends (infer T)[] | undefined ? T : never,
    isEventless: boolean,
  ): Step {
    const { source, target: targets, reenter, guard } = transition
    const actions = [...transition.actions]
    let target: Place | undefined
    if (targets !== undefined && targets.length > 0) {
      const [to] = targets
      if (to === undefined || targets.length > 1 || (to === source && !reenter) || to.type === 'history') {
        throw new NotPlain()
      }
      const leaf = initialLeaf(to)
      const domain = isBelow(to, source) && !reenter ? source : commonAncestor(source, to)
      const exited = pathTo(place.leaf).filter((node) => isBelow(node, domain))
      const entered = pathTo(leaf).filter((node) => isBelow(node, domain))
      target = this.#place(leaf)
      actions.unshift(...exited.flatMap(({ exit }) => exit))
      for (const node of entered.reverse()) {
        actions.push(...node.entry)
        if (node !== leaf && isBelow(leaf, node) && (node === to || isBelow(node, to))) {
          actions.push(...node.initial.actions)
        }
      }
    } else if (isEventless) {
      // It would be taken again and again until its guard says no.
      throw new NotPlain()
    }
    return {
      guard: guard === undefined ? undefined : this.#guard(guard),
      actions: actions.map((one) => this.#action(one)),
      target,
      isHard: false,
      described: [transition],
    }
  }

  #guard(given: unknown): Guard {
    const { type, params } = named(given)
    const check = typeof given === 'function' ? given : this.#machine.implementations.guards[type as never]
    // A guard made of guards has a `check` of its own.
    if (typeof check !== 'function' || 'check' in check || typeof params === 'function') throw new NotPlain()
    return { check: check as unknown as Guard['check'], params }
  }

  /** A raise whose delay is a number, or bears the name of one. Any other may turn out to be none. */
  #isDelay(raised: object): boolean {
    const delay: unknown = 'delay' in raised ? raised.delay : undefined
    return (
      typeof delay === 'number' ||
      (typeof delay === 'string' && Object.hasOwn(this.#machine.implementations.delays, delay))
    )
  }

  #action(given: unknown): Action {
    const { type, params } = named(given)
    const found: unknown = typeof given === 'function' ? given : this.#machine.implementations.actions[type as never]
    if (typeof found !== 'function' || typeof params === 'function') throw new NotPlain()
    const action = { run: undefined, assignment: undefined, timer: undefined, params }
    if (!('resolve' in found)) return { ...action, run: found as Action['run'] }
    const kind = 'type' in found ? found.type : undefined
    if (kind === 'xstate.assign' && 'assignment' in found) {
      return { ...action, assignment: found.assignment as Assignment }
    }
    const isTimer = kind === 'xstate.cancel' || (kind === 'xstate.raise' && this.#isDelay(found))
    if (!isTimer || !('execute' in found)) throw new NotPlain()
    return { ...action, timer: found as unknown as TimerAction }
  }
}

const withContext = (template: AnyMachineSnapshot, context: unknown): AnyMachineSnapshot => ({ ...template, context })

const firstOpen = (steps: readonly Step[], context: unknown, event: AnyEventObject): Step | undefined => {
  for (const step of steps) if (passes(step.guard, context, event)) return step
  return undefined
}

/** Tells inspectors, as XState does. An XState that has no such method has no inspectors that could miss it. */
function showMicrostep(
  { self, system }: AnyActorScope,
  event: AnyEventObject,
  snapshot: AnyMachineSnapshot,
  transitions: readonly unknown[],
): void {
  const inspected = system as { _sendInspectionEvent?: (event: object) => void }
  inspected._sendInspectionEvent?.({
    type: '@xstate.microstep',
    actorRef: self as unknown,
    event,
    snapshot,
    _transitions: transitions,
  })
}

function isRestful(place: Place): boolean {
  if (place.end !== undefined) return true
  if (place.isRestful === undefined) {
    // A circle of eventless transitions is as restful as the rest of it.
    place.isRestful = true
    place.isRestful = place.always.every(({ isHard, target }) => !isHard && (target === undefined || isRestful(target)))
  }
  return place.isRestful
}

function perform(
  step: Step,
  snapshot: AnyMachineSnapshot,
  event: AnyEventObject,
  scope: AnyActorScope,
): AnyMachineSnapshot {
  const { self } = scope
  const system: unknown = scope.system
  let context: unknown = snapshot.context
  for (const { run, assignment, timer, params } of step.actions) {
    const args = { context, event, self, system, spawn: mustNotSpawn }
    if (run !== undefined) run(args, params)
    else if (assignment !== undefined) context = assigned(context, assignment, args, params)
    else if (timer !== undefined) {
      const present = context === snapshot.context ? snapshot : withContext(snapshot, context)
      const [, resolved] = timer.resolve(scope, present, args, params, timer, { internalQueue: [] })
      timer.execute(scope, resolved)
    }
  }
  const { target } = step
  if (target === undefined) return context === snapshot.context ? snapshot : withContext(snapshot, context)
  const { template, end } = target
  const children: unknown = snapshot.children
  if (end === undefined) return { ...template, context, children }
  return { ...template, context, children, status: 'done', output: end(context, self) } as unknown as AnyMachineSnapshot
}

function assigned(context: unknown, assignment: Assignment, args: Args, params: unknown): unknown {
  if (typeof assignment === 'function') {
    const update = assignment(args, params)
    for (const _ in update) return { ...(context as object), ...update }
    return context
  }
  const update: Record<string, unknown> = { ...(context as object) }
  for (const key in assignment) {
    const value = assignment[key]
    update[key] = typeof value === 'function' ? (value as Assigner)(args, params) : value
  }
  return update
}

const passes = (guard: Guard | undefined, context: unknown, event: AnyEventObject): boolean =>
  guard === undefined || Boolean(guard.check({ context, event }, guard.params))

/** A chart whose actors are listed in its snapshots is no plain one; ours keep their own lists. */
function mustNotSpawn(): never {
  throw new Error('a chart that is run directly must not spawn: make children with createActor')
}

function plainly<T>(compile: () => T): T | undefined {
  try {
    return compile()
  } catch (error) {
    if (error instanceof NotPlain) return undefined
    throw error
  }
}

function named(given: unknown): { type: string; params: unknown } {
  if (typeof given === 'string') return { type: given, params: undefined }
  return given as { type: string; params: unknown }
}

/** A state and those around it, from the inside out. */
function pathTo(leaf: AnyStateNode): AnyStateNode[] {
  const path = [leaf]
  for (let node = leaf.parent; node !== undefined; node = node.parent) path.push(node)
  return path
}

function initialLeaf(node: AnyStateNode): AnyStateNode {
  if (node.type !== 'compound') return node
  const [target] = node.initial.target
  if (target === undefined) throw new NotPlain()
  return initialLeaf(target)
}

function isBelow(node: AnyStateNode, above: AnyStateNode): boolean {
  for (let parent = node.parent; parent !== undefined; parent = parent.parent) if (parent === above) return true
  return false
}

function commonAncestor(a: AnyStateNode, b: AnyStateNode): AnyStateNode {
  const found = pathTo(a).find((node) => node !== a && node !== b && isBelow(b, node))
  if (found === undefined) throw new NotPlain()
  return found
}

/** The value of a state, as snapshots have it: 'a', or { a: 'b' }. */
function valueOf(leaf: AnyStateNode): unknown {
  return pathTo(leaf)
    .slice(0, -1)
    .reduce<unknown>((value, { key }) => (value === undefined ? key : { [key]: value }), undefined)
}
