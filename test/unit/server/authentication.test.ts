// The first message of a socket without a token: what is left of the wait for it.
import { expect, it, vi } from 'vitest'
import { awaitAuthentication } from '../../../src/server/authentication.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { createFakeSocket } from './fake-socket.js'

function createSubject() {
  const clock = createManualClock()
  const fake = createFakeSocket()
  const [onRefused, onAuthenticated] = [vi.fn(), vi.fn()]
  awaitAuthentication(fake.asSocket, {
    clock,
    timeoutMs: 1000,
    isToken: (token) => token === 'right',
    onRefused,
    onAuthenticated,
  })
  const counts = () => [
    onRefused.mock.calls.length,
    onAuthenticated.mock.calls.length,
    fake.socket.close.mock.calls.length,
  ]
  return { ...fake, clock, onRefused, counts }
}

it('a valid token ends the wait, and is answered before the next message is read', () => {
  const { socket, clock, receive, frames, counts } = createSubject()
  receive({ type: 'authenticate', token: 'right', requestId: 'r1' })
  expect(frames()).toEqual([{ type: 'authenticate_response', requestId: 'r1', success: true }])
  expect([counts(), clock.pending, socket.listenerCount('message')]).toEqual([[0, 1, 0], 0, 0])
  clock.advance(1000)
  expect(counts()).toEqual([0, 1, 0])
})

it('a wrong token is refused once, and a right one after it is not read', () => {
  const { socket, clock, receive, frames, onRefused, counts } = createSubject()
  receive({ type: 'authenticate', token: 'wrong', requestId: 'r1' })
  receive({ type: 'authenticate', token: 'right' })
  expect(frames()).toEqual([
    { type: 'authenticate_response', requestId: 'r1', success: false, error: 'Invalid token.', code: 'UNAUTHORIZED' },
  ])
  expect(onRefused.mock.calls).toEqual([['Invalid token.']])
  expect(socket.close.mock.calls).toEqual([[1008, 'Not authenticated.']])
  expect([counts(), clock.pending]).toEqual([[1, 0, 1], 0])
})

it.each([
  { type: 'task_list' },
  { type: 'authenticate' },
  'text',
  { type: 'authenticate', token: 'right', a: [[[[1]]]] },
])('a first message %j is refused', (message) => {
  const { clock, receive, frames, counts } = createSubject()
  receive(message)
  expect(frames()).toEqual([
    {
      type: 'error',
      message: 'This server requires a token. The first message must be authenticate { token }.',
      error: 'Not authenticated',
      code: 'UNAUTHORIZED',
    },
  ])
  expect([counts(), clock.pending]).toEqual([[1, 0, 1], 0])
})

it('a client that goes away before it has said anything leaves no timer, and is not refused later', () => {
  const { socket, clock, end, counts } = createSubject()
  end()
  expect([clock.pending, socket.eventNames()]).toEqual([0, []])
  clock.advance(1000)
  expect(counts()).toEqual([0, 0, 0])
})
