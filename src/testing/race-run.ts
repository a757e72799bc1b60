/**
 * One run of a race. In each turn a chooser picks one of the things that can happen next: the next step of an actor, the settling
 * of a promise that the race holds back, or the next timer of the simulated clock. After the turn, microtasks run
 * (`settleTicks`) and the invariants are checked, until nothing is left.
 *
 * A run never waits for real time or for the event loop. A step that hangs is noticed because nothing is left to choose from.
 * The file is long because all of this is about the state of one run.
 */
import { isThenable } from '../callbacks/isolated-call.js'
import { AgentTasksError } from '../errors.js'
import { preview } from '../preview.js'
import { checkRaceActors } from './check-race-options.js'
import { runMicrotasks } from './microtasks.js'
import { watchOutside, type OutsideWatch } from './outside-work.js'
import { watchPromise } from './promise-outcome.js'
import { CLOCK, createRaceClock, type MovableRaceClock } from './race-clock.js'
import type { Race, RaceCheck, RaceOptions } from './race-options.js'
import type { Chooser } from './race-order.js'
import { RacePromises, type Turn } from './race-promises.js'
import type { RejectionWatch } from './unhandled-rejections.js'
import { stepsOf, type NextStep, type Steps } from './race-steps.js'

/** One turn of a run. */
export interface RaceEvent {
  /** When it happened, in ms since the epoch of the simulated clock. */
  readonly at: number
  /** The name of an actor, the label of a promise, or `clock`. */
  readonly actor: string
  /** The label of the step; of a timer, who set it. */
  readonly step: string
  /** The lines of `race.note`, and what the step returned. */
  readonly notes: readonly string[]
}

/** Why a run failed. */
export interface RaceFailure {
  /**
   * What failed: an invariant, a condition at the end, or a step, timer, setup or teardown that threw. `rejection`: a promise was
   * rejected and nothing handled it. `hang`: a step never settled.
   * `loop`: more turns than `maxEvents`. `time`: the actors were not done within `timeoutMs`.
   */
  readonly kind: 'invariant' | 'end' | 'step' | 'timer' | 'setup' | 'teardown' | 'rejection' | 'hang' | 'loop' | 'time'
  /** The failure in a sentence. */
  readonly message: string
  /** The thrown error, if there was one. */
  readonly cause?: unknown
  /** How many events came before the failure. */
  readonly after: number
}

/** What happened in one run. */
export interface RaceRun {
  /** The events, in order. */
  readonly events: readonly RaceEvent[]
  /** The first failure; undefined when the run passed. */
  readonly failure: RaceFailure | undefined
}

/** After its first failure a run stops, or goes on to the end so that exhaustive mode sees all choices of its order. */
export type AfterFailure = 'stop' | 'go on'

/**
 * Runs a race once. A failure is part of the result.
 * @throws InvalidInputError when the function `actors` returns invalid actors
 */
export async function runRace<World, Input>(
  options: RaceOptions<World, Input>,
  chooser: Chooser,
  input: Input,
  afterFailure: AfterFailure = 'stop',
): Promise<RaceRun> {
  return new Run(options, chooser, afterFailure).run(input)
}

/** Runs a race once, and lets the event loop turn, which reports the rejections that nothing handled. */
export async function runWatchedRace<World, Input>(
  watch: RejectionWatch,
  ...args: Parameters<typeof runRace<World, Input>>
): Promise<RaceRun> {
  const run = await runRace<World, Input>(...args)
  // A step that hangs may spin in microtasks: the event loop would never come back.
  if (run.failure !== undefined) return run
  const rejection = await watch.first()
  if (rejection === undefined) return run
  const { reason: cause } = rejection
  const message = `a promise was rejected and nothing handled it: ${messageOf(cause)}`
  return { ...run, failure: { kind: 'rejection', message, cause, after: run.events.length } }
}

/** An actor in a run. */
interface Runner {
  readonly name: string
  readonly steps: Steps
  /** The label of the step that has not settled. */
  open: string | undefined
  isDone: boolean
}

class Run<World, Input> {
  readonly #options: RaceOptions<World, Input>
  readonly #chooser: Chooser
  readonly #afterFailure: AfterFailure
  readonly #clock: MovableRaceClock
  readonly #promises = new RacePromises()
  readonly #race: Race
  readonly #events: { at: number; actor: string; readonly step: string; notes: string[] }[] = []
  readonly #outside: OutsideWatch = watchOutside()
  readonly #ticks: number
  readonly #maxEvents: number
  readonly #timeoutMs: number
  #runners: Runner[] = []
  /** The actor of the last turn. */
  #last = ''
  #failure: RaceFailure | undefined
  /** When every actor was done. */
  #doneAt: number | undefined

