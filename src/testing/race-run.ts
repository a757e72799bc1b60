/**
 * One run of a race: a world is built, and whatever could happen next takes its turn in the order that a chooser says,
 * until nothing is left. Three kinds of things can happen: the next step of an actor, the settling of a promise that was
 * handed to the race, and the next timer of the simulated clock.
 *
 * After each of them promises go on as far as they can (`settleTicks`), and the invariants are checked. Nothing here waits for
 * real time, nor for the event loop: a step that hangs leaves nothing to choose from, which is how it is noticed.
 *
 * It is longer than most files because the rules of a turn belong together.
 */
import { AgentTasksError } from '../errors.js'
import { preview } from '../preview.js'
import { createRaceClock, type MovableRaceClock } from './race-clock.js'
import {
  checkActors,
  CLOCK,
  type Race,
  type RaceActor,
  type RaceCheck,
  type RaceGenerator,
  type RaceOptions,
  type RaceStep,
} from './race-options.js'
import type { Chooser } from './race-order.js'

/** One thing that happened in a run. */
export interface RaceEvent {
  /** When, in ms since the epoch, by the simulated clock. */
  readonly at: number
  /** The name of an actor, the label of a promise, or `clock`. */
  readonly actor: string
  /** What it did. */
  readonly step: string
  /** What was noted while it happened. */
  readonly notes: readonly string[]
}

/** What was wrong with a run. */
export interface RaceFailure {
  /** `hang`: a step never settled. `loop`: there was no end. `time`: the actors were not done within `timeoutMs`. */
  readonly kind: 'invariant' | 'end' | 'step' | 'timer' | 'setup' | 'teardown' | 'hang' | 'loop' | 'time'
  /** In words. */
  readonly message: string
  /** What was thrown, if something was. */
  readonly cause?: unknown
  /** How many events had happened by then. */
  readonly after: number
}

/** What happened in one run, and what was wrong with it, if anything. */
export interface RaceRun {
  /** What happened, in order. */
  readonly events: readonly RaceEvent[]
  /** What was wrong; undefined for a run without fault. */
  readonly failure: RaceFailure | undefined
}

interface Happening {
  readonly actor: string
  readonly step: string
  readonly take: () => void
}

interface Line<World> {
  readonly name: string
  /** Undefined when the actor is done. */
  readonly next: () => { readonly label: string; readonly run: (world: World, race: Race) => unknown } | undefined
  /** The step that has not settled. */
  open: string | undefined
  isDone: boolean
}

/** Where the run stands: promises settle by themselves before and after the race. */
type Phase = 'setup' | 'race' | 'teardown' | 'over'

/** What a run may do after its first failure: stop, or go on so that its order is counted as a whole. */
export type AfterFailure = 'stop' | 'go on'

/** Runs a race once. Rejects only for actors that are none; everything else is part of the answer. */
export async function runRace<World, Input>(
  options: RaceOptions<World, Input>,
  chooser: Chooser,
  input: Input,
  afterFailure: AfterFailure = 'stop',
): Promise<RaceRun> {
  return new Run(options, chooser, afterFailure).run(input)
}

class Run<World, Input> {
  readonly #options: RaceOptions<World, Input>
  readonly #chooser: Chooser
  readonly #afterFailure: AfterFailure
  readonly #clock: MovableRaceClock
  readonly #race: Race
  readonly #events: { at: number; actor: string; step: string; notes: string[] }[] = []
  readonly #names = new Map<string, number>()
  readonly #checks: (readonly [string, RaceCheck<World>])[]
  readonly #ticks: number
  #lines: Line<World>[] = []
  #settled: Happening[] = []
  #unsettled = new Set<string>()
  #phase: Phase = 'setup'
  #last = ''
  #failure: RaceFailure | undefined
  #finishedAt: number | undefined

