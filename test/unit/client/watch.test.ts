/** Watching a task to its end, also with lost connections and slow readers. */
import { describe, expect, it } from 'vitest'
import { settle } from '../../support/scripted-sockets.js'
import { complete, progress, read, setUpClient, snapshot, submission, words } from './client-host.js'

/** A watch of `t1` on a ready connection, with its subscription acknowledged. */
async function watchOne(options: Parameters<typeof setUpClient>[0] = {}) {
  const host = setUpClient(options)
  const watched = read(host.client.watch('t1'))
  const socket = await host.accept()
  await host.acknowledge(socket, snapshot('t1'))
  return { ...host, watched, socket }
}

describe('a watch', () => {
  it('S7: yields the events in order, and ends after task_complete', async () => {
    const { watched, socket } = await watchOne()
    for (const event of [progress('t1'), progress('t1', 0, 'success'), progress('t1', 1), complete('t1')]) {
      socket.receive(event)
    }
    socket.receive(progress('t1', 1, 'error'))
    await settle()
    expect(words(watched.events)).toEqual(['0 running', '0 success', '1 running', 'completed'])
    expect(watched).toMatchObject({ isOver: true, error: undefined })
  })

  it('starts with the iteration, and does not unsubscribe from a task that has ended', async () => {
    const { client, accept, acknowledge, sockets } = setUpClient()
    const watch = client.watch('t1')
    await settle()
    expect(sockets.sockets).toHaveLength(0)
    const watched = read(watch)
    const socket = await accept()
    await acknowledge(socket, snapshot('t1', 'completed'))
    socket.receive(complete('t1'))
    await settle()
    expect(watched).toMatchObject({ isOver: true, events: [complete('t1')] })
    expect(socket.sent.map(({ type }) => type)).toEqual(['subscribe_task'])
  })

  it('calls onSnapshot at the start and after each reconnection, before later events', async () => {
    const { client, accept, acknowledge, clock } = setUpClient()
    const seen: string[] = []
    const watch = client.watch('t1', { onSnapshot: ({ status }) => void seen.push(status) })
    const reading = (async () => {
      for await (const event of watch) seen.push(event.type)
    })()
    const first = await accept()
    await acknowledge(first, snapshot('t1', 'queued'))
    first.receive(progress('t1'))
    await settle()
    first.lose()
    clock.advance(100)
    const second = await accept()
    await acknowledge(second, snapshot('t1', 'completed'))
    second.receive(complete('t1'))
    await reading
    expect(seen).toEqual(['queued', 'task_progress', 'completed', 'task_complete'])
  })

  it('throws what its onSnapshot throws, without failing other watches', async () => {
    const { client, accept, acknowledge } = setUpClient()
    const broken = read(
      client.watch('t1', {
        onSnapshot: () => {
          throw new Error('on purpose')
        },
      }),
    )
    const other = read(client.watch('t1'))
    const socket = await accept()
    await acknowledge(socket, snapshot('t1'))
    socket.receive(complete('t1'))
    await settle()
    expect(broken.error).toMatchObject({ message: 'on purpose' })
    expect(words(other.events)).toEqual(['completed'])
  })

  it('S9: throws TASK_NOT_FOUND for a task that the server never had', async () => {
    const { client, accept, answer } = setUpClient()
    const watched = read(client.watch('t1'))
    const socket = await accept()
    await answer(socket, 'subscribe_task', {
      type: 'subscribe_ack',
      taskId: 't1',
      task: null,
      error: 'Task not found',
      code: 'TASK_NOT_FOUND',
    })
    expect(watched).toMatchObject({ isOver: true, error: { code: 'TASK_NOT_FOUND' } })
    expect(socket.sentOf('unsubscribe_task')).toEqual([])
  })

  it('throws the code of a server that refuses more subscriptions', async () => {
    const { client, accept, answer } = setUpClient()
    const watched = read(client.watch('t1'))
    const socket = await accept()
    await answer(socket, 'subscribe_task', {
      type: 'error',
      message: 'm',
      error: 'Too many',
      code: 'TOO_MANY_SUBSCRIPTIONS',
    })
    expect(watched).toMatchObject({ isOver: true, error: { code: 'TOO_MANY_SUBSCRIPTIONS' } })
  })

  it('retries a subscription that was rate limited or not answered', async () => {
    const { client, accept, answer, acknowledge, clock } = setUpClient({ requestTimeoutMs: 5000 })
    const watched = read(client.watch('t1'))
    const socket = await accept()
    await answer(socket, 'subscribe_task', { type: 'error', message: 'm', error: 'Too many', code: 'RATE_LIMITED' })
    clock.advance(1000)
    expect(socket.sentOf('subscribe_task')).toHaveLength(2)
    clock.advance(4000)
    socket.receive(progress('other'))
    clock.advance(2000)
    expect(socket.sentOf('subscribe_task')).toHaveLength(3)
    await acknowledge(socket, snapshot('t1'))
    socket.receive(complete('t1'))
    await settle()
    expect(words(watched.events)).toEqual(['completed'])
  })
})

