/** The client of a server over stdio, and its conversation. It decides in which file of the store the tasks of the conversation are. */
export class ClientIdentity {
  #client: string | undefined
  #sessionId: string | undefined
  readonly #all = new Set<string>()

  /** The id of the first conversation; undefined until the client has named one. */
  get sessionId(): string | undefined {
    return this.#sessionId
  }

  /** The ids of all conversations, the newest last. */
  get sessionIds(): readonly string[] {
    return [...this.#all]
  }

  /** The session key of the store; undefined until it is known. */
  get key(): string | undefined {
    return this.#client === undefined || this.#sessionId === undefined
      ? undefined
      : `${this.#client} ${this.#sessionId}`
  }

  /**
   * Notes a conversation of the client.
   * @param isBound whether the store is open, so that its key cannot change any more
   */
  note(client: string, sessionId: string | undefined, isBound: boolean): void {
    this.#client ??= client
    if (sessionId === undefined || sessionId === '') return
    this.#all.delete(sessionId)
    this.#all.add(sessionId)
    const [oldest] = this.#all
    if (this.#all.size > MAX_IDS && oldest !== undefined) this.#all.delete(oldest)
    if (!isBound || this.#sessionId === undefined) this.#sessionId = sessionId
  }
}

/** The maximum number of ids that are remembered. */
const MAX_IDS = 100
