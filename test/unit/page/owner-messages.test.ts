// The last messages of an owner, at their limits.
import { expect, it } from 'vitest'
import { OwnerMessages } from '../../../src/page/owner-messages.js'

function createSubject() {
  const messages = new OwnerMessages()
  const note = (key: string, deliveryId: string, from: string, to: string, at = 1): void =>
    messages.note(key, deliveryId, { from, to, at } as never)
  const carry = (key: string, deliveryId: string): void => note(key, deliveryId, 'owed', 'leased')
  return { messages, note, carry }
}

it('a message is open until it has ended, accepted or released, and keeps the time of its end', () => {
  const { messages, note } = createSubject()
  note('a', 'd1', 'owed', 'leased', 1)
  note('b', 'd2', 'owed', 'leased', 2)
  note('a', 'd1', 'leased', 'delivered', 3)
  note('b', 'd2', 'leased', 'owed', 4)
  note('a', 'd1', 'delivered', 'owed', 9)
  expect(messages.shown()).toEqual([
    { deliveryId: 'd2', at: 2, endedAt: 4, outcome: 'released', tasks: ['b'] },
    { deliveryId: 'd1', at: 1, endedAt: 3, outcome: 'released', tasks: ['a'] },
  ])
})

it('there are 50 messages, the newest first, and 50 tasks of each, each once', () => {
  const { messages, carry } = createSubject()
  for (let at = 0; at < 50; at += 1) carry('k', `d${at}`)
  expect(messages.size).toBe(50)
  carry('k', 'd50')
  expect([messages.size, messages.shown()[0]?.deliveryId, messages.shown().at(-1)?.deliveryId]).toEqual([
    50,
    'd50',
    'd1',
  ])
  for (let at = 0; at < 60; at += 1) carry(`k${at}`, 'd50')
  carry('k1', 'd50')
  const [newest] = messages.shown()
  expect(newest?.tasks).toEqual(['k', ...Array.from({ length: 49 }, (_, at) => `k${at}`)])
})

it('a message has at most 4 KiB, and all have 16 KiB: the room of one that goes is free again', () => {
  const { messages, carry } = createSubject()
  const key = (at: number): string => `${at}`.padStart(992, '0')
  // 200 and 2 bytes of the message, and 1,000 for each task.
  for (let at = 0; at < 9; at += 1) carry(key(at), 'd0')
  expect(messages.shown()[0]?.tasks).toHaveLength(3)
  for (let message = 1; message <= 30; message += 1) {
    for (let at = 0; at < 3; at += 1) carry(key(at), `d${message}`)
    expect(messages.size).toBe(Math.min(message + 1, 5))
  }
  expect(messages.shown().map(({ deliveryId }) => deliveryId)).toEqual(['d30', 'd29', 'd28', 'd27', 'd26'])
})