describe('two watches of a task', () => {
  it('retry together when the subscriptions of both were rate limited', async () => {
    const { client, accept, acknowledge, clock } = setUpClient()
    const statuses: string[] = []
    const watch = () => read(client.watch('t1', { onSnapshot: ({ status }) => void statuses.push(status) }))
    const first = watch()
    const socket = await accept()
    const second = watch()
    await settle()
    const subscriptions = socket.sentOf('subscribe_task')
    expect(subscriptions).toHaveLength(2)
    for (const { requestId } of subscriptions) {
      socket.receive({ type: 'error', message: 'm', error: 'Too many', code: 'RATE_LIMITED', requestId })
    }
    clock.advance(1000)
    expect(socket.sentOf('subscribe_task')).toHaveLength(3)
    await acknowledge(socket, snapshot('t1'))
    expect(statuses).toEqual(['running', 'running'])
    socket.receive(complete('t1'))
    await settle()
    expect([first, second].map(({ events }) => words(events))).toEqual([['completed'], ['completed']])
  })
})

describe('a watch of a task that ends before its subscription is answered', () => {
  const early = async () => {
    const host = setUpClient()
    const seen: string[] = []
    const watched = read(host.client.watch('t1', { onSnapshot: ({ status }) => void seen.push(status) }))
    const socket = await host.accept()
    socket.receive(complete('t1'))
    return { ...host, seen, watched, socket }
  }

  it('S7: gets no snapshot after task_complete', async () => {
    const { acknowledge, watched, socket, seen } = await early()
    await acknowledge(socket, snapshot('t1', 'completed'))
    expect([words(watched.events), seen]).toEqual([['completed'], []])
  })

  it('S7: is not failed by a late answer', async () => {
    const { answer, watched, socket } = await early()
    await answer(socket, 'subscribe_task', { type: 'error', message: 'm', error: 'Too many', code: 'TOO_MANY' })
    expect(watched).toMatchObject({ isOver: true, error: undefined, events: [complete('t1')] })
  })

  it('is neither unsubscribed without a connection, nor subscribed on the next one', async () => {
    const { client, accept, acknowledge, clock, sockets } = setUpClient()
    const iterator = client.watch('t1')[Symbol.asyncIterator]()
    const next = iterator.next()
    const first = await accept()
    await acknowledge(first, snapshot('t1'))
    first.lose()
    await iterator.return?.()
    expect((await next).done).toBe(true)
    clock.advance(100)
    void client.list().catch(() => undefined)
    const second = await accept()
    expect(second.sent.map(({ type }) => type)).not.toContain('subscribe_task')
    expect(sockets.sockets.flatMap((socket) => socket.sentOf('unsubscribe_task'))).toEqual([])
  })
})

