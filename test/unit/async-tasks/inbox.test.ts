/** The messages of a run, and of the run that follows it: F5. */
import { expect, it } from 'vitest'
import { Inbox, MAX_WAITING_BYTES, MAX_WAITING_MESSAGES } from '../../../src/features/questions/inbox.js'

const reader = (inbox: Inbox) => inbox.open()[Symbol.asyncIterator]()

it('F5: the loop of an earlier run that is left does not close the inbox of the next run', async () => {
  const inbox = new Inbox()
  const earlier = reader(inbox)
  const waiting = earlier.next()
  const next = reader(inbox)
  expect(await waiting).toEqual({ done: true, value: undefined })
  expect(await earlier.return?.()).toEqual({ done: true, value: undefined })
  expect(inbox.accept('hello')).toBeUndefined()
  expect(await earlier.next()).toEqual({ done: true, value: undefined })
  expect(await next.next()).toEqual({ done: false, value: 'hello' })
  await next.return?.()
  expect(inbox.accept('late')).toBe('closed')
})

it('F5: what is taken or dropped makes room again', async () => {
  const inbox = new Inbox()
  const run = reader(inbox)
  const half = 'x'.repeat(MAX_WAITING_BYTES / 2)
  expect([half, half, 'y'].map((message) => inbox.accept(message))).toEqual([undefined, undefined, 'full'])
  await run.next()
  expect(inbox.accept(half)).toBeUndefined()
  inbox.close()
  reader(inbox)
  const refusals = Array.from({ length: MAX_WAITING_MESSAGES + 1 }, () => inbox.accept('z'))
  expect(refusals.findIndex((refusal) => refusal === 'full')).toBe(MAX_WAITING_MESSAGES)
})
