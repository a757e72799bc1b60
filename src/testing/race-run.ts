/**
 * One run of a race. In each turn a chooser picks what happens next: the next step of an actor, the settling of a promise that the race delays, or the
 * next timer of the simulated clock. After the turn, microtasks run (`settleTicks`) and the invariants are checked. This repeats until nothing is left.
 * The chooser also decides about crashes. After a crash, `setup` runs again with the data that survived.
 *
 * A run never waits for real time or for the event loop. A step hangs if it has not settled and nothing can take a turn. The file is long because all of
 * this concerns the state of one run.
 */
import { isThenable } from '../isolation/isolated-call.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { AgentTasksError } from '../errors.js'
import { preview } from '../data/preview.js'
import { checkRaceActors } from './check-race-options.js'
import { runMicrotasks } from './microtasks.js'
import { watchOutside, type OutsideWatch } from './outside-work.js'
import { watchPromise } from './promise-outcome.js'
import { memoryStore } from '../store/memory-store.js'
import { CLOCK } from './race-clock.js'
import { copyDisk, CRASH, RaceLife, type LifeHost, type Remains } from './race-life.js'
import { RaceNames } from './race-names.js'
import type { RaceCheck, RaceOptions } from './race-options.js'
import type { Chooser } from './race-order.js'
import type { Turn } from './race-promises.js'
import type { RejectionWatch } from './unhandled-rejections.js'
import { stepsOf, type NextStep, type Steps } from './race-steps.js'

export interface RaceEvent {
  /** When the turn was taken, in ms since the epoch of the simulated clock. */
  readonly at: number
  /** The name of an actor, the label of a promise, `clock`, or the name of a crash. */
  readonly actor: string
  /** The label of the step. For a timer: its label, or who set it. For a crash: `life 2 starts`. */
  readonly step: string
  /** The lines of `race.note`, and what the step returned. */
  readonly notes: readonly string[]
}

export interface RaceFailure {
  /**
   * What failed: an invariant, a condition at the end, or a step, timer, setup or teardown that threw. `rejection`: an unhandled rejection. `hang`: a
   * step never settled. `loop`: more turns than `maxEvents`. `time`: the actors were not done within `timeoutMs`.
   */
  readonly kind: 'invariant' | 'end' | 'step' | 'timer' | 'setup' | 'teardown' | 'rejection' | 'hang' | 'loop' | 'time'
  readonly message: string
  /** The thrown error, if there was one. */
  readonly cause?: unknown
  /** How many events came before the failure. */
  readonly after: number
  /** The errors that were reported to `race.onError` before the failure. */
  readonly reports: readonly RaceReport[]
}

export interface RaceReport {
  /** The reported value, usually an `Error`. */
  readonly error: unknown
  readonly from: { readonly source: string }
  /** The number of events up to and including the current one. */
  readonly after: number
}

/** What happened in one run. */
export interface RaceRun {
  /** What was noted in the setup, before the first event. */
  readonly setup: readonly string[]
  /** The events, in order. */
  readonly events: readonly RaceEvent[]
  /** The first failure; undefined when the run passed. */
  readonly failure: RaceFailure | undefined
  /** All errors that were reported to `race.onError`. */
  readonly reports: readonly RaceReport[]
}

/** What a run does after its first failure: it stops, or it continues so that exhaustive mode sees all choices of its order. */
export type AfterFailure = 'stop' | 'go on'

/**
 * Runs a race once. A failure is a part of the result, and is not thrown.
 * @param afterFailure what the run does after its first failure
 * @param onDeath awaited after each crash, when the code of the ended life has stopped
 * @throws INVALID_INPUT if the function `actors` returns invalid actors
 */
export async function runRace<World, Input, Disk>(
  options: RaceOptions<World, Input, Disk>,
  chooser: Chooser,
  input: Input,
  afterFailure: AfterFailure = 'stop',
  onDeath: () => Promise<unknown> = () => Promise.resolve(),
): Promise<RaceRun> {
  const disk = copyDisk(options.disk?.() as Disk)
  return new Run(options, chooser, { afterFailure, onDeath, disk }).run(input)
}

/** Runs a race once, and then gives the event loop a turn, so that an unhandled rejection counts as a failure. */
export async function runWatchedRace<World, Input, Disk>(
  watch: RejectionWatch,
  options: RaceOptions<World, Input, Disk>,
  chooser: Chooser,
  input: Input,
  afterFailure?: AfterFailure,
): Promise<RaceRun> {
  // Nothing handles the rejections of a crashed life. `watch.first()` takes them from the watch, so that they do not count.
  const run = await runRace(options, chooser, input, afterFailure, () => watch.first())
  // A step that hangs may keep microtasks running without end, which would block the event loop.
  if (run.failure !== undefined) return run
  const rejection = await watch.first()
  if (rejection === undefined) return run
  const { reason: cause } = rejection
  const message = `a promise was rejected and nothing handled it: ${messageOf(cause)}`
  return { ...run, failure: { kind: 'rejection', message, cause, after: run.events.length, reports: run.reports } }
}