  constructor(options: RaceOptions<World, Input>, chooser: Chooser, afterFailure: AfterFailure) {
    this.#options = options
    this.#chooser = chooser
    this.#afterFailure = afterFailure
    this.#clock = createRaceClock(options.startTime ?? 0, () => this.#events.at(-1)?.actor)
    this.#ticks = options.settleTicks ?? 64
    this.#maxEvents = options.maxEvents ?? 1000
    this.#timeoutMs = options.timeoutMs ?? 3_600_000
    this.#race = {
      clock: this.#clock,
      schedule: (task, label) => this.#promises.schedule(task, label),
      scheduleFunction: (act, label) => this.#promises.scheduleFunction(act, label),
      pause: (label) => this.#promises.pause(label),
      note: (text) => void this.#events.at(-1)?.notes.push(text),
    }
  }

  async run(input: Input): Promise<RaceRun> {
    try {
      return await this.#run(input)
    } finally {
      this.#outside.stop()
    }
  }

  async #run(input: Input): Promise<RaceRun> {
    const { setup, actors, atEnd = {}, teardown } = this.#options
    const built = await this.#finish('setup', () => setup(this.#race, input))
    if (built !== undefined) {
      const world = built.value
      const all = typeof actors === 'function' ? actors(world, input) : actors
      checkRaceActors(all)
      this.#promises.reserve([...Object.keys(all), CLOCK])
      this.#runners = Object.entries(all).map(([name, actor]) => ({
        name,
        steps: stepsOf(actor, world, this.#race),
        open: undefined,
        isDone: false,
      }))
      await this.#takeTurns(world)
      await this.#check(world, 'end', Object.entries(atEnd))
      if (teardown !== undefined) await this.#finish('teardown', () => teardown(world))
    }
    this.#promises.close()
    this.#clock.close()
    return { events: this.#events, failure: this.#failure }
  }

  async #takeTurns(world: World): Promise<void> {
    const invariants = Object.entries(this.#options.invariants ?? {})
    await this.#settle()
    for (;;) {
      await this.#check(world, 'invariant', invariants)
      if (this.#failure !== undefined && this.#afterFailure === 'stop') return
      const turns = this.#turns()
      if (turns.length === 0) break
      if (this.#events.length >= this.#maxEvents) {
        this.#fail(
          'loop',
          `after ${this.#maxEvents} events there is no end: does something start itself over and over?`,
        )
        return
      }
      this.#take(this.#choose(turns))
      await this.#settle()
    }
    const open = this.#runners.filter((runner) => runner.open !== undefined)
    if (open.length === 0) return
    const steps = open.map(({ name, open: label }) => `step '${label ?? ''}' of ${name}`)
    const promises = this.#promises.unsettled.map((name) => `the promise '${name}'`)
    const what = [...steps, ...promises].join(', ')
    if (this.#clock.nextDue === undefined) {
      this.#fail('hang', `never settled: ${what}. Nothing is left that could go on. ${this.#outside.hint()}`)
    } else this.#fail('time', `not done within ${this.#timeoutMs} ms of simulated time: ${what}`)
  }

  /** Everything that can take the next turn. */
  #turns(): Turn[] {
    const turns: Turn[] = []
    for (const runner of this.#runners) {
      if (runner.isDone || runner.open !== undefined) continue
      const next = runner.steps()
      if (next === undefined) runner.isDone = true
      else turns.push({ actor: runner.name, step: next.label, take: () => this.#step(runner, next) })
    }
    if (this.#runners.every(({ isDone }) => isDone)) this.#doneAt ??= this.#clock.now()
    turns.push(...this.#promises.ready)
    const mayTimerRun = turns.length === 0 || this.#options.time !== 'waits'
    return mayTimerRun ? [...turns, ...this.#timer()] : turns
  }

  /** The turn of the next timer, if it is due in time. */
  #timer(): Turn[] {
    const { drainMs = 60_000, startTime = 0 } = this.#options
    const latest = this.#doneAt === undefined ? startTime + this.#timeoutMs : this.#doneAt + drainMs
    const due = this.#clock.nextDue
    if (due === undefined || due > latest) return []
    return [{ actor: CLOCK, step: 'timer', take: () => void this.#runTimer(this.#events.at(-1)) }]
  }

  /**
   * @param event its turn in the timeline, which names who set it
   * @returns false when no timer is set
   */
  #runTimer(event?: RaceEvent): boolean {
    try {
      return this.#clock.runNext()
    } catch (error) {
      this.#fail('timer', `a ${this.#clock.lastRun()} threw ${messageOf(error)}`, error)
      return true
    } finally {
      // Looked up when it is read: most runs are not reported.
      if (event !== undefined) Object.defineProperty(event, 'step', { enumerable: true, get: this.#clock.lastRun })
    }
  }

  #choose(turns: Turn[]): Turn {
    const [first] = turns as [Turn]
    if (turns.length === 1) {
      this.#chooser.follow?.(first.actor)
      return first
    }
    // Choice 0 is the actor of the last turn: see race-order.ts.
    const current = turns.findIndex(({ actor }) => actor === this.#last)
    if (current > 0) turns.unshift(...turns.splice(current, 1))
    return turns[this.#chooser.choose(turns.map(({ actor }) => actor))] ?? first
  }

  #take({ actor, step, take }: Turn): void {
    this.#last = actor
    const now = this.#clock.now()
    const at = actor === CLOCK ? Math.max(now, this.#clock.nextDue ?? 0) : now
    this.#clock.startTurn()
    this.#events.push({ at, actor, step, notes: [] })
    take()
  }

  #step(runner: Runner, { label, run }: NextStep): void {
    runner.open = label
    const notes = this.#events.at(-1)?.notes
    const close = (value: unknown): void => {
      runner.open = undefined
      if (value !== undefined) notes?.push(`-> ${preview(value)}`)
    }
    const fail = (error: unknown): void => {
      runner.open = undefined
      this.#fail('step', `step '${label}' of ${runner.name} threw ${messageOf(error)}`, error)
    }
    try {
      const result = run()
      if (isThenable(result)) result.then(close, fail)
      else close(result)
    } catch (error) {
      fail(error)
    }
  }

  /** Runs `setup` or `teardown` to its end: promises and timers take turns in one fixed order. */
  async #finish<T>(phase: 'setup' | 'teardown', act: () => T | PromiseLike<T>): Promise<{ value: T } | undefined> {
    const done = watchPromise(Promise.resolve().then(act))
    for (let turns = 0; ; turns += 1) {
      await this.#settle()
      if (done.outcome !== undefined || turns >= this.#maxEvents) break
      this.#clock.startTurn()
      const [next] = this.#promises.ready
      if (next !== undefined) next.take()
      else if (!this.#runTimer()) break
    }
    const { outcome } = done
    if (outcome !== undefined && 'value' in outcome) return outcome
    if (outcome === undefined) {
      this.#fail(phase, `${phase} never settled: nothing is left that could go on. ${this.#outside.hint()}`)
    } else this.#fail(phase, `${phase} threw ${messageOf(outcome.error)}`, outcome.error)
    return undefined
  }

  async #check(
    world: World,
    kind: 'invariant' | 'end',
    checks: readonly (readonly [string, RaceCheck<World>])[],
  ): Promise<void> {
    for (const [name, check] of checks) {
      if (this.#failure !== undefined) return
      try {
        const result = check(world)
        const isKept = isThenable(result) ? await this.#resultOf(result, name) : result
        if (isKept === false) this.#fail(kind, `'${name}' does not hold`)
      } catch (error) {
        this.#fail(kind, `'${name}' does not hold: ${messageOf(error)}`, error)
      }
    }
  }

  /** Awaits a check. It may wait for promises only: no turn is taken meanwhile. */
  async #resultOf(result: PromiseLike<unknown>, name: string): Promise<unknown> {
    const check = watchPromise(result)
    for (let round = 0; round < CHECK_ROUNDS && check.outcome === undefined; round += 1) await this.#settle()
    const { outcome } = check
    if (outcome === undefined) throw new AgentTasksError('RACE_HANG', `the check '${name}' never settled`)
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }

  #fail(kind: RaceFailure['kind'], message: string, cause?: unknown): void {
    this.#failure ??= { kind, message, after: this.#events.length, ...(cause !== undefined && { cause }) }
  }

  #settle(): Promise<void> {
    return runMicrotasks(this.#ticks)
  }
}

const CHECK_ROUNDS = 10

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : preview(error)
}
