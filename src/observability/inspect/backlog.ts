/** A queue with a maximum size. When the queue is full, the oldest item is dropped and counted. */
export class Backlog<Item> {
  readonly #most: number
  readonly #mostChars: number
  readonly #charsOf: (item: Item) => number
  #items: (Item | undefined)[] = []
  /** The index of the first item. Taking an item moves the index, and not all other items. */
  #head = 0
  #chars = 0
  #dropped = 0

  /**
   * @param most the maximum number of items
   * @param mostChars the maximum size of all items together
   * @param charsOf returns the size of an item, in characters
   */
  constructor(most: number, mostChars: number, charsOf: (item: Item) => number) {
    this.#most = most
    this.#mostChars = mostChars
    this.#charsOf = charsOf
  }

  get size(): number {
    return this.#items.length - this.#head
  }

  get dropped(): number {
    return this.#dropped
  }

  add(item: Item): void {
    this.#items.push(item)
    this.#chars += this.#charsOf(item)
    while (this.size > this.#most || (this.#chars > this.#mostChars && this.size > 1)) {
      this.take()
      this.#dropped += 1
    }
  }

  take(): Item | undefined {
    const item = this.#items[this.#head]
    if (item === undefined) return undefined
    this.#items[this.#head] = undefined
    this.#head += 1
    this.#chars -= this.#charsOf(item)
    if (this.#head > 1000 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  clear(): void {
    this.#items = []
    this.#head = 0
    this.#chars = 0
  }
}
