// When results are known to have arrived: which answers confirm which owner, and which owners are remembered.
import { expect, it, vi } from 'vitest'
import { Confirmations } from '../../../src/mcp/confirmations.js'
import { earlierText } from '../../../src/mcp/result-marks.js'

function createSubject() {
  const confirmOwner = vi.fn((_owner: string) => undefined)
  const registry = { persistence: { confirmOwner }, batch: (work: () => void) => work() }
  const confirmations = new Confirmations({ reads: registry } as never)
  const confirmed = () => confirmOwner.mock.calls.splice(0).map(([owner]) => owner)
  return { confirmations, confirmed, registry }
}

it('an answer to a call that was made after the results were written confirms them, once', () => {
  const { confirmations, confirmed } = createSubject()
  const before = confirmations.begin()
  confirmations.noteWritten('alice')
  confirmations.confirm('alice', before)
  expect(confirmed()).toEqual([])
  const after = confirmations.begin()
  confirmations.confirm('bob', after)
  confirmations.confirm('alice', after)
  confirmations.confirm('alice', after)
  expect(confirmed()).toEqual(['alice'])
})

it('later results of an owner have to be confirmed by a later call', () => {
  const { confirmations, confirmed } = createSubject()
  confirmations.noteWritten('alice')
  const between = confirmations.begin()
  confirmations.noteWritten('alice')
  confirmations.confirm('alice', between)
  expect(confirmed()).toEqual([])
  confirmations.confirm('alice', confirmations.begin())
  expect(confirmed()).toEqual(['alice'])
})

it('nothing is confirmed for an owner that is gone, for anonymous clients, or without a store', () => {
  const { confirmations, confirmed, registry } = createSubject()
  for (const owner of ['gone', 'anonymous']) confirmations.noteWritten(owner)
  confirmations.forget('gone')
  Object.assign(registry, { persistence: undefined })
  confirmations.noteWritten('alice')
  const begun = confirmations.begin()
  for (const owner of ['gone', 'anonymous', 'alice']) confirmations.confirm(owner, begun)
  expect(confirmed()).toEqual([])
})

it('10,000 owners are remembered, of more those to whom something was written last', () => {
  const { confirmations, confirmed } = createSubject()
  for (let at = 0; at < 10_000; at += 1) confirmations.noteWritten(`owner ${at}`)
  confirmations.noteWritten('owner 0')
  confirmations.noteWritten('another')
  const begun = confirmations.begin()
  for (const owner of ['owner 0', 'owner 1', 'owner 2', 'another']) confirmations.confirm(owner, begun)
  expect(confirmed()).toEqual(['owner 0', 'owner 2', 'another'])
})

it('the tasks of an earlier session are named up to twenty, and more are counted', () => {
  const ids = Array.from({ length: 21 }, (_, at) => `t${at}`)
  expect(earlierText(ids.slice(0, 20))).toBe(`From an earlier server of this session: ${ids.slice(0, 20).join(', ')}.`)
  expect(earlierText(ids)).toBe(`From an earlier server of this session: ${ids.slice(0, 20).join(', ')} and 1 more.`)
})