describe('a watch that loses its connection', () => {
  it('S7: subscribes again, and gets the task_complete of a task that ended meanwhile', async () => {
    const { watched, socket, clock, accept, acknowledge } = await watchOne()
    socket.receive(progress('t1'))
    socket.lose()
    clock.advance(100)
    const second = await accept()
    await acknowledge(second, snapshot('t1', 'completed'))
    second.receive(complete('t1'))
    await settle()
    expect(words(watched.events)).toEqual(['0 running', 'completed'])
  })

  it('S7: gets task_complete once, also when it was in flight when the connection was lost', async () => {
    const { watched, socket, clock, sockets } = await watchOne()
    socket.receive(complete('t1'))
    socket.lose()
    clock.advance(60_000)
    await settle()
    expect(words(watched.events)).toEqual(['completed'])
    expect(sockets.sockets).toHaveLength(1)
  })

  it('S7: ignores messages of an earlier connection', async () => {
    const { watched, socket, clock, accept, acknowledge, sockets } = await watchOne({
      heartbeatMs: 1000,
      requestTimeoutMs: 500,
    })
    clock.advance(1500)
    expect(socket.closedWith).toBeDefined()
    clock.advance(100)
    const second = await accept()
    await acknowledge(second, snapshot('t1'))
    socket.receive(progress('t1', 1, 'error'))
    second.receive(complete('t1'))
    await settle()
    expect(words(watched.events)).toEqual(['completed'])
    expect(sockets.sockets).toHaveLength(2)
  })

  it('S9: throws TASK_EXPIRED when a restarted server no longer has the task', async () => {
    const { watched, socket, clock, accept, answer } = await watchOne()
    socket.receive(progress('t1'))
    socket.lose(1001)
    clock.advance(100)
    const second = await accept()
    const ack = { type: 'subscribe_ack', taskId: 't1', task: null, error: 'none', code: 'TASK_NOT_FOUND' }
    await answer(second, 'subscribe_task', ack)
    expect(words(watched.events)).toEqual(['0 running'])
    expect(watched).toMatchObject({
      isOver: true,
      error: { code: 'TASK_EXPIRED', taskId: 't1' },
    })
  })

  it('S9: throws TASK_EXPIRED for a submitted task that is watched after the connection was lost', async () => {
    const { client, accept, answer, clock } = setUpClient()
    const submitted = client.submit(submission)
    const first = await accept()
    await answer(first, 'task_submit', accepted)
    const { taskId } = await submitted
    first.lose()
    const watched = read(client.watch(taskId))
    clock.advance(100)
    const second = await accept()
    await answer(second, 'subscribe_task', { type: 'subscribe_ack', taskId, task: null, code: 'TASK_NOT_FOUND' })
    expect(watched).toMatchObject({ isOver: true, error: { code: 'TASK_EXPIRED' } })
  })

  it('survives lost acknowledgements, and connections that fail at every step', async () => {
    const { watched, socket, clock, accept, acknowledge, sockets } = await watchOne()
    socket.lose()
    clock.advance(100)
    await settle()
    sockets.last.lose()
    clock.advance(200)
    await settle()
    sockets.last.open()
    sockets.last.lose()
    clock.advance(400)
    const third = await accept()
    expect(third.sentOf('subscribe_task')).toHaveLength(1)
    third.lose()
    clock.advance(100)
    const fourth = await accept()
    await acknowledge(fourth, snapshot('t1'))
    fourth.receive(complete('t1'))
    await settle()
    expect(words(watched.events)).toEqual(['completed'])
  })

  it('throws when there are no more attempts', async () => {
    const { watched, socket } = await watchOne({ reconnect: false })
    socket.lose()
    await settle()
    expect(watched).toMatchObject({ isOver: true, error: { code: 'CONNECTION_LOST' } })
  })

  it('throws when the server has been away for a minute', async () => {
    const { watched, socket, clock, sockets } = await watchOne({})
    socket.lose()
    let lostMs = 0
    for (; !watched.isOver && lostMs < 120_000; lostMs += 100) {
      clock.advance(100)
      await settle()
      sockets.last.lose()
      await settle()
    }
    expect(watched).toMatchObject({ isOver: true, error: { code: 'CONNECTION_FAILED' } })
    expect(lostMs).toBe(60_000)
  })

  it('drops a silent connection when a request gets no answer, and keeps a live one', async () => {
    const { socket, clock, answer } = await watchOne({ heartbeatMs: 10_000, requestTimeoutMs: 5000 })
    clock.advance(10_000)
    expect(socket.sentOf('task_status')).toHaveLength(1)
    await answer(socket, 'task_status', { type: 'task_status_response', task: null })
    clock.advance(9999)
    expect(socket.sentOf('task_status')).toHaveLength(1)
    clock.advance(1)
    expect(socket.sentOf('task_status')).toHaveLength(2)
    clock.advance(5000)
    expect(socket.closedWith).toBeDefined()
  })
})

