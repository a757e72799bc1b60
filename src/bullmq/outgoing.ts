/**
 * The news of a run that Redis does not have yet, in order. When Redis is away for long, the oldest output and progress is dropped. Items that are set
 * or deleted are kept, because their source limits their number.
 */
import { partsOf } from '../text/cut-text.js'

/** The overhead of an entry of a stream, in bytes. */
export const ENTRY_BYTES = 64

/** The maximum size of one entry of output, in bytes. */
const PART_BYTES = 65_536

/** The kinds of news that the host receives as entries of a stream. */
export type SaidText = 'output' | 'progress'

/** One item of news. */
export interface OutgoingItem {
  readonly what: SaidText | 'set' | 'delete'
  /** The name of the item that is set or deleted. */
  readonly name: string
  readonly text: string
  readonly bytes: number
}

export class Outgoing {
  readonly #maxBytes: number
  #items: OutgoingItem[] = []
  /** The bytes of output and progress. */
  #bytes = 0

  /** @param maxBytes the limit for output and progress */
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

  /** Replaces a report that was not sent yet. */
  report(progress: string): void {
    if (this.#items.at(-1)?.what === 'progress') this.#replaceLast('progress', progress)
    else this.#push('progress', '', progress)
    this.#drop()
  }

  /** Replaces the value of a name that was not sent yet, in its place. */
  set(name: string, text: string): void {
    const at = this.#items.findIndex((item) => item.what === 'set' && item.name === name)
    if (at === -1) this.#push('set', name, text)
    else this.#items[at] = { what: 'set', name, text, bytes: 0 }
  }

  delete(name: string): void {
    this.#push('delete', name, '')
  }

  /** Takes the oldest items: at least one, and more up to `maxBytes`. */
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
    const bytes = what === 'output' || what === 'progress' ? Buffer.byteLength(text) + ENTRY_BYTES : 0
    this.#items.push({ what, name, text, bytes })
    this.#bytes += bytes
  }

  #replaceLast(what: 'output' | 'progress', text: string): void {
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