  constructor(options: RaceOptions<World, Input>, chooser: Chooser, afterFailure: AfterFailure) {
    this.#options = options
    this.#chooser = chooser
    this.#afterFailure = afterFailure
    this.#clock = createRaceClock(options.startTime ?? 0)
    this.#checks = Object.entries(options.invariants ?? {})
    this.#ticks = options.settleTicks ?? 64
    this.#race = {
      clock: this.#clock,
      schedule: (task, label = 'promise') => this.#schedule(task, label),
      scheduleFunction: (act, label) => {
        const name = label ?? (act.name === '' ? 'call' : act.name)
        return (...args) => this.#schedule(act(...args), name)
      },
      pause: (label) => this.#pause(label),
      note: (text) => void this.#events.at(-1)?.notes.push(text),
    }
  }

  async run(input: Input): Promise<RaceRun> {
    const { setup, actors, teardown } = this.#options
    const built = await this.#finish('setup', () => setup(this.#race, input))
    if (built !== undefined) {
      const world = built.value
      const cast = typeof actors === 'function' ? actors(world, input) : actors
      checkActors(cast)
      for (const name of Object.keys(cast)) this.#names.set(name, 1)
      this.#names.set(CLOCK, 1)
      this.#lines = Object.entries(cast).map(([name, actor]) => toLine(name, actor, world, this.#race))
      this.#phase = 'race'
      await this.#raceOn(world)
      await this.#checkEnd(world)
      this.#phase = 'teardown'
      if (teardown !== undefined) await this.#finish('teardown', () => teardown(world))
    }
    this.#phase = 'over'
    this.#clock.close()
    return { events: this.#events, failure: this.#failure }
  }

  // The race

  async #raceOn(world: World): Promise<void> {
    const { maxEvents = 1000 } = this.#options
    await this.#settle()
    for (;;) {
      await this.#check(world, 'invariant', this.#checks)
      if (this.#hasToStop) return
      const happenings = this.#happenings(world)
      if (happenings.length === 0) break
      if (this.#events.length >= maxEvents) {
        this.#fail('loop', `after ${maxEvents} events there is no end: does something start itself over and over?`)
        return
      }
      this.#take(this.#pick(happenings))
      await this.#settle()
    }
    const open = this.#lines.filter((line) => line.open !== undefined)
    if (open.length === 0) return
    const timer = this.#clock.nextDue
    if (timer !== undefined) {
      const { timeoutMs = DEFAULT_TIMEOUT_MS } = this.#options
      this.#fail('time', `not done within ${timeoutMs} ms of simulated time: ${this.#describe(open)}`)
    } else this.#fail('hang', `never settled: ${this.#describe(open)}. Nothing is left that could go on`)
  }

  #happenings(world: World): Happening[] {
    const steps: Happening[] = []
    let isAnyoneLeft = false
    for (const line of this.#lines) {
      if (line.isDone) continue
      isAnyoneLeft = true
      if (line.open !== undefined) continue
      const next = line.next()
      if (next === undefined) line.isDone = true
      else steps.push({ actor: line.name, step: next.label, take: () => this.#step(line, next, world) })
    }
    if (isAnyoneLeft && this.#lines.every(({ isDone }) => isDone)) isAnyoneLeft = false
    if (!isAnyoneLeft) this.#finishedAt ??= this.#clock.now()
    const happenings = [...steps, ...this.#settled]
    const hasTimeToWait = happenings.length > 0 && this.#options.time === 'waits'
    if (!hasTimeToWait) happenings.push(...this.#timer(isAnyoneLeft))
    return happenings
  }

  #timer(isAnyoneLeft: boolean): Happening[] {
    const due = this.#clock.nextDue
    const { timeoutMs = DEFAULT_TIMEOUT_MS, drainMs = DEFAULT_DRAIN_MS, startTime = 0 } = this.#options
    const latest = isAnyoneLeft ? startTime + timeoutMs : (this.#finishedAt ?? 0) + drainMs
    if (due === undefined || due > latest) return []
    return [{ actor: CLOCK, step: 'the next timer is due', take: () => this.#runTimer() }]
  }

  #runTimer(): void {
    try {
      this.#clock.runNext()
    } catch (error) {
      this.#fail('timer', `a timer threw ${say(error)}`, error)
    }
  }

  #pick(happenings: Happening[]): Happening {
    const [first] = happenings as [Happening]
    if (happenings.length === 1) {
      this.#chooser.follow?.(first.actor)
      return first
    }
    const current = happenings.findIndex(({ actor }) => actor === this.#last)
    if (current > 0) happenings.unshift(...happenings.splice(current, 1))
    return happenings[this.#chooser.choose(happenings.map(({ actor }) => actor))] ?? first
  }

  #take({ actor, step, take }: Happening): void {
    this.#last = actor
    const due = actor === CLOCK ? Math.max(this.#clock.now(), this.#clock.nextDue ?? 0) : this.#clock.now()
    this.#clock.allowReads()
    this.#events.push({ at: due, actor, step, notes: [] })
    take()
  }

  #step(line: Line<World>, { label, run }: NonNullable<ReturnType<Line<World>['next']>>, world: World): void {
    const what = `step '${label}' of ${line.name}`
    line.open = label
    const notes = this.#events.at(-1)?.notes
    const close = (value: unknown): void => {
      line.open = undefined
      if (value !== undefined) notes?.push(`-> ${preview(value)}`)
    }
    const fail = (error: unknown): void => {
      line.open = undefined
      this.#fail('step', `${what} threw ${say(error)}`, error)
    }
    try {
      const result = run(world, this.#race)
      if (isThenable(result)) result.then(close, fail)
      else close(result)
    } catch (error) {
      fail(error)
    }
  }

  // Promises in the hands of the race

  #schedule<T>(task: PromiseLike<T>, label: string): Promise<T> {
    const name = this.#name(label)
    this.#unsettled.add(name)
    return new Promise((resolve, reject) => {
      const offer = (step: string, act: () => void) => {
        this.#unsettled.delete(name)
        this.#offer({ actor: name, step, take: act })
      }
      task.then(
        (value) => offer('resolves', () => resolve(value)),
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as it came from the user's code
        (error: unknown) => offer('rejects', () => reject(error)),
      )
    })
  }

  #pause(label: string): Promise<void> {
    const name = this.#name(label)
    return new Promise((resolve) => this.#offer({ actor: name, step: 'goes on', take: resolve }))
  }

  #offer(happening: Happening): void {
    if (this.#phase !== 'over') this.#settled.push({ ...happening, take: () => this.#settleOne(happening) })
  }

  #settleOne(happening: Happening): void {
    this.#settled = this.#settled.filter(({ actor }) => actor !== happening.actor)
    happening.take()
  }

  /** A name that nobody else in this run bears, the same in every run that comes here in the same way. */
  #name(label: string): string {
    const uses = (this.#names.get(label) ?? 0) + 1
    this.#names.set(label, uses)
    return uses === 1 ? label : `${label} #${uses}`
  }

  // Before and after the race

  /** Lets `act` come to its end, whatever it waits for, in one fixed order. */
  async #finish<T>(phase: 'setup' | 'teardown', act: () => T | PromiseLike<T>): Promise<{ value: T } | undefined> {
    let outcome: { value: T } | { error: unknown } | undefined
    Promise.resolve()
      .then(act)
      .then(
        (value) => (outcome = { value }),
        (error: unknown) => (outcome = { error }),
      )
    const { maxEvents = 1000 } = this.#options
    for (let events = 0; ; events += 1) {
      await this.#settle()
      if (outcome !== undefined) break
      const next = this.#settled[0]
      this.#clock.allowReads()
      if (events < maxEvents && next !== undefined) next.take()
      else if (events >= maxEvents || !this.#runAnyTimer()) break
    }
    if (outcome === undefined) {
      this.#fail(phase, `${phase} never settled: nothing is left that could go on`)
      return undefined
    }
    if ('value' in outcome) return outcome
    this.#fail(phase, `${phase} threw ${say(outcome.error)}`, outcome.error)
    return undefined
  }

  #runAnyTimer(): boolean {
    try {
      return this.#clock.runNext()
    } catch (error) {
      this.#fail('timer', `a timer threw ${say(error)}`, error)
      return true
    }
  }

  // Checks

  async #checkEnd(world: World): Promise<void> {
    if (this.#failure !== undefined) return
    await this.#check(world, 'end', Object.entries(this.#options.atEnd ?? {}))
  }

  async #check(
    world: World,
    kind: 'invariant' | 'end',
    checks: readonly (readonly [string, RaceCheck<World>])[],
  ): Promise<void> {
    if (this.#failure !== undefined) return
    for (const [name, check] of checks) {
      try {
        const result = check(world)
        const isRight = isThenable(result) ? await this.#outcomeOf(result, name) : result
        if (isRight === false) this.#fail(kind, `'${name}' does not hold`)
      } catch (error) {
        this.#fail(kind, `'${name}' does not hold: ${say(error)}`, error)
      }
      if (this.#hasFailed) return
    }
  }

  /** Only promises may stand between a check and its answer. */
  async #outcomeOf(result: PromiseLike<unknown>, name: string): Promise<unknown> {
    let outcome: { value: unknown } | { error: unknown } | undefined
    result.then(
      (value) => (outcome = { value }),
      (error: unknown) => (outcome = { error }),
    )
    for (let round = 0; round < CHECK_ROUNDS && outcome === undefined; round += 1) await this.#settle()
    if (outcome === undefined) throw new AgentTasksError('RACE_HANG', `the check '${name}' never settled`)
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }

  get #hasFailed(): boolean {
    return this.#failure !== undefined
  }

  get #hasToStop(): boolean {
    return this.#failure !== undefined && this.#afterFailure === 'stop'
  }

  #fail(kind: RaceFailure['kind'], message: string, cause?: unknown): void {
    this.#failure ??= { kind, message, after: this.#events.length, ...(cause !== undefined && { cause }) }
  }

  #describe(open: readonly Line<World>[]): string {
    const steps = open.map(({ name, open: label }) => `step '${label ?? ''}' of ${name}`)
    const tasks = [...this.#unsettled].map((name) => `the promise '${name}'`)
    return [...steps, ...tasks].join(', ')
  }

  async #settle(): Promise<void> {
    for (let tick = 0; tick < this.#ticks; tick += 1) await SETTLED
  }
}

