/** Changes first, notifications afterwards. */
import { expect, it } from 'vitest'
import { createOutbox } from '../../../src/isolation/outbox.js'

/** An outbox that writes down what it does; `onNotify` is what the host does when it is notified. */
function setUp(onNotify: Readonly<Record<string, () => void>> = {}, mayDeliver?: () => boolean) {
  const log: string[] = []
  const outbox = createOutbox<string>({
    notify: (item) => {
      log.push(item)
      onNotify[item]?.()
    },
    onChanged: () => {
      log.push('changed')
      // It is a part of its batch: what it queues follows.
      outbox.drain()
    },
    onDrained: () => log.push('drained'),
    onHeld: () => log.push('held'),
    ...(mayDeliver && { mayDeliver }),
  })
  return { log, outbox }
}

it('delivers when the outermost batch has ended, in order, each once', () => {
  const { log, outbox } = setUp()
  const answer = outbox.batch(() => {
    outbox.push('a')
    outbox.drain()
    outbox.batch(() => outbox.push('b'))
    log.push('end of the change')
    return 'answer'
  })
  expect(answer).toBe('answer')
  expect(log).toEqual(['changed', 'end of the change', 'changed', 'a', 'b', 'drained'])
  outbox.drain()
  expect(log.slice(6)).toEqual(['drained'])
})

it('delivers what a change had queued when that throws, and is not left in a batch', () => {
  const { log, outbox } = setUp()
  expect(() =>
    outbox.batch(() => {
      outbox.push('a')
      throw new Error('no')
    }),
  ).toThrow('no')
  outbox.batch(() => outbox.push('b'))
  expect(log).toEqual(['changed', 'a', 'drained', 'changed', 'b', 'drained'])
})

it('delivers what a callback changes after what was queued before, and says once that it is empty', () => {
  const { log, outbox } = setUp({
    a: () => {
      outbox.batch(() => outbox.push('of a'))
      log.push('a has returned')
    },
  })
  outbox.batch(() => ['a', 'b'].forEach(outbox.push))
  expect(log).toEqual(['changed', 'a', 'changed', 'a has returned', 'b', 'of a', 'drained'])
})

it('keeps what may not be delivered for the next batch or drain', () => {
  let may = false
  const { log, outbox } = setUp({ a: () => (may = false) }, () => may)
  outbox.batch(() => outbox.push('a'))
  outbox.drain()
  expect(log).toEqual(['changed', 'held', 'held'])
  may = true
  outbox.batch(() => outbox.push('b'))
  expect(log.slice(3)).toEqual(['changed', 'a', 'b', 'drained'])
  outbox.batch(() => outbox.push('c'))
  may = true
  outbox.drain()
  expect(log.slice(7)).toEqual(['changed', 'held', 'c', 'drained'])
})

it('stops when a callback has made it undeliverable, and keeps what that has queued', () => {
  let may = true
  const { log, outbox } = setUp(
    {
      a: () => {
        outbox.batch(() => outbox.push('of a'))
        may = false
      },
    },
    () => may,
  )
  outbox.batch(() => outbox.push('a'))
  expect(log).toEqual(['changed', 'a', 'changed', 'held'])
  may = true
  outbox.drain()
  expect(log.slice(4)).toEqual(['of a', 'drained'])
})

it('releases what was marked, in order, while the rest may not be delivered', () => {
  let may = false
  const { log, outbox } = setUp({ a: () => outbox.batch(() => outbox.push('of a')) }, () => may)
  outbox.batch(() => ['a', 'b'].forEach(outbox.push))
  outbox.mark()
  outbox.batch(() => outbox.push('c'))
  log.length = 0
  outbox.release()
  // What a callback queues follows what was queued before.
  expect(log).toEqual(['a', 'changed', 'b', 'held'])
  // Only what is marked is released, and once.
  outbox.release()
  expect(log.splice(0).slice(4)).toEqual(['held'])
  outbox.mark()
  outbox.release()
  expect(log).toEqual(['c', 'of a', 'drained'])
  may = true
  outbox.batch(() => outbox.push('d'))
  expect(log.slice(3)).toEqual(['changed', 'd', 'drained'])
})

it('what is delivered anyway, or dropped, is no longer marked', () => {
  let may = false
  const { log, outbox } = setUp({}, () => may)
  outbox.batch(() => ['a', 'b', 'c'].forEach(outbox.push))
  outbox.mark()
  outbox.batch(() => outbox.push('d'))
  outbox.drop((item) => item === 'a' || item === 'd')
  outbox.batch(() => outbox.push('e'))
  log.length = 0
  outbox.release()
  expect(log.splice(0)).toEqual(['b', 'c', 'held'])
  outbox.mark()
  may = true
  outbox.drain()
  may = false
  outbox.batch(() => outbox.push('f'))
  log.length = 0
  outbox.release()
  expect(log).toEqual(['held'])
})

it('releases inside a batch at the end of it', () => {
  const { log, outbox } = setUp({}, () => false)
  outbox.batch(() => outbox.push('a'))
  outbox.mark()
  log.length = 0
  outbox.batch(() => {
    outbox.release()
    expect(log).toEqual([])
  })
  expect(log).toEqual(['changed', 'a', 'drained'])
})

it('can be drained again after a callback has thrown, and needs no callbacks but one', () => {
  const seen: string[] = []
  const outbox = createOutbox<string>({
    notify: (item) => {
      seen.push(item)
      if (item === 'bad') throw new Error('notify')
    },
  })
  expect(() => outbox.batch(() => outbox.push('bad'))).toThrow('notify')
  outbox.batch(() => outbox.push('good'))
  expect(seen).toEqual(['bad', 'good'])
})
