/**
 * The incoming side of a socket. Frames are passed on one at a time, and the socket is not read while a frame has to wait. A peer that does not
 * read its answers therefore gets no more of them, and a peer that sends too fast is slowed down. No frame is lost.
 */
import type { RawData, WebSocket } from 'ws'
import type { Clock } from '../system/clock.js'
import { textOf } from './connection.js'
import type { Eventually } from './backend/eventually.js'

export interface FrameReaderOptions {
  readonly clock: Clock
  /** Whether the peer must first read what was sent to it. Call `wake` when the peer has read something. */
  readonly isBehind: () => boolean
  /** Counts a frame. Returns 0, or how long the frame must wait before it is passed on, in ms. Default: no limit. */
  readonly pace?: () => number
  /** Called with each frame. If it returns a promise, the next frame waits for that promise. Must not throw or reject. */
  readonly read: (text: string) => Eventually<void>
}

export interface FrameReader {
  /** Whether the socket is not read at present. */
  readonly isHeld: boolean
  /** Checks again whether the next frame may be passed on. */
  wake(): void
}

/** Reads a socket until it closes. Frames that arrived before the close are passed on first. */
export function readFrames(socket: WebSocket, options: FrameReaderOptions): FrameReader {
  const { clock, isBehind, pace = () => 0, read } = options
  /** The frames that wait. They are at most those of one read from the network, because the socket is paused while a frame waits. */
  const waiting: RawData[] = []
  let timer: unknown
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
    // Resumed also when this side has closed the socket, because the peer's answer to the close must be read.
    else if (socket.isPaused) socket.resume()
  }

  socket.on('message', (data: RawData) => {
    // This side has closed the socket, so the peer would not get an answer.
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
