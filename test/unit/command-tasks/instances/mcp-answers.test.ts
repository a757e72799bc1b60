/** Which calls of an MCP connection are answered, and that nothing is kept of those that are over. */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { describe, expect, it, vi } from 'vitest'
import { watchAnswers } from '../../../../src/command-tasks/instances/mcp-answers.js'

function open() {
  const sent: [JSONRPCMessage, Parameters<Transport['send']>[1]][] = []
  const transport: Transport = {
    start: () => Promise.resolve(),
    send: (message, options) => Promise.resolve(void sent.push([message, options])),
    close: () => Promise.resolve(),
  }
  const answers = watchAnswers(transport)
  /** Sends a call that is watched. Returns how it was answered, and its progress. */
  const call = (id: number) => {
    const args = {}
    const [settled, progress] = [vi.fn(), vi.fn()]
    const answer = answers.expect(args, progress)
    void answer.arrived.then(settled)
    const again = () =>
      transport.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 't', arguments: args } })
    void again()
    return { settled, progress, release: () => answer.release(), again }
  }
  const receive = (message: object): void => transport.onmessage?.({ jsonrpc: '2.0', ...message } as JSONRPCMessage)
  const report = (progressToken: number): void =>
    receive({ method: 'notifications/progress', params: { progressToken, progress: 1 } })
  return { sent, transport, answers, call, receive, report }
}

const result = { content: [] }

describe('a call that is watched', () => {
  it('is answered once, with its own result, and reports nothing after that', async () => {
    const { call, receive, report } = open()
    const [first, second] = [call(1), call(2)]
    report(2)
    receive({ id: 2, result })
    receive({ id: 2, result: { content: [{ type: 'text', text: 'again' }] } })
    report(2)
    report(1)
    await Promise.resolve()
    expect(second.settled.mock.calls).toEqual([[{ type: 'result', result }]])
    expect(second.progress).toHaveBeenCalledOnce()
    expect([first.settled.mock.calls, first.progress.mock.calls.length]).toEqual([[], 1])
  })

  it.each([
    ['an error', { error: { code: -32_000, message: 'no' } }, { type: 'error' }],
    ['no result of a tool', { result: { content: 'text' } }, { type: 'error' }],
  ])('may be answered with %s', async (_what, answer, expected) => {
    const { call, receive } = open()
    const { settled } = call(1)
    receive({ id: 1, ...answer })
    await Promise.resolve()
    expect(settled.mock.calls).toEqual([[expected]])
  })

  it('is forgotten when nobody waits any more', async () => {
    const { call, receive, report, answers, sent } = open()
    const { settled, progress, release, again } = call(1)
    release()
    report(1)
    receive({ id: 1, result })
    answers.end()
    await Promise.resolve()
    expect([settled.mock.calls, progress.mock.calls]).toEqual([[], []])
    // Its arguments are those of any other request now.
    void again()
    expect(sent.at(-1)?.[1]).toBeUndefined()
  })

  it('has no answer when its stream has ended without one, or the connection has', async () => {
    const { call, sent, answers, report } = open()
    const [first, second, third] = [call(1), call(2), call(3)]
    sent[0]?.[1]?.onRequestStreamEnd?.()
    await Promise.resolve()
    expect([first, second].map(({ settled }) => settled.mock.calls)).toEqual([[[{ type: 'none' }]], []])
    answers.end()
    await Promise.resolve()
    for (const { settled } of [first, second, third]) expect(settled.mock.calls).toEqual([[{ type: 'none' }]])
    report(3)
    expect(third.progress).not.toHaveBeenCalled()
  })

  it('tells whoever sends it of the end of its stream, and passes on what else was asked', () => {
    const { answers, sent, transport } = open()
    const args = {}
    answers.expect(args, () => undefined)
    const onRequestStreamEnd = vi.fn()
    void transport.send(
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { arguments: args } },
      { resumptionToken: 'r', onRequestStreamEnd },
    )
    expect(sent[0]?.[1]).toMatchObject({ resumptionToken: 'r' })
    sent[0]?.[1]?.onRequestStreamEnd?.()
    expect(onRequestStreamEnd).toHaveBeenCalledOnce()
  })
})
