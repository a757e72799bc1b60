/**
 * The streams of events. A stream has no queue: when its reader has taken what was written, it gets what has changed since, in its present state.
 * A reader that resumes with the id of an event gets that, too, or a whole snapshot (G4).
 */
import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { unrefTimer, type Clock } from '../clock.js'
import type { PageEntry } from './page-entry.js'
import type { PageState } from './page-state.js'
import type { ChangesEvent, Hello, PageTask } from './wire.js'

/** Changes are collected for this long, in ms. */
const BATCH_MS = 50
const HEARTBEAT_MS = 1000
/** How long a reader may take to read anything, in ms. */
const MAX_SILENCE_MS = 30_000
const MAX_STREAMS = 32
/** How many tasks one event has. */
const PIECE = 500

export interface StreamsOptions {
  readonly state: PageState
  readonly clock: Clock
  readonly hello: () => Omit<Hello, 'now' | 'resumed'>
}

interface Stream {
  readonly response: ServerResponse
  /** The tasks of the snapshot that are still to be sent, and how far it is. */
  pieces: { readonly tasks: readonly PageEntry[]; next: number; readonly isSnapshot: boolean } | undefined
  /** What its reader has. */
  version: number
  isBlocked: boolean
  blockedAt: number
}

export class Streams {
  readonly #options: StreamsOptions
  /** Ids of another run of the server mean nothing here. */
  readonly #run = randomBytes(6).toString('hex')
  readonly #open = new Set<Stream>()
  /** The changes that were written last: most readers have the same version. */
  #latest: { readonly from: number; readonly to: number; readonly text: string } | undefined
  #batch: unknown
  #heartbeat: unknown

  constructor(options: StreamsOptions) {
    this.#options = options
    // It ends with the state.
    options.state.changed$.subscribe(() => this.#notify())
  }

  get size(): number {
    return this.#open.size
  }

  /**
   * Opens a stream.
   * @returns false when there are too many; nothing was written then
   */
  open(response: ServerResponse, lastEventId: string | undefined): boolean {
    // A response that waits behind another one of its connection has no socket, and would not say when that closes.
    if (this.#open.size >= MAX_STREAMS || response.socket === null) return false
    const { state, clock } = this.#options
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    const known = this.#versionOf(lastEventId)
    const missed = known === undefined ? undefined : state.since(known)
    const tasks = missed?.tasks ?? state.journal.newestFirst()
    const stream: Stream = {
      response,
      pieces: { tasks, next: 0, isSnapshot: missed === undefined },
      // What changes while the pieces are sent follows them.
      version: state.version,
      isBlocked: false,
      blockedAt: 0,
    }
    this.#open.add(stream)
    response.on('drain', () => {
      stream.isBlocked = false
      this.#pump(stream)
    })
    response.once('close', () => this.#leave(stream))
    const hello: Hello = { ...this.#options.hello(), now: clock.now(), resumed: missed !== undefined }
    this.#write(stream, eventText('hello', hello))
    if (missed?.rest.removed !== undefined) {
      const removed: ChangesEvent = { now: clock.now(), removed: missed.rest.removed }
      this.#write(stream, eventText('changes', removed))
    }
    this.#pump(stream)
    state.refresh()
    this.#beatLater()
    return true
  }

  /** Something has changed: it is sent with what else changes in the next moment. */
  #notify(): void {
    if (this.#open.size === 0 || this.#batch !== undefined) return
    const { clock } = this.#options
    this.#batch = clock.setTimeout(() => {
      this.#batch = undefined
      for (const stream of [...this.#open]) this.#pump(stream)
    }, BATCH_MS)
    unrefTimer(this.#batch)
  }

  /** Ends all streams. */
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
        if (!stream.isBlocked) this.#write(stream, ': beat\n\n')
        else if (clock.now() - stream.blockedAt > MAX_SILENCE_MS) stream.response.destroy()
      }
      this.#notify()
      this.#beatLater()
    }, HEARTBEAT_MS)
    unrefTimer(this.#heartbeat)
  }

  /** Writes what the reader does not have, until it has everything or must read first. */
  #pump(stream: Stream): void {
    while (!stream.isBlocked && this.#open.has(stream)) {
      if (stream.pieces !== undefined) this.#writePiece(stream, stream.pieces)
      else if (!this.#writeChanges(stream)) return
    }
  }

  #writePiece(stream: Stream, pieces: NonNullable<Stream['pieces']>): void {
    const { state, clock } = this.#options
    const tasks = rowsOf(state, pieces.tasks.slice(pieces.next, pieces.next + PIECE))
    pieces.next += PIECE
    if (tasks.length > 0) {
      this.#write(
        stream,
        pieces.isSnapshot ? eventText('tasks', { tasks }) : eventText('changes', { now: clock.now(), tasks }),
      )
    }
    if (pieces.next < pieces.tasks.length) return
    stream.pieces = undefined
    // Whoever is cut off before this begins again: no event before it has an id.
    this.#write(stream, eventText('ready', state.ready(), this.#idOf(stream.version)))
  }

  /** @returns false when the reader has everything */
  #writeChanges(stream: Stream): boolean {
    const { state, clock } = this.#options
    const to = state.version
    if (stream.version === to) return false
    if (this.#latest?.from !== stream.version || this.#latest.to !== to) {
      const changes = state.since(stream.version)
      if (changes === undefined) {
        stream.pieces = { tasks: state.journal.newestFirst(), next: 0, isSnapshot: true }
        stream.version = to
        const hello: Hello = { ...this.#options.hello(), now: clock.now(), resumed: false }
        this.#write(stream, eventText('hello', hello))
        return true
      }
      if (changes.tasks.length > PIECE) {
        // Piece by piece, as a resumed stream.
        stream.pieces = { tasks: changes.tasks, next: 0, isSnapshot: false }
        stream.version = to
        const { removed } = changes.rest
        if (removed !== undefined) this.#write(stream, eventText('changes', { now: clock.now(), removed }))
        return true
      }
      const tasks = rowsOf(state, changes.tasks)
      const event: ChangesEvent = { now: clock.now(), ...(tasks.length > 0 && { tasks }), ...changes.rest }
      this.#latest = { from: stream.version, to, text: eventText('changes', event, this.#idOf(to)) }
    }
    stream.version = to
    this.#write(stream, this.#latest.text)
    return true
  }

  #write(stream: Stream, text: string): void {
    if (stream.response.write(text) || stream.isBlocked) return
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

/** The rows of those that are still there: the removal of the others follows. */
function rowsOf(state: PageState, entries: readonly PageEntry[]): PageTask[] {
  return entries.filter((entry) => state.journal.get(entry.key) === entry).map((entry) => state.rowOf(entry))
}

/** `JSON.stringify` writes no line breaks, so one `data` line is enough. */
function eventText(type: string, data: unknown, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`
}