/** An actor in a run. */
interface Runner {
  readonly name: string
  readonly steps: Steps
  /** The label of the step that has not settled; undefined if there is none. */
  open: string | undefined
  isDone: boolean
  /** How many steps the actor has begun, in this life and in earlier ones. */
  begun: number
}

class Run<World, Input, Disk> {
  readonly #options: RaceOptions<World, Input, Disk>
  readonly #chooser: Chooser
  readonly #afterFailure: AfterFailure
  readonly #onDeath: () => Promise<unknown>
  readonly #names = new RaceNames()
  readonly #events: { at: number; actor: string; readonly step: string; notes: string[] }[] = []
  readonly #setup: string[] = []
  readonly #reports: RaceReport[] = []
  readonly #outside: OutsideWatch = watchOutside()
  readonly #ticks: number
  readonly #maxEvents: number
  readonly #timeoutMs: number
  #crashesLeft: number
  #life: RaceLife<Disk>
  /** Returns the data of the crashed life; throws if it cannot be copied. */
  #remains: (() => Remains<Disk>) | undefined
  /** The number of events when the current life began. */
  #bornAt = 0
  /** Whether code of the race is running. Only then may the process die. */
  #isRunning = false
  #runners: Runner[] = []
  /** The actor of the last turn. */
  #last = ''
  #failure: RaceFailure | undefined
  /** When every actor was done. */
  #doneAt: number | undefined

  constructor(
    options: RaceOptions<World, Input, Disk>,
    chooser: Chooser,
    { afterFailure, onDeath, disk }: { afterFailure: AfterFailure; onDeath: () => Promise<unknown>; disk: Disk },
  ) {
    const { crashes = false, startTime = 0 } = options
    this.#options = options
    this.#chooser = chooser
    this.#afterFailure = afterFailure
    this.#onDeath = onDeath
    this.#ticks = options.settleTicks ?? 64
    this.#maxEvents = options.maxEvents ?? 1000
    this.#timeoutMs = options.timeoutMs ?? 3_600_000
    this.#crashesLeft = typeof crashes === 'number' ? crashes : crashes ? DEFAULT_CRASHES : 0
    this.#life = new RaceLife(this.#host, 1, startTime, { store: memoryStore(), disk })
  }

