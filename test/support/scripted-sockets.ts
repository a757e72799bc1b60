/** Sockets whose other side is the test: nothing goes over a wire, and everything happens when the test says so. */
import type { SocketConstructor, SocketLike } from '../../src/client/platform.js'

/** One socket that the code under test opened. */
export interface ScriptedSocket {
  readonly url: string
  /** What was sent on it, parsed, in order. */
  readonly sent: Record<string, unknown>[]
  /** The code it was closed with; undefined while it is open, 1006 when it was lost. */
  readonly closedWith: number | undefined
  /** The connection stands. */
  open(): void
  /** A message arrives. */
  receive(message: object): void
  /** A frame arrives as it is. */
  receiveRaw(data: unknown): void
  /** The connection ends: with a code, or without a word. */
  lose(code?: number, reason?: string): void
  /** The frames of one type that were sent. */
  sentOf(type: string): Record<string, unknown>[]
}

export interface ScriptedSockets {
  readonly WebSocket: SocketConstructor
  /** Every socket that was opened, in order. */
  readonly sockets: readonly ScriptedSocket[]
  /** The last of them. */
  readonly last: ScriptedSocket
  /** Whether a peer answers a close; default true. */
  answersClose: boolean
  /** The next constructor calls throw this. */
  refusal: Error | undefined
}

type Handler = ((event: never) => void) | null

/** Makes a WebSocket class for one test. */
export function scriptSockets(): ScriptedSockets {
  const sockets: ScriptedSocket[] = []
  const all: ScriptedSockets = {
    sockets,
    get last() {
      const last = sockets.at(-1)
      if (last === undefined) throw new Error('no socket was opened')
      return last
    },
    answersClose: true,
    refusal: undefined,
    WebSocket: class implements SocketLike {
      onopen: Handler = null
      onmessage: Handler = null
      onclose: Handler = null
      onerror: Handler = null
      readonly sent: Record<string, unknown>[] = []
      closedWith: number | undefined
      isOpen = false
      constructor(readonly url: string) {
        if (all.refusal !== undefined) throw all.refusal
        sockets.push(this)
      }
      send(data: string): void {
        if (!this.isOpen) throw new Error('send on a socket that is not open')
        this.sent.push(JSON.parse(data) as Record<string, unknown>)
      }
      close(code = 1005): void {
        if (all.answersClose) this.lose(code)
      }
      open(): void {
        this.isOpen = true
        this.onopen?.({} as never)
      }
      receive(message: object): void {
        this.receiveRaw(JSON.stringify(message))
      }
      receiveRaw(data: unknown): void {
        this.onmessage?.({ data } as never)
      }
      lose(code = 1006, reason = ''): void {
        if (this.closedWith !== undefined) return
        this.isOpen = false
        this.closedWith = code
        if (code === 1006) this.onerror?.({} as never)
        this.onclose?.({ code, reason } as never)
      }
      sentOf(type: string): Record<string, unknown>[] {
        return this.sent.filter((message) => message['type'] === type)
      }
    },
  }
  return all
}

/** Lets everything that is ready to run do so. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
}
