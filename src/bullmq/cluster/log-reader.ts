/** Reads the events of followed tasks as soon as they are written. One blocking connection serves all followed tasks of a process. */
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { createBackoff } from '../backoff.js'
import { failureLog, type LogFailure } from '../failure-log.js'
import type { ClusterKeys } from './cluster-keys.js'
import { toEvents, type KeptEvent } from './cluster-redis.js'

/** How long Redis waits for new events in one read, in ms. */
const BLOCK_MS = 5000
/** The maximum number of events of a task that one read returns. */
const BATCH = 200
/** How long the reader waits after the first failed read, in ms. */
const RETRY_MS = 100
/** How long an entry of the wake-up stream is kept, in ms. */
const BELL_MS = 60_000

interface Reading {
  /** The sequence number of the last delivered event. */
  last: number
  readonly tell: (event: KeptEvent) => void
}

export interface LogReaderOptions {
  /** A connection for commands that do not block. */
  readonly connection: Redis
  /** A connection for blocking reads. */
  readonly reading: Redis
  /** Reads the events of a task whose sequence numbers are greater than `after`. */
  readonly read: (taskId: string, after: number) => Promise<readonly KeptEvent[]>
  readonly keys: ClusterKeys
  readonly log: (line: string) => void
}

export class LogReader {
  readonly #options: LogReaderOptions
  /** The name of a stream that only interrupts the blocking read, so that the next read includes a newly followed task. */
  readonly #bell: string
  #rung = '0-0'
  readonly #tasks = new Map<string, Set<Reading>>()
  #isReading = false
  readonly #closing = new AbortController()
  readonly #logFailure: LogFailure

  constructor(options: LogReaderOptions) {
    this.#options = options
    this.#logFailure = failureLog(options.log)
    this.#bell = `${options.keys.own}bell:${randomUUID()}`
  }

  /** Calls `tell` with each event of a task in order, starting with the oldest stored event. Returns a function that stops the calls. */
  follow(taskId: string, tell: (event: KeptEvent) => void): () => void {
    const one: Reading = { last: 0, tell }
    const all = this.#tasks.get(taskId) ?? new Set()
    this.#tasks.set(taskId, all.add(one))
    if (this.#isReading) void this.#ring()
    else void this.#readAll()
    return () => {
      all.delete(one)
      if (all.size === 0 && this.#tasks.get(taskId) === all) this.#tasks.delete(taskId)
    }
  }

  /** Delivers all events that are already stored. */
  async catchUp(taskId: string): Promise<void> {
    this.#tell(taskId, await this.#options.read(taskId, this.#placeOf(taskId)))
  }

  close(): void {
    this.#closing.abort()
    this.#tasks.clear()
    this.#options.reading.disconnect()
  }

  async #ring(): Promise<void> {
    const { connection } = this.#options
    await connection
      .multi()
      .xadd(this.#bell, 'MAXLEN', 1, '*', 'r', '')
      .pexpire(this.#bell, BELL_MS)
      .exec()
      .catch((error: unknown) => this.#logFailure('bell', 'The events of a new task are read later', error))
  }

  async #readAll(): Promise<void> {
    this.#isReading = true
    const { signal } = this.#closing
    const backoff = createBackoff(RETRY_MS)
    while (this.#tasks.size > 0 && !signal.aborted) {
      try {
        await this.#read()
        backoff.reset()
      } catch (error) {
        if (this.#tasks.size === 0) break
        this.#logFailure('read', 'The events of tasks could not be read, and are read again', error)
        await backoff.wait()
      }
    }
    this.#isReading = false
  }

  async #read(): Promise<void> {
    const { reading, keys } = this.#options
    const ids = [...this.#tasks.keys()]
    const streams = [this.#bell, ...ids.map((id) => keys.log(id))]
    const places = [this.#rung, ...ids.map((id) => `${this.#placeOf(id)}-0`)]
    const found = await reading.xread('COUNT', BATCH, 'BLOCK', BLOCK_MS, 'STREAMS', ...streams, ...places)
    for (const [stream, entries] of found ?? []) {
      if (stream === this.#bell) this.#rung = entries.at(-1)?.[0] ?? this.#rung
      else this.#tell(ids[streams.indexOf(stream) - 1] ?? '', toEvents(entries))
    }
  }

  /** The sequence number up to which all followers of the task have received its events. */
  #placeOf(taskId: string): number {
    return Math.min(...Array.from(this.#tasks.get(taskId) ?? [], ({ last }) => last))
  }

  #tell(taskId: string, events: readonly KeptEvent[]): void {
    for (const one of this.#tasks.get(taskId) ?? []) {
      for (const event of events) {
        if (event.seq <= one.last) continue
        one.last = event.seq
        one.tell(event)
      }
    }
  }
}
