/**
 * The incoming side of a socket: passes frames on one at a time, and stops reading while that must wait. So a peer that sends requests and
 * does not read the answers is not answered any more, and one that sends too fast is slowed down; no frame is lost.
 */
import type { RawData, WebSocket } from 'ws'
import type { Clock } from '../clock.js'
import { textOf } from './connection.js'

export interface FrameReaderOptions {
  readonly clock: Clock
  /** Whether the peer must first read what was sent to it. Call `wake` when it has read something. */
  readonly isBehind: () => boolean
  /** Counts a frame. Returns 0, or how long to wait before it may be passed on, in ms. Default: no limit. */
  readonly pace?: () => number
  /** Called with each frame. Must not throw. */
  readonly read: (text: string) => void
}

export interface FrameReader {
  /** Whether nothing is read at present. */
  readonly isHeld: boolean
  /** Looks again whether the next frame may be passed on. */
  wake(): void
}

/** Reads a socket until it closes. Frames that arrived before the peer closed it are passed on first. */
export function readFrames(socket: WebSocket, options: FrameReaderOptions): FrameReader {
  const { clock, isBehind, pace = () => 0, read } = options
  /** At most what one read of the network brought, because the socket is paused while something waits. */
  const waiting: RawData[] = []
  let timer: unknown

  const isOpen = (): boolean => socket.readyState === socket.OPEN
  const pass = (): void => {
    const data = waiting.shift()
    if (data !== undefined) read(textOf(data))
  }
  const waitFor = (ms: number): void => {
    timer = clock.setTimeout(() => {
      timer = undefined
      wake()
    }, ms)
  }
  const wake = (): void => {
    while (waiting.length > 0 && timer === undefined && isOpen()) {
      if (isBehind()) break
      const waitMs = pace()
      if (waitMs > 0) waitFor(waitMs)
      else pass()
    }
    if (waiting.length > 0 && isOpen()) socket.pause()
    // Also when this side has closed it: the peer's answer to the close must be read.
    else if (socket.isPaused) socket.resume()
  }

  socket.on('message', (data: RawData) => {
    // This side has closed it: the peer will not get an answer.
    if (!isOpen()) return
    waiting.push(data)
    if (waiting.length === 1) wake()
  })
  socket.once('close', () => {
    if (timer !== undefined) clock.clearTimeout(timer)
    while (waiting.length > 0) pass()
  })
  return {
    get isHeld() {
      return waiting.length > 0
    },
    wake,
  }
}
