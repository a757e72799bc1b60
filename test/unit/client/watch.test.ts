/** Watching a task to its end, whatever happens to the connection and however slowly the events are read. */
import { describe, expect, it } from 'vitest'
import { settle } from '../../support/scripted-sockets.js'
import { complete, progress, read, setUpClient, snapshot, submission, words } from './client-host.js'

/** A watch of `t1` on a connection that stands, with its subscription acknowledged. */
async function watchOne(options: Parameters<typeof setUpClient>[0] = {}) {
  const host = setUpClient(options)
  const watched = read(host.client.watch('t1'))
  const socket = await host.accept()
  await host.acknowledge(socket, snapshot('t1'))
  return { ...host, watched, socket }
}

describe('a watch', () => {
  it('S7: yields the events in order, and ends after the complete', async () => {
    const { watched, socket } = await watchOne()
    for (const event of [progress('t1'), progress('t1', 0, 'success'), progress('t1', 1), complete('t1')]) {
      socket.receive(event)
    }
    socket.receive(progress('t1', 1, 'error'))
    await settle()
    expect(words(watched.events)).toEqual(['0 running', '0 success', '1 running', 'completed'])
    expect(watched).toMatchObject({ isOver: true, error: undefined })
  })

  it('begins with the iteration, and does not unsubscribe from what is over', async () => {
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

  it('tells how the task stands when it begins and after each reconnection, before what follows', async () => {
    const { client, accept, acknowledge, clock } = setUpClient()
    const told: string[] = []
    const watch = client.watch('t1', { onSnapshot: ({ status }) => void told.push(status) })
    const reading = (async () => {
      for await (const event of watch) told.push(event.type)
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
    expect(told).toEqual(['queued', 'task_progress', 'completed', 'task_complete'])
  })

  it('throws what its own snapshot callback throws, and harms no other watch', async () => {
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

  it('S9: throws TASK_NOT_FOUND for a task that the server never knew', async () => {
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
    expect(watched).toMatchObject({ isOver: true, error: { name: 'TaskServerError', code: 'TASK_NOT_FOUND' } })
    expect(socket.sentOf('unsubscribe_task')).toEqual([])
  })

  it('throws the code of a server that takes no more subscriptions', async () => {
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

  it('asks again when the server wants patience, or when its answer was lost', async () => {
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

describe('a watch that is over before its subscription is answered', () => {
  const early = async () => {
    const host = setUpClient()
    const told: string[] = []
    const watched = read(host.client.watch('t1', { onSnapshot: ({ status }) => void told.push(status) }))
    const socket = await host.accept()
    socket.receive(complete('t1'))
    return { ...host, told, watched, socket }
  }

  it('S7: does not hear how the task stands after its end', async () => {
    const { acknowledge, watched, socket, told } = await early()
    await acknowledge(socket, snapshot('t1', 'completed'))
    expect([words(watched.events), told]).toEqual([['completed'], []])
  })

  it('S7: is not failed by an answer that comes too late', async () => {
    const { answer, watched, socket } = await early()
    await answer(socket, 'subscribe_task', { type: 'error', message: 'm', error: 'Too many', code: 'TOO_MANY' })
    expect(watched).toMatchObject({ isOver: true, error: undefined, events: [complete('t1')] })
  })

  it('is nothing to unsubscribe from while there is no connection, and is not subscribed to on the next one', async () => {
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
  it('S7: subscribes again, and gets the complete of what ended meanwhile', async () => {
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

  it('S7: gets the complete once, also when it was in flight when the connection was lost', async () => {
    const { watched, socket, clock, sockets } = await watchOne()
    socket.receive(complete('t1'))
    socket.lose()
    clock.advance(60_000)
    await settle()
    expect(words(watched.events)).toEqual(['completed'])
    expect(sockets.sockets).toHaveLength(1)
  })

  it('S7: ignores what an earlier connection still says', async () => {
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

  it('S9: throws TASK_EXPIRED when the server was restarted and does not know the task any more', async () => {
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
      error: { name: 'TaskExpiredError', code: 'TASK_EXPIRED', taskId: 't1' },
    })
  })

  it('S9: throws TASK_EXPIRED for a task of its own that it began to watch after the connection was lost', async () => {
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

  it('goes on through lost acknowledgements, and connections that fail at every step', async () => {
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

  it('throws when the connection is given up', async () => {
    const { watched, socket } = await watchOne({ reconnect: false })
    socket.lose()
    await settle()
    expect(watched).toMatchObject({ isOver: true, error: { code: 'CONNECTION_LOST' } })
  })

  it('takes a silent connection for dead when a question gets no answer, and leaves a live one alone', async () => {
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
  it('S7: misses nothing, even when the first events come with the answer', async () => {
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

  it('that does not begin soon is unsubscribed, and can begin later', async () => {
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

  it('keeps no more of it than a watch would, and still the complete', async () => {
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

  it('survives a connection that is lost in between', async () => {
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

  it('by aborting throws the reason at once, drops what was not read, and unsubscribes', async () => {
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

  it('by aborting works for a reader that waits, before the iteration, and does nothing after the end', async () => {
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

  it('by aborting also stops a slow reader of a task that is over, once', async () => {
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

  it('by aborting after all was read does nothing', async () => {
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

  it('ends a read that waits when the iterator is returned from', async () => {
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

  it('by closing the client throws, after what had come', async () => {
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
  it('S7: loses the oldest progress messages, never the complete', async () => {
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

  it('does not hold up another, and several reads at once are answered in order', async () => {
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

  it('that joins a watch gets a snapshot of its own, and leaves the other in place', async () => {
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
