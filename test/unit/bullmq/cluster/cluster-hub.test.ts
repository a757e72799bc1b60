// The subscriptions of a node: what was missed is read, what comes now waits for it.
import { describe, expect, it } from 'vitest'
import { createClusterHub } from '../../../../src/bullmq/cluster/cluster-hub.js'
import { toTaskEvent } from '../../../../src/bullmq/cluster/feed-event.js'
import type { TaskEvent } from '../../../../src/server/backend/event-log.js'
import type { Deliver } from '../../../../src/server/backend/hub.js'

const event = (seq: number, isComplete = false, taskId = 't'): TaskEvent =>
  toTaskEvent({
    seq,
    json: JSON.stringify({ type: isComplete ? 'task_complete' : 'task_progress', taskId, instanceId: 'w' }),
  })

function open() {
  let publish: Deliver = () => undefined
  const reads: { taskId: string; after: number; answer: (events: TaskEvent[] | Error) => Promise<void> }[] = []
  const errors: unknown[] = []
  const hub = createClusterHub({
    source: {
      listen: (deliver) => {
        publish = deliver
        return () => undefined
      },
    },
    read: (taskId, after) =>
      new Promise((resolve, reject) => {
        reads.push({
          taskId,
          after,
          answer: async (events) => {
            if (events instanceof Error) reject(events)
            else resolve(events)
            for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
          },
        })
      }),
    onError: (error) => errors.push(error),
  })
  const heard: number[] = []
  let missed = 0
  const subscriptions = hub.join(
    ({ seq }) => heard.push(seq),
    2,
    () => (missed += 1),
  )
  return {
    hub,
    subscriptions,
    heard,
    missed: () => missed,
    reads,
    errors,
    publish: (...events: TaskEvent[]) => events.forEach((one) => publish(one)),
  }
}

describe('a subscription to a task', () => {
  it('N3: begins after its place: what was missed comes before what waits, each once', async () => {
    const { hub, subscriptions, heard, reads, publish } = open()
    expect(subscriptions.addTask('t', 2)).toBe(true)
    expect(subscriptions.addTask('t', 0)).toBe(true)
    publish(event(5), event(6))
    expect(heard).toEqual([])
    expect(reads).toMatchObject([{ taskId: 't', after: 2 }])
    await reads[0]?.answer([event(3), event(4), event(5)])
    publish(event(7, true))
    expect(heard).toEqual([3, 4, 5, 6, 7])
    expect(hub.size).toBe(0)
  })

  it('N3: ends when the end of the task was among what was missed', async () => {
    const { hub, subscriptions, heard, reads, publish } = open()
    subscriptions.addTask('t', 0)
    await reads[0]?.answer([event(1), event(2, true)])
    publish(event(2, true))
    expect(heard).toEqual([1, 2])
    expect(hub.size).toBe(0)
  })

  it('N3: goes on with what waits when the rest cannot be read, and reads it with the next gap', async () => {
    const { hub, subscriptions, heard, reads, errors, publish } = open()
    subscriptions.addTask('t', 0)
    publish(event(1))
    await reads[0]?.answer(new Error('away'))
    expect([heard, errors.length]).toEqual([[1], 1])
    hub.catchUpAll()
    expect(reads[1]).toMatchObject({ after: 1 })
    publish(event(4))
    await reads[1]?.answer([event(2), event(3)])
    expect(heard).toEqual([1, 2, 3, 4])
  })

  it('hears nothing after it has ended, also when it was just reading', async () => {
    const { hub, subscriptions, heard, reads, publish } = open()
    subscriptions.addTask('t', 0)
    subscriptions.removeTask('t')
    await reads[0]?.answer([event(1)])
    subscriptions.addTask('t', 0)
    subscriptions.leave()
    await reads[1]?.answer([event(1)])
    hub.catchUpAll()
    publish(event(2))
    expect([heard, reads.length, hub.size]).toEqual([[], 2, 0])
    hub.dispose()
  })
})

describe('a subscription to an instance', () => {
  it('N3: and one to its task give each event once', async () => {
    const { subscriptions, heard, reads, publish } = open()
    expect(subscriptions.hasRoom).toBe(true)
    subscriptions.addInstance('w')
    publish(event(1), event(2))
    subscriptions.addTask('t', 0)
    expect(subscriptions.hasRoom).toBe(false)
    expect(reads[0]).toMatchObject({ after: 2 })
    publish(event(3))
    await reads[0]?.answer([event(3)])
    publish(event(4, true))
    expect(heard).toEqual([1, 2, 3, 4])
  })

  it('N3: gets every event, also when the place of its task is ahead of this node', () => {
    const { subscriptions, heard, reads, publish } = open()
    subscriptions.addInstance('w')
    expect(subscriptions.addTask('t', 3, 'w')).toBe(true)
    publish(event(1), event(2), event(3), event(4, true))
    expect([heard, reads]).toEqual([[1, 2, 3, 4], []])
  })

  it('N3: gives the end of a task once, whether it came before or after the answer that has it', () => {
    const { subscriptions, heard, publish } = open()
    subscriptions.addInstance('w')
    publish(event(3, true, 'early'))
    expect(subscriptions.hasSeen('early', 3)).toBe(true)
    expect(subscriptions.hasSeen('late', 3)).toBe(false)
    publish(event(2, false, 'late'), event(3, true, 'late'))
    expect(heard).toEqual([3])
    // It remembers some, not all.
    for (let n = 0; n < 300; n += 1) publish(event(1, true, `t${n}`))
    expect(subscriptions.hasSeen('early', 3)).toBe(false)
    subscriptions.removeInstance('w')
    publish(event(1, false, 'x'))
    expect(heard).toHaveLength(301)
  })
})

describe('what a subscriber has seen', () => {
  it('is remembered of 256 ended tasks', () => {
    const { subscriptions, publish } = open()
    subscriptions.addInstance('w')
    publish(event(3, true, 'early'))
    for (let n = 0; n < 255; n += 1) publish(event(1, true, `t${n}`))
    expect(subscriptions.hasSeen('early', 3)).toBe(true)
    publish(event(1, true, 'one more'))
    expect(subscriptions.hasSeen('early', 3)).toBe(false)
  })

  it('is forgotten with its subscription: another one begins where it wants', async () => {
    const { subscriptions, reads, heard } = open()
    subscriptions.addTask('t', 0)
    await reads[0]?.answer([event(1), event(2)])
    subscriptions.removeTask('t')
    subscriptions.addTask('t', 1)
    expect(reads[1]).toMatchObject({ after: 1 })
    await reads[1]?.answer([event(2)])
    expect(heard).toEqual([1, 2, 2])
  })
})

describe('a gap', () => {
  it('is not told to a subscriber that has left', () => {
    const { hub, subscriptions, missed } = open()
    subscriptions.addInstance('w')
    subscriptions.leave()
    hub.catchUpAll()
    expect(missed()).toBe(0)
  })

  it('N3: is sent to the subscribers of instances alone: what they have missed cannot be read', async () => {
    const { hub, subscriptions, missed, reads, errors } = open()
    subscriptions.addTask('t', 2)
    await reads[0]?.answer([])
    hub.catchUpAll()
    expect([missed(), reads.length]).toEqual([0, 2])
    subscriptions.addInstance('w')
    hub.catchUpAll()
    expect([missed(), reads.length]).toEqual([1, 2])
    subscriptions.removeInstance('w')
    hub.catchUpAll()
    expect([missed(), reads.length]).toEqual([1, 3])
    // Nor can these.
    await reads[2]?.answer(new Error('away'))
    expect([missed(), errors.length]).toEqual([2, 1])
  })
})
