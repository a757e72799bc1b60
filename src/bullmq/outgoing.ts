/**
 * The updates of a run that the worker has not yet written to Redis, in order. While Redis cannot be reached, the oldest output and reports are
 * dropped. Other updates (`set` and `delete`) are never dropped; the number of names limits them.
 */
import type { ReportedField } from '../../machines/record-fields.js'
import { partsOf } from '../data/cut-text.js'

/** The size that a stream entry counts in addition to its text, in bytes. */
export const ENTRY_BYTES = 64

/** The maximum size of one entry of output, in bytes. */
const PART_BYTES = 65_536

/** The kinds of updates that are written as entries of a stream: output, and reports of a field. */
export type SaidText = 'output' | 'offer' | ReportedField

export interface OutgoingItem {
  readonly what: SaidText | 'set' | 'delete'
  /** The field that is set or deleted; empty for output and reports. */
  readonly name: string
  readonly text: string
  readonly bytes: number
}

export class Outgoing {
  readonly #maxBytes: number
  #items: OutgoingItem[] = []
  /** The size of output and reports, in bytes. */
  #bytes = 0

  /** @param maxBytes the limit for output and reports, in bytes */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get isEmpty(): boolean {
    return this.#items.length === 0
  }

  append(text: string): void {
    for (const part of partsOf(text.slice(-this.#maxBytes), PART_BYTES / 4)) {
      const last = this.#items.at(-1)
      if (last?.what === 'output' && last.bytes + Buffer.byteLength(part) <= PART_BYTES) {
        this.#replaceLast('output', last.text + part)
      } else this.#push('output', '', part)
    }
    this.#drop()
  }

  /** Adds a report. Replaces the previous item if that is a report of the same field. */
  report(field: Exclude<SaidText, 'output'>, value: string): void {
    if (this.#items.at(-1)?.what === field) this.#replaceLast(field, value)
    else this.#push(field, '', value)
    this.#drop()
  }

  /** Sets a field. If an earlier value has not been written yet, the new value replaces it and keeps its place in the order. */
  set(name: string, text: string): void {
    const at = this.#items.findIndex((item) => item.what === 'set' && item.name === name)
    if (at === -1) this.#push('set', name, text)
    else this.#items[at] = { what: 'set', name, text, bytes: 0 }
  }

  delete(name: string): void {
    this.#push('delete', name, '')
  }

  /** Removes and returns the oldest items: at least one, and at most `maxBytes` of output and reports. */
  take(maxBytes: number): OutgoingItem[] {
    let [count, bytes] = [0, 0]
    for (const item of this.#items) {
      bytes += item.bytes
      if (count > 0 && bytes > maxBytes) break
      count += 1
    }
    const taken = this.#items.splice(0, count)
    for (const item of taken) this.#bytes -= item.bytes
    return taken
  }

  #push(what: OutgoingItem['what'], name: string, text: string): void {
    const bytes = what === 'set' || what === 'delete' ? 0 : Buffer.byteLength(text) + ENTRY_BYTES
    this.#items.push({ what, name, text, bytes })
    this.#bytes += bytes
  }

  #replaceLast(what: SaidText, text: string): void {
    this.#bytes -= this.#items.pop()?.bytes ?? 0
    this.#push(what, '', text)
  }

  #drop(): void {
    if (this.#bytes <= this.#maxBytes) return
    this.#items = this.#items.filter(({ bytes }) => {
      if (bytes === 0 || this.#bytes <= this.#maxBytes) return true
      this.#bytes -= bytes
      return false
    })
  }
}
