/** Real sockets that the test can cut, or whose messages it can drop, as a network does. */
import { WebSocket } from 'ws'
import type { SocketConstructor } from '../../src/client/platform.js'

export interface CuttableSockets {
  readonly WebSocket: SocketConstructor
  /** How many sockets were opened. */
  readonly count: number
  /** Destroys every socket without a close frame, as a lost network does. */
  cut(): void
  /** Drops all messages to the present sockets from now on. */
  deafen(): void
  /** Resolves when this many sockets have been opened in total. */
  opened(count: number): Promise<void>
}

export function cuttableSockets(): CuttableSockets {
  const sockets: WebSocket[] = []
  const waiting: { readonly count: number; readonly resolve: () => void }[] = []
  let opened = 0
  return {
    get count() {
      return sockets.length
    },
    WebSocket: class extends WebSocket {
      constructor(url: string) {
        super(url)
        sockets.push(this)
        this.once('open', () => {
          opened += 1
          for (const { count, resolve } of waiting) if (opened >= count) resolve()
        })
      }
    },
    cut: () => {
      for (const socket of sockets) socket.terminate()
    },
    deafen: () => {
      for (const socket of sockets) socket.onmessage = null
    },
    opened: (count) =>
      new Promise((resolve) => {
        if (opened >= count) resolve()
        else waiting.push({ count, resolve })
      }),
  }
}
