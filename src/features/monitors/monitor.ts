/**
 * One monitor. It finds matching lines in the output of a task or in a file, and reports them to its owner as events.
 *
 * M1  An event contains the matching lines of 200 ms, in at most 2048 bytes. Lines that do not fit are only counted.
 * M2  If events come too fast, their lines are only counted. After 30 s of that, the monitor ends.
 * M3  The end is reported once, and no event follows it.
 * M4  The stored position is before every line whose event is not stored, so that a crash loses no event.
 */
import { elapsedMs, type Clock } from '../../system/clock.js'
import type { StoredMonitor } from '../../protocol/monitors.js'
import type { MonitorEnd } from '../../protocol/telemetry.js'
import { describeFailure } from '../../protocol/outcomes.js'
import { toLines, toOneLine, withoutAnsi } from '../../data/control-characters.js'
import { cutText } from '../../data/cut-text.js'
import { createLineSplitter } from '../../data/lines.js'
import { fenced } from '../../data/fenced.js'
import { readChunk } from '../output/output-log.js'
import { matcherOf } from './match.js'

/** How long matching lines are collected for one event, and the delay until a file is checked again if a check did not reach its end; in ms. */
const [BATCH_MS, BEHIND_MS] = [200, 40] as const

/** The maximum size of an event in bytes of UTF-8. The maximum length of a line, and of a name or reason, in UTF-16 units. */
const [EVENT_BYTES, LINE_CHARS, NAME_CHARS] = [2048, 4096, 200] as const

/** A token bucket for events: its size, the time in ms until it gets another token, and the time in ms without tokens after which the monitor ends. */
const [BUCKET, REFILL_MS, FLOOD_MS] = [10, 2000, 30_000] as const

/** Where the monitor continues to read: at the first unread byte, or at the beginning of an incomplete line. */
export type Position = Pick<StoredMonitor, 'position' | 'inode'>

export type OnText = (text: string, at: Position) => void

export interface Monitored {
  /**
   * Reads what is new. Only for a source that does not call `push` by itself.
   * @param now returns a monotonic time in ms
   * @returns undefined, or why the source can no longer be read
   */
  look?(now: () => number, onText: OnText): string | undefined
  /** Whether the last check did not reach the end of the file. */
  readonly isBehind?: boolean
  close(): void
}

/**
 * Called with the text of an event, and when the monitor ends. The text is undefined if the monitor is cancelled without a reason.
 * @returns whether the owner receives the text
 */
type OnEvent = (text: string | undefined) => boolean

export class Monitor {
  readonly id: string
  owner: string
  hasEnded = false
  endedBy: MonitorEnd = 'cancelled'
  /** The monotonic time of the next check that is scheduled, in ms. */
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
  /** The matching lines of the current event, as many as fit. `#matched` counts all of them. */
  #batch = ''
  #matched = 0
  #flushAt = Infinity
  /** How many matching lines of earlier events were not shown. */
  #hidden = 0
  #tokens: number = BUCKET
  #refilledAt: number
  #floodedSince: number | undefined

  /** @throws INVALID_INPUT for an unusable pattern */
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
    // Computed from `startedAt`, because an earlier process may have started the monitor. The difference is not negative, even if the clock was set
    // back.
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
   * @param why the reason for its owner, in words; undefined to cancel the monitor without a report
   */
  end(why?: string, by: MonitorEnd = 'source'): void {
    if (this.hasEnded) return
    this.endedBy = why === undefined ? 'cancelled' : by
    this.leave()
    if (why !== undefined) this.#lines.end()
    this.#onEvent(why && this.#text(cutText(toOneLine(why), NAME_CHARS)))
  }

  /** Stops reading, but leaves the monitor in the store, so that another process can continue it. */
  leave(): void {
    this.hasEnded = true
    this.source?.close()
  }

  /** Reports the lines that have matched so far at once. */
  flush(): void {
    if (this.#matched > 0 && !this.hasEnded) this.#flush(this.#now())
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
    // Lines beyond the maximum need not be kept, because each character takes at least one byte.
    if (this.#batch.length < EVENT_BYTES) this.#batch += `${text}\n`
  }

  /** Ends the collection of lines: reports them as an event (M1), or only counts them if events come too fast (M2). */
  #flush(now: number): void {
    const events = this.#state.events + 1
    this.#state = { ...this.#state, events }
    const refills = Math.floor((now - this.#refilledAt) / REFILL_MS)
    this.#refilledAt += refills * REFILL_MS
    this.#tokens = Math.min(BUCKET, this.#tokens + refills)
    const isShown = this.#tokens > 0
    // At least two tokens are left, so events come more slowly than tokens.
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

  /** Returns the text of an event. The lines come from a program, so they are put between fences. */
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
