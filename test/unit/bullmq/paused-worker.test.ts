import { EventEmitter } from 'node:events'
import type { Worker } from 'bullmq'
import { expect, it, onTestFinished, vi } from 'vitest'
import { pauseOnErrors } from '../../../src/bullmq/paused-worker.js'

function open() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const seen: string[] = []
  const state = { isReady: true }
  const worker = Object.assign(new EventEmitter(), {
    pause: (doNotWaitActive: boolean) => {
      seen.push(`pause ${doNotWaitActive} at ${Math.round(performance.now() - begun)}`)
      return Promise.resolve()
    },
    resume: () => {
      seen.push(`resume at ${Math.round(performance.now() - begun)}`)
      return Promise.resolve()
    },
  })
  const begun = performance.now()
  const stop = pauseOnErrors(worker as unknown as Worker, () => state.isReady)
  return {
    seen,
    state,
    stop,
    fail: () => worker.emit('error', new Error('NOPERM')),
    listeners: () => worker.listenerCount('error'),
  }
}

it('W6: a worker pauses after an error of Redis, longer each time, and again briefly after a calm time', () => {
  const { seen, fail } = open()
  fail()
  fail()
  vi.advanceTimersByTime(1000)
  fail()
  vi.advanceTimersByTime(2000)
  vi.advanceTimersByTime(6000)
  fail()
  vi.advanceTimersByTime(1000)
  expect(seen).toEqual([
    ...['pause true at 0', 'resume at 1000'],
    ...['pause true at 1000', 'resume at 3000'],
    ...['pause true at 9000', 'resume at 10000'],
  ])
})

it('W6: a worker does not pause while Redis cannot be reached, or after it was asked to stop', () => {
  const { seen, state, fail, stop, listeners } = open()
  state.isReady = false
  fail()
  expect(seen).toEqual([])
  state.isReady = true
  fail()
  stop()
  vi.advanceTimersByTime(10_000)
  expect(seen).toEqual(['pause true at 0'])
  expect([listeners(), vi.getTimerCount()]).toEqual([0, 0])
})
