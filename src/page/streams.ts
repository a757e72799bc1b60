/**
 * The event streams of open pages.
 * A stream has no queue of changes. When its reader has received everything that was written, the stream sends the current state of whatever has changed
 * since. A reader that reconnects with the id of its last event receives the changes since that event, or a new snapshot (promise G4 in
 * docs/guarantees.md).
 * An event is written in pieces of 64 KiB, and each piece waits until the reader has received the previous piece. A slow reader therefore shows regular
 * progress, and only a reader that has stopped reading is disconnected.
 */
import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { unrefTimer, type Clock } from '../system/clock.js'
import { MAX_SILENCE_MS } from './connection-limits.js'
import type { PageEntry } from './page-entry.js'
import type { PageState } from './page-state.js'
import type { ChangesEvent, Hello, PageTask } from './wire.js'

/** How long changes are collected before they are sent, in ms. */
const BATCH_MS = 50
const HEARTBEAT_MS = 1000
/** The maximum size of one write, in bytes. */
const WRITE_BYTES = 64 * 1024
export const MAX_STREAMS = 32
/** The maximum number of tasks in one event. */
const PIECE = 500

export interface StreamsOptions {
  readonly state: PageState
  readonly clock: Clock
  readonly hello: () => Omit<Hello, 'now' | 'resumed'>
  /** Called with an error of a stream. The stream is then closed. */
  readonly onFailure: (error: unknown) => void
}

interface Stream {
  readonly response: ServerResponse
  /** Bytes of events that were not written yet. */
  readonly unwritten: Buffer[]
  /** The tasks that are being sent in pieces, and the position of the next piece. */
  pieces: { readonly tasks: readonly PageEntry[]; next: number; readonly isSnapshot: boolean } | undefined
  version: number
  isBlocked: boolean
  blockedAt: number
}

export class Streams {
  readonly #options: StreamsOptions
  /** Part of each event id, so that ids from an earlier server process are recognised and not used. */
  readonly #run = randomBytes(6).toString('hex')
  readonly #open = new Set<Stream>()
  /** The last event with changes. Most readers are at the same version, so the event is reused for them. */
  #latest: { readonly from: number; readonly to: number; readonly event: Buffer } | undefined
  #batch: unknown
  #heartbeat: unknown

