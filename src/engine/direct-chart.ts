/**
 * Runs a chart without the machinery that most of its transitions do not need. XState computes the sets of states to exit and to enter
 * anew at every event; for the plain part of a chart they are always the same, so they are computed once for each state and event.
 *
 * The plain part: transitions of one region at a time, no history, no invocations, actions that are functions, `assign`s or timers. For
 * everything else (raised events, ends inside a chart, regions that move together) the chart itself is asked, so that what happens is what
 * XState does; the property in test/model/direct-chart.test.ts holds the two together. It is one file because compiling and running share
 * every type.
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

/** What an event may do: what the states inside have to say of it, or else, first come first served, the steps of their own. */
interface Choice {
  readonly inner: readonly Choice[]
  readonly own: readonly Step[]
}

/** States that are active together, one in each region. */
interface Place {
  readonly leaves: readonly AnyStateNode[]
  /** A snapshot of it, but for the context and the children. */
  readonly template: AnyMachineSnapshot
  /** What an event may do; undefined: the chart has to be asked. */
  readonly choices: Map<string, Choice | undefined>
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

const NO_CHOICE: Choice = { inner: [], own: [] }

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
  readonly #byLeaves = new Map<string, Place>()
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
      const leaves = leavesOf(machine.root)
      if (nodesOf(leaves).some(({ entry, invoke }) => entry.length + invoke.length > 0)) throw new NotPlain()
      return this.#place(leaves)
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
    const choice = isDeclared ? this.#choiceOf(place, type) : NO_CHOICE
    if (choice === undefined) return undefined
    let next = choose(choice, snapshot.context, event) ?? firstOpen(place.always, snapshot.context, event)
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
    return plainly(() => this.#place(leavesIn(this.#machine.root, snapshot.value)))
  }

  #place(leaves: readonly AnyStateNode[]): Place {
    const key = leaves.map(({ id }) => id).join('\n')
    const known = this.#byLeaves.get(key)
    if (known !== undefined) return known
    const { root } = this.#machine
    const nodes = nodesOf(leaves)
    const [leaf] = leaves
    if (leaf === undefined || leaf === root || nodes.some(({ invoke }) => invoke.length > 0)) throw new NotPlain()
    const isFinal = leaves.some(({ type }) => type === 'final')
    // The end of a part of a chart raises an event, and what is left when all ends may have something to do.
    if (isFinal && (leaf.parent !== root || leaf.output !== undefined)) throw new NotPlain()
    if (isFinal && nodes.some(({ exit }) => exit.length > 0)) throw new NotPlain()
    const value = valueOf(root, new Set(nodes))
    const template = this.#machine.resolveState({ value, context: {} } as never) as AnyMachineSnapshot
    const place: Place = {
      leaves,
      template,
      choices: new Map(),
      always: [],
      isRestful: undefined,
      end: isFinal ? this.#endOf(leaf) : undefined,
    }
    this.#byLeaves.set(key, place)
    this.#byValue.set(template.value, place)
    const always = leaves.map((one) => this.#alwaysOf(place, one)).filter((steps) => steps.length > 0)
    // Which of several regions go on together is the chart's to say.
    place.always = always.length > 1 ? [HARD] : always.flat()
    return place
  }

