/**
 * One monitor. It finds matching lines in the output of a task or in a file, and reports them as events.
 *
 * M1  An event is a batch of 200 ms and at most 2 KB. Lines that do not fit are counted.
 * M2  Events that come too fast are counted rather than shown, and end the monitor after 30 s.
 * M3  The end is reported once, and no event follows it.
 * M4  The stored position is before every line whose event is not stored.
 */
import { elapsedMs, type Clock } from '../../clock.js'
import type { StoredMonitor } from '../../protocol/monitors.js'
import type { MonitorEnd } from '../../protocol/telemetry.js'
import { describeFailure } from '../../protocol/outcomes.js'
import { toLines, toOneLine, withoutAnsi } from '../../text/control-characters.js'
import { cutText } from '../../text/cut-text.js'
import { createLineSplitter } from '../../text/lines.js'
import { fenced } from '../limits/fenced.js'
import { readChunk } from '../output/output-log.js'
import { matcherOf } from './match.js'

/** How long matching lines are collected, and how soon a file is checked again if the last check did not finish; in ms. */
const [BATCH_MS, BEHIND_MS] = [200, 40] as const

/** The maximum length of an event, in bytes of UTF-8, and of a line and of a name or reason, in UTF-16 units. */
const [EVENT_BYTES, LINE_CHARS, NAME_CHARS] = [2048, 4096, 200] as const

/**
 * How many events may come at once, the time until another one is allowed, and how long this may be exceeded before the monitor ends; times in ms.
 */
const [BUCKET, REFILL_MS, FLOOD_MS] = [10, 2000, 30_000] as const

/** The position of the first unread byte, or of the beginning of an incomplete line. */
export type Position = Pick<StoredMonitor, 'position' | 'inode'>

export type OnText = (text: string, at: Position) => void

export interface Monitored {
  /**
   * Reads what is new, for a source that does not call `push`.
   * @param now a monotonic time in ms
   * @returns why it can no longer be read
   */
  look?(now: () => number, onText: OnText): string | undefined
  /** Whether the last check did not finish. */
  readonly isBehind?: boolean
  close(): void
}

/**
 * Called with an event, or when the monitor ends. The end may have no text.
 * @returns whether the owner receives the text
 */
type OnEvent = (text: string | undefined) => boolean

export class Monitor {
  readonly id: string
  owner: string
  hasEnded = false
  endedBy: MonitorEnd = 'cancelled'
  /** The last scheduled check. */
  scheduledAt = Infinity
  source: Monitored | undefined
  readonly #now: () => number
  readonly #onEvent: OnEvent
  readonly #matches: (line: string) => boolean
  readonly #lines = createLineSplitter((line) => this.#read(line))
  readonly #endsAt: number
  #state: StoredMonitor
  #at: Position
  #heardAt: number
  #lookAt: number
  /** The lines of the current batch that fit, and the number of all its lines. */
  #batch = ''
  #matched = 0
  #flushAt = Infinity
  /** How many lines of earlier batches were not shown. */
  #hidden = 0
  #tokens: number = BUCKET
  #refilledAt: number
  #floodedSince: number | undefined

  /** @throws InvalidInputError for an unusable pattern */
  constructor(id: string, state: StoredMonitor, clock: Clock, onEvent: OnEvent) {
    const { startedAt, input } = state
    this.#now = () => elapsedMs(clock)
    const now = this.#now()
    this.id = id
    this.owner = input.owner
    this.#state = state
    this.#at = state
    this.#matches = matcherOf(input.match)
    this.#onEvent = onEvent
    // The system time may have been set back since it was started.
    this.#endsAt = now + input.seconds * 1000 - Math.max(0, clock.now() - startedAt)
    this.#heardAt = now
    this.#lookAt = now
    this.#refilledAt = now
  }