const SETTLED = Promise.resolve()
const DEFAULT_TIMEOUT_MS = 3_600_000
const DEFAULT_DRAIN_MS = 60_000
const CHECK_ROUNDS = 10

function toLine<World>(name: string, actor: RaceActor<World>, world: World, race: Race): Line<World> {
  // A list of steps is the only actor that is no function.
  const next = typeof actor === 'function' ? stepsOfGenerator(actor, world, race) : stepsOfList(actor)
  return { name, next, open: undefined, isDone: false }
}

function stepsOfList<World>(steps: readonly RaceStep<World>[]): Line<World>['next'] {
  let taken = 0
  return () => {
    const step = steps[taken]
    if (step === undefined) return undefined
    const run = typeof step === 'function' ? step : step.run
    const label = typeof step === 'function' ? step.name : step.label
    return {
      label: label === '' ? `step ${taken + 1}` : label,
      run: (world, race) => {
        taken += 1
        return run(world, race)
      },
    }
  }
}

function stepsOfGenerator<World>(create: RaceGenerator<World>, world: World, race: Race): Line<World>['next'] {
  let steps: Generator<unknown, unknown> | AsyncGenerator<unknown, unknown> | undefined
  let label = 'starts'
  let isDone = false
  const note = (result: IteratorResult<unknown, unknown>): void => {
    isDone = result.done === true
    label = !isDone && typeof result.value === 'string' ? result.value : 'goes on'
  }
  return () => {
    if (isDone) return undefined
    return {
      label,
      run: () => {
        // A generator that throws is done.
        isDone = true
        steps ??= create(world, race)
        const result = steps.next()
        if (isThenable(result)) return result.then(note)
        note(result)
        return undefined
      },
    }
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** What was thrown, in one line or as it says itself. */
function say(error: unknown): string {
  return error instanceof Error ? error.message : preview(error)
}
