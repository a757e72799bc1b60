/** WebSockets whose server is the test. There is no network. */
import type { SocketConstructor, SocketLike } from '../../src/client/platform.js'

/** One socket that the code under test opened. */
export interface ScriptedSocket {
  readonly url: string
  /** The sent messages, parsed, in order. */
  readonly sent: Record<string, unknown>[]
  /** Its close code: undefined while the socket is open, 1006 after the connection was lost. */
  readonly closedWith: number | undefined
  /** Opens the connection. */
  open(): void
  /** Delivers a message. */
  receive(message: object): void
  /** Delivers a raw frame. */
  receiveRaw(data: unknown): void
  /** Ends the connection, with a close code or without a close frame. */
  lose(code?: number, reason?: string): void
  /** The sent messages of one type. */
  sentOf(type: string): Record<string, unknown>[]
}

export interface ScriptedSockets {
  readonly WebSocket: SocketConstructor
  /** Every socket that was opened, in order. */
  readonly sockets: readonly ScriptedSocket[]
  /** The latest socket. */
  readonly last: ScriptedSocket
  /** Whether the peer answers a close frame. Default true. */
  answersClose: boolean
  /** The error that the constructor throws; undefined if it throws none. */
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

/** Runs everything that is ready to run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
}