  get state(): StoredMonitor {
    return { ...this.#state, input: { ...this.#state.input, owner: this.owner } }
  }

  get dueAt(): number {
    const { idleSeconds = Infinity } = this.#state.input
    const lookAt = this.source?.look === undefined ? Infinity : this.#lookAt
    return Math.min(this.#flushAt, lookAt, this.#heardAt + idleSeconds * 1000, this.#endsAt)
  }

  beginAt(at: Partial<StoredMonitor>): void {
    this.#state = { ...this.#state, ...at }
    this.#at = this.#state
  }

  push(text: string, at: Position): void {
    if (this.hasEnded) return
    this.#heardAt = this.#now()
    this.#at = at
    this.#lines.push(text)
    if (this.#matched === 0) this.#save()
  }

  tick(): void {
    const now = this.#now()
    const { seconds, idleSeconds = Infinity } = this.#state.input
    if (this.#lookAt <= now) this.#look(now)
    if (this.#flushAt <= now && !this.hasEnded) this.#flush(now)
    if (this.#endsAt <= now) this.end(`its time is over (${seconds} s)`, 'time')
    if (this.#heardAt + idleSeconds * 1000 <= now) this.end(`nothing was written for ${idleSeconds} s`, 'idle')
  }

  /**
   * Ends the monitor.
   * @param why in words, for its owner; undefined if it is cancelled without a report
   */
  end(why?: string, by: MonitorEnd = 'source'): void {
    if (this.hasEnded) return
    this.endedBy = why === undefined ? 'cancelled' : by
    this.leave()
    if (why !== undefined) this.#lines.end()
    this.#onEvent(why && this.#text(cutText(toOneLine(why), NAME_CHARS)))
  }

  /** Stops reading. The stored state stays, so that another process can continue. */
  leave(): void {
    this.hasEnded = true
    this.source?.close()
  }

  #look(now: number): void {
    try {
      const refusal = this.source?.look?.(this.#now, (text, at) => this.push(text, at))
      this.#lookAt = now + (this.source?.isBehind === true ? BEHIND_MS : BATCH_MS)
      if (refusal !== undefined) this.end(refusal)
    } catch (error) {
      this.end(`it cannot read any longer: ${describeFailure(error)}`)
    }
  }

  #read(line: string): void {
    const text = cutText(toLines(withoutAnsi(line)), LINE_CHARS)
    if (!this.#matches(text)) return
    this.#matched += 1
    this.#flushAt = Math.min(this.#flushAt, this.#now() + BATCH_MS)
    // A character has at least one byte.
    if (this.#batch.length < EVENT_BYTES) this.#batch += `${text}\n`
  }

  /** Ends the batch: reports it as an event (M1), or drops it as one too many (M2). */
  #flush(now: number): void {
    const events = this.#state.events + 1
    this.#state = { ...this.#state, events }
    const refills = Math.floor((now - this.#refilledAt) / REFILL_MS)
    this.#refilledAt += refills * REFILL_MS
    this.#tokens = Math.min(BUCKET, this.#tokens + refills)
    const isShown = this.#tokens > 0
    // Events come more slowly than the bucket is refilled.
    if (this.#tokens > 1) this.#floodedSince = undefined
    if (isShown) this.#tokens -= 1
    else this.#floodedSince ??= now
    if (events >= this.#state.input.maxEvents) this.end(`it has reached its limit of ${events} events`, 'events')
    else if (now - (this.#floodedSince ?? now) >= FLOOD_MS) this.end('its events came too fast for 30 s', 'rate')
    else {
      const isTold = isShown && this.#onEvent(this.#text())
      this.#hidden = isTold ? 0 : this.#hidden + this.#matched
      this.#batch = ''
      this.#matched = 0
      this.#flushAt = Infinity
      this.#save()
    }
  }

  #save(): void {
    if (this.#hidden === 0) this.#state = { ...this.#state, position: this.#at.position, inode: this.#at.inode }
  }

  /** Lines come from a program, so they are fenced. */
  #text(end?: string): string {
    const { taskId, file = '', description } = this.#state.input
    const label = description === undefined ? '' : ` (${toOneLine(description)})`
    const what = taskId === undefined ? `file ${toOneLine(file)}` : `task ${toOneLine(taskId)}`
    const hidden = this.#hidden === 0 ? '' : `, and ${this.#hidden} more that were not shown`
    const head = `Monitor ${this.id}${label}, ${cutText(what, NAME_CHARS)}: ${this.#matched} matching line(s)${hidden}.`
    const rest = `The output goes on at byte ${this.#at.position}.${end === undefined ? '' : ` The monitor has ended: ${end}.`}`
    if (this.#matched === 0) return `${head} ${rest}`
    const lines = new TextEncoder().encode(this.#batch.trimEnd())
    for (let room: number = EVENT_BYTES; ; room *= SHRINK) {
      const shown = readChunk(lines, 0, 0, Math.floor(room))
      const cut = shown.remainingBytes > 0 ? 'There was no room for the other lines. ' : ''
      const text = `${fenced(head, shown.text)}\n${cut}${rest}`
      if (new TextEncoder().encode(text).length <= EVENT_BYTES || room < 1) return text
    }
  }
}

const SHRINK = 0.8
