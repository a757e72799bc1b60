/** Users of a chat server who take their time, as people and their networks do. A client that is as fast as it can hides faults. */
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { KINDS, tokenOf } from './script.js'

export interface SentMessage {
  readonly id: string
  readonly text: string
}

/** What a client has received. */
interface Seen {
  readonly seq: number
  readonly id?: string
  readonly texts: readonly string[]
}

/** A connection of a client. */
interface Link {
  readonly send: (message: SentMessage) => void
  readonly isOpen: () => boolean
  readonly close: () => void
}

interface Listener {
  readonly headers: Record<string, string>
  readonly after: number
  readonly onTurn: (turn: Seen) => void
  /** The server says that a message is done, or has failed. */
  readonly onAnswer: (id: string, isDone: boolean) => void
}

export type Connect = (url: string, listener: Listener) => Promise<Link>

export const overWebSocket: Connect = (url, { headers, after, onTurn, onAnswer }) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/chat?after=${after}`, { headers })
    socket.on('error', reject)
    socket.on('open', () =>
      resolve({
        send: (message) => socket.send(JSON.stringify(message)),
        isOpen: () => socket.readyState === WebSocket.OPEN,
        close: () => socket.terminate(),
      }),
    )
    socket.on('message', (data: Buffer) => {
      const line = JSON.parse(data.toString()) as Seen & { error?: string }
      if (line.error === undefined) onTurn(line)
      else if (line.id !== undefined) onAnswer(line.id, false)
    })
  })

/** Sends each message with a request of its own. */
const posting =
  (url: string, headers: Record<string, string>, onAnswer: Listener['onAnswer'], signal: AbortSignal) =>
  (message: SentMessage): void => {
    fetch(url, {
      method: 'POST',
      headers,
      body: JSON.stringify(message),
      signal,
    })
      .then(async (response) => {
        await response.text()
        onAnswer(message.id, response.ok)
      })
      .catch(() => undefined)
  }

export const overEvents: Connect = async (url, { headers, after, onTurn, onAnswer }) => {
  const closing = new AbortController()
  const { signal } = closing
  const { body, ok } = await fetch(`${url}/turns?after=${after}`, {
    headers,
    signal,
  })
  if (!ok || body === null) throw new Error('The stream was refused.')
  let isOpen = true
  const read = async (): Promise<void> => {
    let text = ''
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
      const events = (text + chunk).split('\n\n')
      text = events.pop() ?? ''
      for (const event of events) {
        const [, data] = /^data: (.*)$/m.exec(event) ?? []
        if (data !== undefined) onTurn(JSON.parse(data) as Seen)
      }
    }
  }
  void read()
    .catch(() => undefined)
    .finally(() => (isOpen = false))
  return {
    send: posting(`${url}/messages`, headers, onAnswer, signal),
    isOpen: () => isOpen,
    close: () => closing.abort(),
  }
}

export const overPolling: Connect = async (url, { headers, after, onTurn, onAnswer }) => {
  const closing = new AbortController()
  const { signal } = closing
  let isOpen = true
  let seen = after
  const poll = async (): Promise<void> => {
    const response = await fetch(`${url}/?after=${seen}`, { headers, signal })
    const { turns } = (await response.json()) as { turns: Seen[] }
    for (const turn of turns) {
      seen = turn.seq
      onTurn(turn)
    }
  }
  const pollOn = async (): Promise<void> => {
    for (;;) {
      await pause(40, undefined, { signal })
      await poll()
    }
  }
  await poll()
  void pollOn()
    .catch(() => undefined)
    .finally(() => (isOpen = false))
  return {
    send: posting(url, headers, onAnswer, signal),
    isOpen: () => isOpen,
    close: () => closing.abort(),
  }
}

export class PacedClient {
  readonly user: string
  readonly sent: SentMessage[] = []
  readonly turns: Seen[] = []
  /** Whether it writes new messages. */
  isWriting = true
  readonly #connect: Connect
  readonly #url: () => string | undefined
  readonly #random: () => number
  readonly #unanswered = new Map<string, SentMessage>()
  readonly #failed = new Set<string>()
  #isEnded = false

  constructor(user: string, connect: Connect, url: () => string | undefined, random: () => number) {
    this.user = user
    this.#connect = connect
    this.#url = url
    this.#random = random
  }

  get unanswered(): number {
    return this.#unanswered.size
  }

  get lastSeq(): number {
    return this.turns.at(-1)?.seq ?? 0
  }

  end(): void {
    this.#isEnded = true
  }

  async run(): Promise<void> {
    while (!this.#isEnded) {
      const link = await this.#open()
      if (link !== undefined) await this.#talk(link)
      await this.#pause(10, 90)
    }
  }

  async #open(): Promise<Link | undefined> {
    const url = this.#url()
    if (url === undefined) return undefined
    const connected = this.#connect(url, {
      headers: { authorization: `Bearer ${tokenOf(this.user)}` },
      after: this.lastSeq,
      onTurn: (turn) => {
        this.turns.push(turn)
        if (turn.id !== undefined) this.#unanswered.delete(turn.id)
      },
      onAnswer: (id, isDone) => {
        if (isDone) this.#unanswered.delete(id)
        else this.#failed.add(id)
      },
    })
    return connected.catch(() => undefined)
  }

  async #talk(link: Link): Promise<void> {
    for (const message of [...this.#unanswered.values()]) {
      if (link.isOpen()) link.send(message)
      await this.#pause(0, 20)
    }
    while (link.isOpen() && !this.#isEnded) {
      await this.#pause(15, 100)
      // Networks fail, too.
      if (!link.isOpen() || this.#random() < 0.04) break
      for (const id of this.#failed) {
        const message = this.#unanswered.get(id)
        if (message !== undefined) link.send(message)
      }
      this.#failed.clear()
      if (this.#unanswered.size === 0) await this.#think(link)
      if (this.isWriting && link.isOpen() && this.#unanswered.size < 3) link.send(this.#write())
    }
    link.close()
  }

  /** Reads for a while, or not. Results start turns only while nobody writes. */
  async #think(link: Link): Promise<void> {
    const until = this.#random() < 0.5 ? 10 : 0
    for (let n = 0; n < until && link.isOpen() && !this.#isEnded; n += 1) await this.#pause(20, 100)
  }

  #write(): SentMessage {
    const id = `m${this.sent.length + 1}`
    const kind = KINDS[Math.floor(this.#random() * KINDS.length)] ?? 'plain'
    const message = { id, text: `@${this.user} ${id} ${kind}` }
    this.sent.push(message)
    this.#unanswered.set(id, message)
    return message
  }

  #pause(least: number, more: number): Promise<void> {
    return pause(least + this.#random() * more)
  }
}