const accepted = {
  type: 'task_submit_response',
  success: true,
  status: 'accepted',
  taskId: 't1',
  queuePosition: 1,
}

describe('a watch right after submit', () => {
  it('S7: gets all events, even when the first ones come with the answer', async () => {
    const { client, accept } = setUpClient()
    const reading = (async () => {
      const { taskId } = await client.submit(submission)
      const events: string[] = []
      for await (const event of client.watch(taskId)) events.push(event.type)
      return events
    })()
    const socket = await accept()
    const [request] = socket.sentOf('task_submit')
    socket.receive({ ...accepted, requestId: request?.['requestId'] })
    for (const event of [progress('t1'), progress('t1', 0, 'success'), complete('t1')]) socket.receive(event)
    expect(await reading).toEqual(['task_progress', 'task_progress', 'task_complete'])
    expect(socket.sent.map(({ type }) => type)).toEqual(['task_submit'])
  })

  it('that starts soon goes on for as long as its task, and a subscription that was given up is not tried again', async () => {
    const { client, accept, answer, clock } = setUpClient()
    const submitted = client.submit(submission)
    const socket = await accept()
    await answer(socket, 'task_submit', accepted)
    await submitted
    clock.advance(999)
    const watched = read(client.watch('t1'))
    await settle()
    expect(clock.pending).toBe(1)
    clock.advance(20_000)
    expect(socket.sentOf('unsubscribe_task')).toEqual([])
    socket.receive(complete('t1'))
    await settle()
    expect(words(watched.events)).toEqual(['completed'])
    const left = client.watch('t2')[Symbol.asyncIterator]()
    await settle()
    const [request] = socket.sentOf('subscribe_task')
    await left.return?.()
    const { pending } = clock
    socket.receive({
      type: 'error',
      message: 'm',
      error: 'Too many',
      code: 'RATE_LIMITED',
      requestId: request?.['requestId'],
    })
    // The time limit of the answered request is gone, and no other timer has begun.
    expect(clock.pending).toBe(pending - 1)
    clock.advance(1000)
    expect(socket.sentOf('subscribe_task')).toHaveLength(1)
  })

  it('that does not start soon is unsubscribed, and can start later', async () => {
    const { client, accept, answer, acknowledge, clock } = setUpClient()
    const submitted = client.submit(submission)
    const socket = await accept()
    await answer(socket, 'task_submit', accepted)
    await submitted
    socket.receive(progress('t1'))
    clock.advance(1000)
    expect(socket.sentOf('unsubscribe_task')).toMatchObject([{ taskId: 't1' }])
    const watched = read(client.watch('t1'))
    await acknowledge(socket, snapshot('t1', 'completed'))
    socket.receive(complete('t1'))
    await settle()
    expect(words(watched.events)).toEqual(['completed'])
  })

  it('buffers no more than a watch, and keeps task_complete', async () => {
    const { client, accept, answer } = setUpClient({ maxBuffered: 3 })
    const submitted = client.submit(submission)
    const socket = await accept()
    await answer(socket, 'task_submit', accepted)
    await submitted
    for (let index = 0; index < 10; index += 1) socket.receive(progress('t1', index))
    socket.receive(complete('t1'))
    const watched = read(client.watch('t1'))
    await settle()
    expect(words(watched.events)).toEqual(['7 running', '8 running', '9 running', 'completed'])
  })

  it('survives a connection that is lost before it starts', async () => {
    const { client, accept, answer, acknowledge, clock } = setUpClient()
    const submitted = client.submit(submission)
    const first = await accept()
    await answer(first, 'task_submit', accepted)
    await submitted
    first.receive(progress('t1'))
    first.lose()
    const watched = read(client.watch('t1'))
    clock.advance(100)
    const second = await accept()
    await acknowledge(second, snapshot('t1', 'completed'))
    second.receive(complete('t1'))
    await settle()
    expect(words(watched.events)).toEqual(['0 running', 'completed'])
  })
})

