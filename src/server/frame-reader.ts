/**
 * The incoming side of a socket: passes frames on one at a time, and stops reading while that must wait. So a peer that sends requests and
 * does not read the answers is not answered any more, and one that sends too fast is slowed down; no frame is lost.
 */
import type { RawData, WebSocket } from 'ws'
import type { Clock } from '../clock.js'
import { textOf } from './connection.js'
import type { Eventually } from '../task-backend/eventually.js'

export interface FrameReaderOptions {
  readonly clock: Clock
  /** Whether the peer must first read what was sent to it. Call `wake` when it has read something. */
  readonly isBehind: () => boolean
  /** Counts a frame. Returns 0, or how long to wait before it may be passed on, in ms. Default: no limit. */
  readonly pace?: () => number
  /** Called with each frame; the next one waits for the promise, if there is one. Must not throw or reject. */
  readonly read: (text: string) => Eventually<void>
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
  /** Whether a frame is being answered. */
  let isBusy = false

  const isOpen = (): boolean => socket.readyState === socket.OPEN
  const pass = (): void => {
    const data = waiting.shift()
    const answered = data && read(textOf(data))
    if (answered === undefined) return
    isBusy = true
    void answered.then(() => {
      isBusy = false
      if (isOpen()) wake()
      else passAll()
    })
  }
  const passAll = (): void => {
    while (waiting.length > 0 && !isBusy) pass()
  }
  const waitFor = (ms: number): void => {
    timer = clock.setTimeout(() => {
      timer = undefined
      wake()
    }, ms)
  }
  const wake = (): void => {
    while (waiting.length > 0 && timer === undefined && !isBusy && isOpen()) {
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
    passAll()
  })
  return {
    get isHeld() {
      return waiting.length > 0
    },
    wake,
  }
}
