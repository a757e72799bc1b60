/**
 * Injects faults into processes and connections. A seed decides the order, kinds and sizes of the faults, and what they hit, so that a run can be
 * repeated.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from '../../bench/soak/random.js'

/** A process that faults can hit. */
export interface Victim {
  readonly pid: number
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<unknown>
  /** Resolves when the process has ended: with its exit code, or null if it was killed. */
  readonly ended: Promise<number | null>
  /** Sends SIGSTOP. */
  pause(): void
  /** Sends SIGCONT. */
  resume(): void
}

/** A place for a process. When its process is killed, another one is started in its place. */
export interface Slot {
  readonly target: 'node' | 'worker' | 'host'
  readonly start: () => Promise<Victim>
}

/** A fault that happened. */
export interface Fault {
  readonly kind: 'kill' | 'pause' | 'cut' | 'redis'
  /** What the fault hit: a kind of process, the connections of clients and instances, or the connections to Redis. */
  readonly target: Slot['target'] | 'clients' | 'redis'
  /** The number of the process among those of its kind. For cut connections, 3 means that every third one was cut. */
  readonly index: number
  /** The pid of the process; 0 if it hit no process. */
  readonly pid: number
  /** When the fault began, in ms since 1970. */
  readonly at: number
  /** How long the fault lasted, in ms: until the process was resumed or started again. */
  readonly ms: number
}

export interface World {
  readonly random: Random
  readonly slots: readonly Slot[]
  /** How long a process is paused at least, in ms. This is longer than a lock lasts. */
  readonly pauseMs: number
  readonly cut: Readonly<Record<'clients' | 'redis', (each: number) => void>>
  readonly redis: { kill(): Promise<void>; start(): Promise<void> }
}

interface Place {
  readonly slot: Slot
  /** The number of the place among those of its kind, from 0. */
  readonly index: number
  victim: Promise<Victim>
  resumed: Promise<void>
}

/** How long Redis may be away, in ms. */
const OUTAGES = [0, 200, 1000, 5000]

/** Injects one fault after another. */
export class Faults {
  /** The faults so far, in order. */
  readonly all: Fault[] = []
  /** The processes that ended by themselves with an error. */
  readonly crashes: string[] = []
  readonly #world: World
  readonly #places: readonly Place[]

  constructor(world: World) {
    this.#world = world
    this.#places = world.slots.map((slot, at) => {
      const index = world.slots.slice(0, at).filter(({ target }) => target === slot.target).length
      return { slot, index, victim: this.#watched(slot, slot.start()), resumed: Promise.resolve() }
    })
  }

  /** Resolves when all processes run. */
  async ready(): Promise<Victim[]> {
    await Promise.all(this.#places.map(({ resumed }) => resumed))
    return Promise.all(this.#places.map(({ victim }) => victim))
  }

  /** Injects faults for `ms`. */
  async strike(ms: number): Promise<void> {
    for (const until = Date.now() + ms; Date.now() < until;) await this.#next()
  }

  /**
   * Injects one fault, and waits a moment. Each fault draws equally many random numbers, so that the next faults do not depend on how fast the machine
   * is.
   */
  async #next(): Promise<void> {
    const { random, pauseMs } = this.#world
    const kind = random.below(20)
    const place = random.pick(this.#places)
    const [size, gap] = [random.below(1000) / 1000, random.below(1500)]
    if (kind < 7) await this.#kill(place, size * 1000)
    else if (kind < 12) await this.#pause(place, pauseMs * (1 + size))
    else if (kind < 15) this.#cut('clients', size)
    else if (kind < 18) this.#cut('redis', size)
    else await this.#restartRedis(OUTAGES[Math.floor(size * OUTAGES.length)] ?? 0)
    await pause(gap)
  }

  async #kill(place: Place, awayMs: number): Promise<void> {
    const { slot, index } = place
    const victim = await place.victim
    const at = Date.now()
    await victim.kill()
    this.all.push({ kind: 'kill', target: slot.target, index, pid: victim.pid, at, ms: awayMs })
    place.victim = this.#watched(
      slot,
      pause(awayMs).then(() => startSurely(slot)),
    )
  }

  async #watched({ target }: Slot, starting: Promise<Victim>): Promise<Victim> {
    const victim = await starting
    void victim.ended.then((code) => code !== null && code !== 0 && this.crashes.push(`${target} with ${code}`))
    return victim
  }

  async #pause(place: Place, ms: number): Promise<void> {
    const { slot, index } = place
    await place.resumed
    const victim = await place.victim
    const at = Date.now()
    victim.pause()
    this.all.push({ kind: 'pause', target: slot.target, index, pid: victim.pid, at, ms })
    place.resumed = pause(ms).then(() => victim.resume())
  }

  #cut(target: 'clients' | 'redis', size: number): void {
    const each = 1 + Math.floor(size * 4)
    this.all.push({ kind: 'cut', target, index: each, pid: 0, at: Date.now(), ms: 0 })
    this.#world.cut[target](each)
  }

  async #restartRedis(awayMs: number): Promise<void> {
    const { redis } = this.#world
    const at = Date.now()
    await redis.kill()
    await pause(awayMs)
    await redis.start()
    this.all.push({ kind: 'redis', target: 'redis', index: 0, pid: 0, at, ms: Date.now() - at })
  }
}

/** How often a supervisor tries to start a process, and how long it waits before the next try, in ms. */
const STARTS = { most: 30, afterMs: 1000 }

/** Starts a process, and tries again if that fails. A node does not start while Redis is away, for example. */
async function startSurely({ start }: Slot): Promise<Victim> {
  for (let count = 1; count < STARTS.most; count += 1) {
    const victim = await start().catch(() => undefined)
    if (victim !== undefined) return victim
    await pause(STARTS.afterMs)
  }
  return start()
}