  #alwaysOf(place: Place, leaf: AnyStateNode): Step[] {
    return pathTo(leaf).flatMap((node) =>
      (node.always ?? []).map((transition): Step => {
        const guard = plainly(() => (transition.guard === undefined ? undefined : this.#guard(transition.guard)))
        if (guard === undefined && transition.guard !== undefined) return HARD
        return plainly(() => this.#step(place, transition, true)) ?? { ...HARD, guard }
      }),
    )
  }

  #endOf(leaf: AnyStateNode): (context: unknown, self: unknown) => unknown {
    const output: unknown = this.#machine.root.output
    const event = { type: `xstate.done.state.${leaf.id}`, output: undefined }
    return typeof output === 'function'
      ? (context, self): unknown => (output as (args: object) => unknown)({ context, event, self })
      : () => output
  }

  #choiceOf(place: Place, type: string): Choice | undefined {
    if (place.choices.has(type)) return place.choices.get(type)
    const nodes = nodesOf(place.leaves)
    const within = (node: AnyStateNode): Choice => {
      // The order in which wildcards are tried is XState's business; the whole type is the only one that is plain.
      const wildcards = [...node.transitions.keys()].filter((one) => one !== type && one.endsWith('*'))
      if (wildcards.some((one) => type.startsWith(one.slice(0, -1)))) throw new NotPlain()
      return {
        inner: nodes.filter(({ parent }) => parent === node).map(within),
        own: (node.transitions.get(type) ?? []).map((transition) => this.#step(place, transition, false)),
      }
    }
    const choice = plainly(() => within(this.#machine.root))
    place.choices.set(type, choice)
    return choice
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
      const domain = isBelow(to, source) && !reenter ? source : commonAncestor(source, to)
      const around = pathTo(to).filter((node) => node !== to && isBelow(node, domain))
      // Whoever enters one region from outside enters the others too.
      if ([domain, ...around].some(({ type }) => type === 'parallel')) throw new NotPlain()
      const leaves = leavesOf(to)
      const stay = place.leaves.filter((leaf) => !isBelow(leaf, domain))
      target = this.#place([...stay, ...leaves].sort((a, b) => a.order - b.order))
      const exited = nodesOf(place.leaves).filter((node) => isBelow(node, domain))
      const entered = nodesOf(leaves).filter((node) => isBelow(node, domain))
      actions.unshift(...exited.reverse().flatMap(({ exit }) => exit))
      actions.push(...entered.flatMap(({ entry }) => entry))
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
    if (!isTimer || !('execute' in found) || !isAsKnown(found)) throw new NotPlain()
    return { ...action, timer: found as unknown as TimerAction }
  }
}

/** An XState whose timers take something else than those this was written for runs them itself. */
const isAsKnown = (action: { resolve?: unknown; execute: unknown }): boolean =>
  typeof action.resolve === 'function' &&
  action.resolve.length <= 6 &&
  typeof action.execute === 'function' &&
  action.execute.length === 2

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

/** The step that an event takes; several of them, one for each region, are the chart's to take. */
function choose({ inner, own }: Choice, context: unknown, event: AnyEventObject): Step | undefined {
  let found: Step | undefined
  for (const one of inner) {
    const step = choose(one, context, event)
    if (step === undefined) continue
    if (found !== undefined) return HARD
    found = step
  }
  return found ?? firstOpen(own, context, event)
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

/** All states that are active with these, from the outside in, as the chart has them. */
function nodesOf(leaves: readonly AnyStateNode[]): AnyStateNode[] {
  return [...new Set(leaves.flatMap(pathTo))].sort((a, b) => a.order - b.order)
}

/** Where a state leads that is entered. */
function leavesOf(node: AnyStateNode): AnyStateNode[] {
  if (node.type === 'parallel') return regionsOf(node).flatMap(leavesOf)
  if (node.type !== 'compound') return [node]
  const { target, actions } = node.initial
  const [first] = target
  if (first === undefined || first.parent !== node || target.length > 1 || actions.length > 0) throw new NotPlain()
  return leavesOf(first)
}

/** The leaves that the value of a snapshot names. */
function leavesIn(node: AnyStateNode, value: unknown): AnyStateNode[] {
  if (node.type === 'parallel') {
    return regionsOf(node).flatMap((region) => leavesIn(region, (value as Record<string, unknown>)[region.key]))
  }
  if (node.type !== 'compound') return [node]
  const key = typeof value === 'string' ? value : Object.keys(value as object)[0]
  const child = key === undefined ? undefined : node.states[key]
  if (child === undefined) throw new NotPlain()
  return leavesIn(child, typeof value === 'string' ? undefined : (value as Record<string, unknown>)[child.key])
}

function regionsOf(node: AnyStateNode): AnyStateNode[] {
  const regions = Object.values(node.states)
  if (regions.some(({ type }) => type !== 'compound')) throw new NotPlain()
  return regions
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

/** The value of a state, as snapshots have it: 'a', { a: 'b' }, or { a: 'b', c: 'd' } for regions. */
function valueOf(node: AnyStateNode, active: ReadonlySet<AnyStateNode>): unknown {
  const children = Object.values(node.states).filter((child) => active.has(child))
  const [only] = children
  if (node.type === 'compound' && only !== undefined && Object.keys(only.states).length === 0) return only.key
  return Object.fromEntries(children.map((child) => [child.key, valueOf(child, active)]))
}