  constructor(options: StreamsOptions) {
    this.#options = options
    // `PageState.stop` completes `changed$`, so there is nothing to unsubscribe.
    options.state.changed$.subscribe(() => this.#notify())
  }

  get size(): number {
    return this.#open.size
  }

  /**
   * Opens a stream.
   * @returns false if too many streams are open or the response has no socket yet. In both cases nothing was written.
   */
  open(response: ServerResponse, lastEventId: string | undefined): boolean {
    // The response to a pipelined request has no socket yet, so it would not report the end of the connection.
    if (this.#open.size >= MAX_STREAMS || response.socket === null) return false
    const { state, clock } = this.#options
    // This and the next lines come before `writeHead`, because their exceptions must still become error responses.
    state.refresh()
    const known = this.#versionOf(lastEventId)
    const missed = known === undefined ? undefined : state.since(known)
    const tasks = missed?.tasks ?? state.journal.newestFirst()
    const hello: Hello = { ...this.#options.hello(), now: clock.now(), resumed: missed !== undefined }
    const unwritten = [eventBytes('hello', hello)]
    if (missed?.rest.removed !== undefined) {
      const removed: ChangesEvent = { now: clock.now(), removed: missed.rest.removed }
      unwritten.push(eventBytes('changes', removed))
    }
    const stream: Stream = {
      response,
      unwritten,
      pieces: { tasks, next: 0, isSnapshot: missed === undefined },
      // Changes that happen while the snapshot is sent are sent after the snapshot.
      version: state.version,
      isBlocked: false,
      blockedAt: 0,
    }
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    // Turns off the socket's time limit, because a stream is silent while nothing changes. The heartbeat closes dead connections.
    response.socket.setTimeout(0)
    this.#open.add(stream)
    response.on('drain', () => {
      stream.isBlocked = false
      this.#pump(stream)
    })
    response.once('close', () => this.#leave(stream))
    this.#pump(stream)
    this.#beatLater()
    return true
  }

  /** Sends the changes of the next 50 ms together. */
  #notify(): void {
    if (this.#open.size === 0 || this.#batch !== undefined) return
    const { clock } = this.#options
    this.#batch = clock.setTimeout(() => {
      this.#batch = undefined
      for (const stream of [...this.#open]) this.#pump(stream)
    }, BATCH_MS)
    unrefTimer(this.#batch)
  }

  close(): void {
    const { clock } = this.#options
    for (const stream of [...this.#open]) {
      stream.response.end()
      this.#leave(stream)
    }
    if (this.#batch !== undefined) clock.clearTimeout(this.#batch)
    this.#batch = undefined
  }

  #leave(stream: Stream): void {
    this.#open.delete(stream)
    if (this.#open.size > 0) return
    const { clock } = this.#options
    if (this.#heartbeat !== undefined) clock.clearTimeout(this.#heartbeat)
    this.#heartbeat = undefined
    this.#latest = undefined
  }

  #beatLater(): void {
    if (this.#heartbeat !== undefined || this.#open.size === 0) return
    const { clock, state } = this.#options
    this.#heartbeat = clock.setTimeout(() => {
      this.#heartbeat = undefined
      state.roll()
      for (const stream of [...this.#open]) {
        // A stream that is not blocked has written whole events, so the heartbeat splits no event.
        if (!stream.isBlocked) this.#write(stream, BEAT)
        else if (clock.now() - stream.blockedAt > MAX_SILENCE_MS) stream.response.destroy()
      }
      this.#notify()
      this.#beatLater()
    }, HEARTBEAT_MS)
    unrefTimer(this.#heartbeat)
  }

  /** Writes until the reader has all changes, or until the socket's buffer is full. */
  #pump(stream: Stream): void {
    try {
      while (!stream.isBlocked && this.#open.has(stream)) {
        const event = stream.unwritten.shift()
        if (event !== undefined) {
          if (event.length > WRITE_BYTES) stream.unwritten.unshift(event.subarray(WRITE_BYTES))
          this.#write(stream, event.subarray(0, WRITE_BYTES))
        } else if (stream.pieces !== undefined) this.#nextPiece(stream, stream.pieces)
        else if (!this.#nextChanges(stream)) return
      }
    } catch (error) {
      // Timers and sockets call this method, so nobody else would catch the exception.
      stream.response.destroy()
      this.#leave(stream)
      this.#options.onFailure(error)
    }
  }

  #nextPiece(stream: Stream, pieces: NonNullable<Stream['pieces']>): void {
    const { state, clock } = this.#options
    const tasks = rowsOf(state, pieces.tasks.slice(pieces.next, pieces.next + PIECE))
    pieces.next += PIECE
    if (tasks.length > 0) {
      stream.unwritten.push(
        pieces.isSnapshot ? eventBytes('tasks', { tasks }) : eventBytes('changes', { now: clock.now(), tasks }),
      )
    }
    if (pieces.next < pieces.tasks.length) return
    stream.pieces = undefined
    // `ready` is the first event with an id. A reader that loses the connection earlier therefore requests everything again.
    stream.unwritten.push(eventBytes('ready', state.ready(), this.#idOf(stream.version)))
  }

  /** @returns false if there are no changes */
  #nextChanges(stream: Stream): boolean {
    const { state, clock } = this.#options
    const to = state.version
    if (stream.version === to) return false
    if (this.#latest?.from !== stream.version || this.#latest.to !== to) {
      const changes = state.since(stream.version)
      if (changes === undefined) {
        stream.pieces = { tasks: state.journal.newestFirst(), next: 0, isSnapshot: true }
        stream.version = to
        const hello: Hello = { ...this.#options.hello(), now: clock.now(), resumed: false }
        stream.unwritten.push(eventBytes('hello', hello))
        return true
      }
      if (changes.tasks.length > PIECE) {
        // Too many tasks for one event, so they are sent in pieces.
        stream.pieces = { tasks: changes.tasks, next: 0, isSnapshot: false }
        stream.version = to
        const { removed } = changes.rest
        if (removed !== undefined) stream.unwritten.push(eventBytes('changes', { now: clock.now(), removed }))
        return true
      }
      const tasks = rowsOf(state, changes.tasks)
      const event: ChangesEvent = { now: clock.now(), ...(tasks.length > 0 && { tasks }), ...changes.rest }
      this.#latest = { from: stream.version, to, event: eventBytes('changes', event, this.#idOf(to)) }
    }
    stream.version = to
    stream.unwritten.push(this.#latest.event)
    return true
  }

  #write(stream: Stream, bytes: Buffer): void {
    if (stream.response.write(bytes)) return
    stream.isBlocked = true
    stream.blockedAt = this.#options.clock.now()
  }

  #idOf(version: number): string {
    return `${this.#run}-${version}`
  }

  #versionOf(id: string | undefined): number | undefined {
    const [run, number] = id?.split('-') ?? []
    const version = /^\d{1,15}$/.test(number ?? '') ? Number(number) : Infinity
    return run === this.#run && version <= this.#options.state.version ? version : undefined
  }
}

/** Returns the rows of the tasks that the journal still has. A later event reports the removed tasks. */
function rowsOf(state: PageState, entries: readonly PageEntry[]): PageTask[] {
  return entries.filter((entry) => state.journal.get(entry.key) === entry).map((entry) => state.rowOf(entry))
}

const BEAT = Buffer.from(': beat\n\n')

/** Formats an event. `JSON.stringify` writes no line breaks, so one `data` line is enough. */
function eventBytes(type: string, data: unknown, id?: string): Buffer {
  return Buffer.from(`${id === undefined ? '' : `id: ${id}\n`}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`)
}