describe('leaving a watch', () => {
  it('unsubscribes when the loop is left, and the task can be watched again', async () => {
    const { client, accept, acknowledge } = setUpClient()
    const seen: string[] = []
    const reading = (async () => {
      for await (const event of client.watch('t1')) {
        seen.push(event.type)
        break
      }
    })()
    const socket = await accept()
    await acknowledge(socket, snapshot('t1'))
    socket.receive(progress('t1'))
    await reading
    expect(seen).toEqual(['task_progress'])
    expect(socket.sentOf('unsubscribe_task')).toMatchObject([{ taskId: 't1' }])
    const again = read(client.watch('t1'))
    await acknowledge(socket, snapshot('t1'))
    socket.receive(complete('t1'))
    await settle()
    expect(words(again.events)).toEqual(['completed'])
  })

  it('by aborting throws the reason at once, drops unread events, and unsubscribes', async () => {
    const { client, accept, acknowledge } = setUpClient()
    const controller = new AbortController()
    const iterator = client.watch('t1', { signal: controller.signal })[Symbol.asyncIterator]()
    const socket = await accept()
    await acknowledge(socket, snapshot('t1'))
    socket.receive(progress('t1'))
    socket.receive(progress('t1', 1))
    controller.abort(new Error('enough'))
    await expect(iterator.next()).rejects.toThrow('enough')
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
    expect(socket.sentOf('unsubscribe_task')).toHaveLength(1)
  })

  it('by aborting works for a waiting reader and before the iteration, and does nothing after the end', async () => {
    const { client, accept, acknowledge, sockets } = setUpClient()
    const early = read(client.watch('t1', { signal: AbortSignal.abort(new Error('too soon')) }))
    await settle()
    expect(early.error).toMatchObject({ message: 'too soon' })
    expect(sockets.sockets).toHaveLength(0)
    const [one, two] = [new AbortController(), new AbortController()]
    const waiting = read(client.watch('t1', { signal: one.signal }))
    const ended = read(client.watch('t1', { signal: two.signal }))
    const socket = await accept()
    await acknowledge(socket, snapshot('t1'))
    one.abort(new Error('enough'))
    await settle()
    expect(waiting).toMatchObject({ isOver: true, error: { message: 'enough' } })
    expect(socket.sentOf('unsubscribe_task')).toHaveLength(0)
    socket.receive(complete('t1'))
    await settle()
    two.abort(new Error('too late'))
    await settle()
    expect(ended).toMatchObject({ isOver: true, error: undefined })
  })

  it('by aborting also stops a slow reader of a task that has ended, once', async () => {
    const { client, accept, acknowledge } = setUpClient()
    const controller = new AbortController()
    const iterator = client.watch('t1', { signal: controller.signal })[Symbol.asyncIterator]()
    const socket = await accept()
    await acknowledge(socket, snapshot('t1'))
    socket.receive(progress('t1'))
    socket.receive(complete('t1'))
    controller.abort(new Error('enough'))
    await expect(iterator.next()).rejects.toThrow('enough')
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
    expect(socket.sentOf('unsubscribe_task')).toEqual([])
  })

  it('by aborting does nothing after all events were read', async () => {
    const { client, accept, acknowledge } = setUpClient()
    const controller = new AbortController()
    const iterator = client.watch('t1', { signal: controller.signal })[Symbol.asyncIterator]()
    const socket = await accept()
    await acknowledge(socket, snapshot('t1'))
    socket.receive(complete('t1'))
    expect((await iterator.next()).value?.type).toBe('task_complete')
    expect((await iterator.next()).done).toBe(true)
    controller.abort()
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
  })

  it('ends a waiting read when the iterator returns', async () => {
    const { client, accept, acknowledge } = setUpClient()
    const iterator = client.watch('t1')[Symbol.asyncIterator]()
    const next = iterator.next()
    const socket = await accept()
    await acknowledge(socket, snapshot('t1'))
    await iterator.return?.()
    expect(await next).toEqual({ done: true, value: undefined })
    await iterator.return?.()
    expect(socket.sentOf('unsubscribe_task')).toHaveLength(1)
  })

  it('by closing the client throws, after the received events', async () => {
    const { client, socket, watched } = await watchOne()
    socket.receive(progress('t1'))
    await client.close()
    await settle()
    expect(words(watched.events)).toEqual(['0 running'])
    expect(watched).toMatchObject({ isOver: true, error: { code: 'CLIENT_CLOSED' } })
    const late = read(client.watch('t1'))
    await settle()
    expect(late.error).toMatchObject({ code: 'CLIENT_CLOSED' })
  })
})

