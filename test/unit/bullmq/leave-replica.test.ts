/** How a client leaves a Redis that has become a replica. */
import { afterEach, expect, it, vi } from 'vitest'
import { leaveReplica, reconnectDelay } from '../../../src/bullmq/connection.js'

afterEach(() => {
  vi.restoreAllMocks()
})

it('waits longer after each refused write, and after 10 s without one begins again', () => {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const { reconnectOnError, retryStrategy } = leaveReplica(true, () => undefined)
  const refuse = (): void => void reconnectOnError(new Error("READONLY You can't write against a read only replica."))
  const delays: number[] = []
  for (const wait of [0, 5000, 5000, 5000, 10_001]) {
    now += wait
    refuse()
    delays.push(retryStrategy(1))
  }
  expect(delays).toEqual([1, 2, 3, 4, 1].map(reconnectDelay))
  now += 10_001
  expect(retryStrategy(1)).toBe(reconnectDelay(1))
})

it('sends a refused command again only where the connection waits, and leaves other errors alone', () => {
  const seen: string[] = []
  const answers = [true, false].map((waits) => {
    const { reconnectOnError } = leaveReplica(waits, ({ message }) => seen.push(message))
    return ['READONLY a', 'ERR script: READONLY b', 'OOM c', 'NOREADONLY'].map((text) =>
      reconnectOnError(new Error(text)),
    )
  })
  expect(answers).toEqual([
    [2, 2, false, false],
    [1, 1, false, false],
  ])
  expect(seen).toEqual(['READONLY a', 'ERR script: READONLY b', 'READONLY a', 'ERR script: READONLY b'])
})
