/** What strikes: drawn from a seed, so that the order and kind of faults, their sizes and whom they hit are the same each time. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from '../../bench/soak/random.js'

/** A process that can be struck. */
export interface Victim {
  readonly pid: number
  /** SIGKILL; resolves when it has ended. */
  kill(): Promise<unknown>
  /** Resolves when it has ended: with its exit code, or null when it was killed. */
  readonly ended: Promise<number | null>
  /** SIGSTOP. */
  pause(): void
  /** SIGCONT. */
  resume(): void
}

/** A place of a process: when it is killed, another one starts there. */
export interface Slot {
  readonly target: 'node' | 'worker' | 'host'
  readonly start: () => Promise<Victim>
}

/** What has struck. */
export interface Fault {
  readonly kind: 'kill' | 'pause' | 'cut' | 'redis'
  /** Whom: a process, the connections of clients and instances, or those to Redis. */
  readonly target: Slot['target'] | 'clients' | 'redis'
  /** Which of them. */
  readonly index: number
  /** Of the process; 0 where it is none. */
  readonly pid: number
  /** When it began, in ms since 1970. */
  readonly at: number
  /** How long it lasted, in ms: until it was resumed, or started again. */
  readonly ms: number
}

export interface World {
  readonly random: Random
  readonly slots: readonly Slot[]
  /** A pause that is longer than a lock, in ms. */
  readonly pauseMs: number
  readonly cut: Readonly<Record<'clients' | 'redis', (each: number) => void>>
  readonly redis: { kill(): Promise<void>; start(): Promise<void> }
}

interface Place {
  readonly slot: Slot
  /** Among those of its kind. */
  readonly index: number
  victim: Promise<Victim>
  resumed: Promise<void>
}

/** How long Redis is away, in ms. */
const OUTAGES = [0, 200, 1000, 5000]

/** Strikes again and again. */
export class Faults {
  /** In their order. */
  readonly all: Fault[] = []
  /** The processes that have ended by themselves. */
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

  /** Resolves when all processes are there. */
  async ready(): Promise<Victim[]> {
    await Promise.all(this.#places.map(({ resumed }) => resumed))
    return Promise.all(this.#places.map(({ victim }) => victim))
  }

  /** Strikes for so long, in ms, at any moment. */
  async strike(ms: number): Promise<void> {
    for (const until = Date.now() + ms; Date.now() < until;) await this.#next()
  }

  /** Each fault draws as many numbers: what follows does not depend on what the machine does meanwhile. */
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

/** How often a supervisor starts a process again, and how long it waits before that, in ms. */
const STARTS = { most: 30, afterMs: 1000 }

/** A process that does not start, as a node while Redis is away, is started again. */
async function startSurely({ start }: Slot): Promise<Victim> {
  for (let count = 1; count < STARTS.most; count += 1) {
    const victim = await start().catch(() => undefined)
    if (victim !== undefined) return victim
    await pause(STARTS.afterMs)
  }
  return start()
}
