/** The unread events of a watch (S7). */
import { describe, expect, it, vi } from 'vitest'
import type { TaskMessage } from '../../../src/client/session.js'
import { createWatchQueue } from '../../../src/client/watch-queue.js'
import { complete, progress, words } from './client-host.js'

function setUp(maxBuffered = 10) {
  const onEnd = vi.fn()
  const onRead = vi.fn()
  return { queue: createWatchQueue(maxBuffered, { onEnd, onRead }), onEnd, onRead }
}

describe('a watch queue', () => {
  it('S7: is read in a loop to task_complete, and accepts nothing after it', async () => {
    const { queue, onEnd, onRead } = setUp()
    queue.push(progress('t1') as TaskMessage)
    queue.push(complete('t1') as TaskMessage)
    queue.push(progress('t1', 1) as TaskMessage)
    queue.fail(new Error('the connection was lost'))
    const events: TaskMessage[] = []
    for await (const event of queue.iterator) events.push(event)
    expect(words(events)).toEqual(['0 running', 'completed'])
    expect([onEnd, onRead].map((called) => called.mock.calls.length)).toEqual([1, 1])
  })

  it('fails after the pushed events, or at once, and only once', async () => {
    const late = setUp().queue
    late.push(progress('t1') as TaskMessage)
    late.fail(new Error('gone'))
    expect((await late.iterator.next()).value).toMatchObject({ taskId: 't1' })
    await expect(late.iterator.next()).rejects.toThrow('gone')
    expect(await late.iterator.next()).toEqual({ done: true, value: undefined })
    const atOnce = setUp().queue
    atOnce.push(complete('t1') as TaskMessage)
    atOnce.fail(new Error('called off'), true)
    await expect(atOnce.iterator.next()).rejects.toThrow('called off')
  })
})