  get #host(): LifeHost {
    return {
      names: this.#names,
      lastActor: () => this.#events.at(-1)?.actor,
      hasDeadlines: this.#options.deadlines === true,
      report: (error, from) => {
        this.#reports.push({ error, from, after: this.#events.length })
        this.#note(`onError (${from.source}): ${messageOf(error)}`)
      },
      note: (text) => this.#note(text),
      chooseCrash: (points, site) => this.#chooseCrash(points, site),
      crash: (point) => this.#crash(point),
    }
  }

  #note(text: string): void {
    const { notes } = this.#events.at(-1) ?? { notes: this.#setup }
    notes.push(text)
  }

  async run(input: Input): Promise<RaceRun> {
    try {
      return await this.#run(input)
    } finally {
      this.#outside.stop()
    }
  }

  async #run(input: Input): Promise<RaceRun> {
    const { atEnd = {}, teardown } = this.#options
    this.#isRunning = true
    let built = await this.#begin(input)
    while (built !== undefined && (await this.#takeTurns(built.value)) === 'crashed') built = await this.#begin(input)
    this.#isRunning = false
    if (built !== undefined) {
      const world = built.value
      await this.#check(world, 'end', Object.entries(atEnd))
      if (teardown !== undefined) await this.#finish('teardown', () => teardown(world))
    }
    this.#life.close()
    return { setup: this.#setup, events: this.#events, failure: this.#failure, reports: this.#reports }
  }

  /**
   * Sets up a life. If the life crashes during the setup, sets up the next one.
   * @returns the world; undefined if `setup` failed
   */
  async #begin(input: Input): Promise<{ readonly value: World } | undefined> {
    const { setup, actors } = this.#options
    for (;;) {
      if (this.#remains !== undefined) await this.#revive(this.#remains())
      const { race } = this.#life
      const built = await this.#finish('setup', () => setup(race, input))
      if (this.#life.isOver) continue
      if (built === undefined) return undefined
      const world = built.value
      const all = typeof actors === 'function' ? actors(world, input) : actors
      checkRaceActors(all, this.#options.crashes)
      this.#names.reserve([...Object.keys(all), CLOCK, CRASH])
      const begun = new Map(this.#runners.map((runner) => [runner.name, runner.begun]))
      this.#runners = Object.entries(all).map(([name, actor]) => {
        const before = begun.get(name) ?? 0
        return { name, steps: stepsOf(actor, world, race, before), open: undefined, isDone: false, begun: before }
      })
      return built
    }
  }

  /** Starts the next life, when the code of the crashed one has stopped. */
  async #revive(remains: Remains<Disk>): Promise<void> {
    this.#remains = undefined
    await this.#settle()
    await this.#onDeath()
    this.#doneAt = undefined
    this.#bornAt = this.#events.length
    this.#life = new RaceLife(this.#host, this.#life.number + 1, this.#life.clock.now(), remains)
  }

  #chooseCrash(points: readonly string[], site: string): string | undefined {
    if (!this.#isRunning || this.#crashesLeft === 0) return undefined
    return points[this.#chooser.crash(points, site) - 1]
  }

  #crash(point: string): void {
    // The process has already died during the action.
    if (this.#life.isOver) return
    this.#crashesLeft -= 1
    const at = this.#life.clock.now()
    this.#events.push({ at, actor: point, step: `life ${this.#life.number + 1} starts`, notes: [] })
    // This runs inside code of the race, which must not receive the error. So the error is thrown later.
    try {
      const remains = this.#life.end()
      this.#remains = () => remains
    } catch (error) {
      this.#remains = () => {
        throw error
      }
    }
  }

  /** @returns whether the life crashed, or the race is over */
  async #takeTurns(world: World): Promise<'crashed' | 'over'> {
    const life = this.#life
    const invariants = Object.entries(this.#options.invariants ?? {})
    for (;;) {
      await this.#settle()
      if (life.isOver) return 'crashed'
      await this.#check(world, 'invariant', invariants)
      if (this.#failure !== undefined && this.#afterFailure === 'stop') return 'over'
      const turns = this.#turns()
      const hasHung = turns.length === 0 && this.#runners.some(({ open }) => open !== undefined)
      if (hasHung) break
      // A crash right after the start of a life would only repeat the start.
      const turn = this.#events.length - this.#bornAt
      const point = turn > 0 ? this.#chooseCrash([CRASH], `turn ${turn} of life ${life.number}`) : undefined
      if (point !== undefined) {
        this.#crash(point)
        return 'crashed'
      }
      if (turns.length === 0) return 'over'
      if (this.#events.length >= this.#maxEvents) {
        this.#fail(
          'loop',
          `the run has not ended after ${this.#maxEvents} events. Does something start itself again and again?`,
        )
        return 'over'
      }
      this.#take(this.#choose(turns))
    }
    this.#failToSettle()
    return 'over'
  }

  /** Fails the run, because steps have not settled and nothing can take a turn. */
  #failToSettle(): void {
    const { clock, promises } = this.#life
    const steps = this.#runners.flatMap(({ name, open }) => (open === undefined ? [] : [`step '${open}' of ${name}`]))
    const what = [...steps, ...promises.unsettled.map((name) => `the promise '${name}'`)].join(', ')
    if (clock.nextDue === undefined) {
      this.#fail('hang', `never settled: ${what}. No actor, promise or timer can take a turn. ${this.#hint()}`)
    } else this.#fail('time', `not done within ${this.#timeoutMs} ms of simulated time: ${what}`)
  }

  /** A hint for a race in which nothing can continue. */
  #hint(): string {
    const { deadlines } = this.#life.clock
    const left = [...new Set(deadlines)].map((name) => `'${name}'`).join(', ')
    const without = left === '' ? '' : `These deadlines are reached only with the option deadlines: true: ${left}. `
    return without + this.#outside.hint()
  }

  /** Returns everything that can take the next turn: steps, promises and the next timer. */
  #turns(): Turn[] {
    const turns: Turn[] = []
    for (const runner of this.#runners) {
      if (runner.isDone || runner.open !== undefined) continue
      const next = runner.steps()
      if (next === undefined) runner.isDone = true
      else turns.push({ actor: runner.name, step: next.label, take: () => this.#step(runner, next) })
    }
    if (this.#runners.every(({ isDone }) => isDone)) this.#doneAt ??= this.#life.clock.now()
    turns.push(...this.#life.promises.ready)
    return turns.length > 0 && this.#isPolling() ? turns : [...turns, ...this.#timer()]
  }

  /** Whether all timers are polls and the last turn was a poll. Then only another turn can change what a poll sees. */
  #isPolling(): boolean {
    const { clock } = this.#life
    return this.#last === CLOCK && clock.lastRun?.isPoll === true && clock.isOnlyPolling
  }

  /** Returns the turn of the next timer; nothing if the timer is due after the end of the run. */
  #timer(): Turn[] {
    const { drainMs = 60_000, startTime = 0 } = this.#options
    const latest = this.#doneAt === undefined ? startTime + this.#timeoutMs : this.#doneAt + drainMs
    const due = this.#life.clock.nextDue
    if (due === undefined || due > latest) return []
    return [{ actor: CLOCK, step: 'timer', take: () => void this.#runTimer(this.#events.at(-1)) }]
  }

  /**
   * Runs the next timer.
   * @param event the event of this turn. Its `step` becomes the name of the timer
   * @returns false when no timer is set
   */
  #runTimer(event?: RaceEvent): boolean {
    const life = this.#life
    try {
      return life.clock.runNext()
    } catch (error) {
      if (!life.isOver) this.#fail('timer', `${life.clock.lastRun?.name() ?? ''} threw ${messageOf(error)}`, error)
      return true
    } finally {
      // The name is a getter, because it is slow to compute and most runs are not reported.
      const name = life.clock.lastRun?.name
      if (event !== undefined && name !== undefined) {
        Object.defineProperty(event, 'step', { enumerable: true, get: name })
      }
    }
  }

  #choose(turns: Turn[]): Turn {
    const [first] = turns as [Turn]
    if (turns.length === 1) {
      this.#chooser.follow?.(first.actor)
      return first
    }
    // Choice 0 is the actor of the last turn: see race-order.ts. The clock is never choice 0, because timers might follow timers forever.
    const current = this.#last === CLOCK ? -1 : turns.findIndex(({ actor }) => actor === this.#last)
    if (current > 0) turns.unshift(...turns.splice(current, 1))
    return turns[this.#chooser.choose(turns.map(({ actor }) => actor))] ?? first
  }

  #take({ actor, step, take }: Turn): void {
    this.#last = actor
    const now = this.#life.clock.now()
    const at = actor === CLOCK ? Math.max(now, this.#life.clock.nextDue ?? 0) : now
    this.#life.clock.startTurn()
    this.#events.push({ at, actor, step, notes: [] })
    take()
  }

  #step(runner: Runner, { label, run }: NextStep): void {
    const life = this.#life
    runner.open = label
    runner.begun += 1
    const notes = this.#events.at(-1)?.notes
    const close = (value: unknown): void => {
      if (life.isOver) return
      runner.open = undefined
      if (value !== undefined) notes?.push(`-> ${preview(value)}`)
    }
    const fail = (error: unknown): void => {
      if (life.isOver) return
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

  /** Runs `setup` or `teardown` to its end. Promises and timers take turns in a fixed order. */
  async #finish<T>(phase: 'setup' | 'teardown', act: () => T | PromiseLike<T>): Promise<{ value: T } | undefined> {
    const life = this.#life
    const done = watchPromise(Promise.resolve().then(act))
    for (let turns = 0; ; turns += 1) {
      await this.#settle()
      if (life.isOver) return undefined
      if (done.outcome !== undefined || turns >= this.#maxEvents) break
      life.clock.startTurn()
      const [next] = life.promises.ready
      if (next !== undefined) next.take()
      else if (!this.#runTimer()) break
    }
    const { outcome } = done
    if (outcome !== undefined && 'value' in outcome) return outcome
    if (outcome === undefined) {
      this.#fail(phase, `${phase} never settled. No promise or timer is left that could settle it. ${this.#hint()}`)
    } else this.#fail(phase, `${phase} threw ${messageOf(outcome.error)}`, outcome.error)
    return undefined
  }

  async #check(
    world: World,
    kind: 'invariant' | 'end',
    checks: readonly (readonly [string, RaceCheck<World>])[],
  ): Promise<void> {
    const wasRunning = this.#isRunning
    this.#isRunning = false
    await this.#checkAll(world, kind, checks)
    this.#isRunning = wasRunning
  }

  async #checkAll(
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

  /** Awaits a check. No turn is taken meanwhile, so the check must not wait for a timer, or for a promise that the race delays. */
  async #resultOf(result: PromiseLike<unknown>, name: string): Promise<unknown> {
    const check = watchPromise(result)
    for (let round = 0; round < CHECK_ROUNDS && check.outcome === undefined; round += 1) await this.#settle()
    const { outcome } = check
    if (outcome === undefined) throw new AgentTasksError('RACE_HANG', `the check '${name}' never settled`)
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }

  #fail(kind: RaceFailure['kind'], message: string, cause?: unknown): void {
    const [after, reports] = [this.#events.length, [...this.#reports]]
    this.#failure ??= { kind, message, after, reports, ...omitUndefined({ cause }) }
  }

  #settle(): Promise<void> {
    return runMicrotasks(this.#ticks)
  }
}

const CHECK_ROUNDS = 10

/** The maximum number of crashes of an order with `crashes: true`. */
const DEFAULT_CRASHES = 2

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : preview(error)
}
