// The subscriptions of a hub, on events that the test publishes.
import { expect, it, vi } from 'vitest'
import type { TaskEvent } from '../../../src/server/backend/event-log.js'
import { createHub, type Deliver } from '../../../src/server/backend/hub.js'

function createSubject() {
  let publish: Deliver = () => undefined
  const stop = vi.fn()
  const hub = createHub({
    listen: (deliver) => {
      publish = deliver
      return stop
    },
  })
  const event = (taskId: string, instanceId: string, isComplete = false) => {
    const made = { message: { taskId, instanceId }, isComplete, releaseFrame: vi.fn() }
    publish(made as unknown as TaskEvent)
    return made
  }
  return { hub, stop, event }
}

it('S9: the end of a task gives its place back to each of its subscribers, after it was delivered', () => {
  const { hub, event } = createSubject()
  const got: TaskEvent[] = []
  const subscriber = hub.join((each) => got.push(each), 2)
  expect(subscriber.addTask('t1', 0)).toBe(true)
  expect(subscriber.addInstance('i1')).toBe(true)
  expect(subscriber.hasRoom).toBe(false)
  expect(subscriber.addTask('t2', 0)).toBe(false)
  expect(subscriber.addInstance('i2')).toBe(false)
  expect(hub.size).toBe(2)
  // Again, it takes no other place.
  expect([subscriber.addTask('t1', 0), subscriber.addInstance('i1')]).toEqual([true, true])
  const first = event('t1', 'i1')
  const last = event('t1', 'i1', true)
  expect(got).toEqual([first, last])
  expect(hub.size).toBe(1)
  expect(subscriber.hasRoom).toBe(true)
  expect(subscriber.addTask('t2', 0)).toBe(true)
  subscriber.removeInstance('i1')
  expect(subscriber.hasRoom).toBe(true)
  event('t3', 'i1')
  expect(got).toEqual([first, last])
})

it('S9: who leaves gets nothing more, and others do', () => {
  const { hub, event } = createSubject()
  const [leaving, staying] = [vi.fn(), vi.fn()]
  const one = hub.join(leaving, 3)
  const other = hub.join(staying, 3)
  for (const subscriber of [one, other]) {
    subscriber.addTask('t1', 0)
    subscriber.addInstance('i1')
  }
  one.addInstance('i2')
  expect(hub.size).toBe(3)
  one.leave()
  expect(hub.size).toBe(2)
  event('t1', 'i2')
  event('t2', 'i1')
  event('t2', 'i2')
  expect([leaving.mock.calls.length, staying.mock.calls.length]).toEqual([0, 2])
  other.removeTask('t1')
  other.removeInstance('i1')
  expect(hub.size).toBe(0)
})

it('frees what it has serialised of each event once it was delivered, whoever is there', () => {
  const { hub, event } = createSubject()
  const order: string[] = []
  hub
    .join((each) => {
      Object.assign(each, { releaseFrame: () => order.push('freed') })
      order.push('delivered')
    }, 1)
    .addTask('t1', 0)
  event('t1', 'i1')
  expect(order).toEqual(['delivered', 'freed'])
  expect(event('t2', 'i2').releaseFrame).toHaveBeenCalledOnce()
})

it('stops listening when it is disposed of, and has no subscriptions', () => {
  const { hub, stop, event } = createSubject()
  const deliver = vi.fn()
  const subscriber = hub.join(deliver, 2)
  subscriber.addTask('t1', 0)
  subscriber.addInstance('i1')
  hub.dispose()
  expect([stop.mock.calls.length, hub.size]).toEqual([1, 0])
  event('t1', 'i1')
  expect(deliver).not.toHaveBeenCalled()
})