describe('a slow reader', () => {
  it('S7: loses the oldest progress messages, never task_complete', async () => {
    const { client, accept, acknowledge } = setUpClient({ maxBuffered: 5 })
    const iterator = client.watch('t1')[Symbol.asyncIterator]()
    const socket = await accept()
    await acknowledge(socket, snapshot('t1'))
    for (let index = 0; index < 100; index += 1) socket.receive(progress('t1', index))
    socket.receive(complete('t1'))
    const events = []
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) events.push(next.value)
    expect(words(events)).toEqual(['95 running', '96 running', '97 running', '98 running', '99 running', 'completed'])
  })

  it('does not delay another, and concurrent reads are answered in order', async () => {
    const { client, accept, acknowledge } = setUpClient()
    const slow = client.watch('t1')[Symbol.asyncIterator]()
    const fast = read(client.watch('t1'))
    const socket = await accept()
    expect(socket.sentOf('subscribe_task')).toHaveLength(1)
    await acknowledge(socket, snapshot('t1'))
    socket.receive(progress('t1'))
    socket.receive(complete('t1'))
    await settle()
    expect(words(fast.events)).toEqual(['0 running', 'completed'])
    const all = await Promise.all([slow.next(), slow.next(), slow.next()])
    expect(all.map(({ done, value }) => [done, value?.type])).toEqual([
      [false, 'task_progress'],
      [false, 'task_complete'],
      [true, undefined],
    ])
  })

  it('that joins a watch gets its own snapshot, and does not end the other when it leaves', async () => {
    const { client, socket, watched, acknowledge } = await watchOne()
    const statuses: string[] = []
    const controller = new AbortController()
    const joined = read(
      client.watch('t1', { signal: controller.signal, onSnapshot: ({ status }) => void statuses.push(status) }),
    )
    await acknowledge(socket, snapshot('t1'))
    expect(statuses).toEqual(['running'])
    controller.abort()
    await settle()
    expect(joined.error).toMatchObject({ name: 'AbortError' })
    expect(socket.sentOf('unsubscribe_task')).toHaveLength(0)
    socket.receive(complete('t1'))
    await settle()
    expect(words(watched.events)).toEqual(['completed'])
  })
})
