// What a reader of frames holds and leaves behind, on a socket that the test drives.
import { expect, it } from 'vitest'
import { readFrames, type FrameReaderOptions } from '../../../src/server/frame-reader.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { createFakeSocket } from './fake-socket.js'

function createSubject(more: Partial<FrameReaderOptions> = {}) {
  const clock = createManualClock()
  const fake = createFakeSocket()
  const read: string[] = []
  const reader = readFrames(fake.asSocket, {
    clock,
    isBehind: () => false,
    read: (text) => void read.push(text),
    ...more,
  })
  return { ...fake, clock, read, reader }
}

it('waits as long as the pace says, and a socket that closes meanwhile leaves no timer and loses no frame', () => {
  const paces = [0, 500, 0]
  const { socket, clock, read, reader, receive, end } = createSubject({ pace: () => paces.shift() ?? 500 })
  for (const frame of [1, 2, 3]) receive(frame)
  expect([read, socket.isPaused, reader.isHeld, clock.pending]).toEqual([['1'], true, true, 1])
  clock.advance(499)
  reader.wake()
  expect(read).toEqual(['1'])
  clock.advance(1)
  expect([read, clock.pending]).toEqual([['1', '2'], 1])
  end()
  expect([read, reader.isHeld, clock.pending]).toEqual([['1', '2', '3'], false, 0])
})

it('passes on the next frame when the one before is answered, and reads on then', async () => {
  const answers: (() => void)[] = []
  const read: string[] = []
  const { socket, reader, receive, end } = createSubject({
    read: (text) => {
      read.push(text)
      return text === '4' ? undefined : new Promise<void>((resolve) => answers.push(resolve))
    },
  })
  for (const frame of [1, 2, 3, 4]) receive(frame)
  expect([read, socket.isPaused]).toEqual([['1'], true])
  reader.wake()
  expect(read).toEqual(['1'])
  answers.shift()?.()
  await Promise.resolve()
  expect(read).toEqual(['1', '2'])
  end()
  // One at a time after the end, too.
  expect(read).toEqual(['1', '2'])
  answers.shift()?.()
  await Promise.resolve()
  expect(read).toEqual(['1', '2', '3'])
  answers.shift()?.()
  await Promise.resolve()
  expect(read).toEqual(['1', '2', '3', '4'])
})

it('stops reading while its peer is behind, and drops what comes after this side has closed', () => {
  const state = { isBehind: true }
  const { socket, read, reader, receive } = createSubject({ isBehind: () => state.isBehind })
  receive(1)
  expect([read, socket.isPaused, reader.isHeld]).toEqual([[], true, true])
  state.isBehind = false
  reader.wake()
  expect([read, socket.isPaused, reader.isHeld]).toEqual([['1'], false, false])
  socket.readyState = 2
  receive(2)
  expect([read, reader.isHeld]).toEqual([['1'], false])
})
