/** Whether an answer was written out, over HTTP and over stdio. */
import { EventEmitter, getEventListeners, once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, Writable } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AnsweringStdioTransport, httpExchange } from '../../../src/mcp/exchange.js'

/** One request, its answer as the client sees it, and the end of its exchange as the server does. */
async function exchange(answer: (response: ServerResponse) => void) {
  const outcomes: boolean[] = []
  const server = createServer((_request, response) => {
    httpExchange(response).onEnd((isWritten) => outcomes.push(isWritten))
    answer(response)
  }).listen(0, '127.0.0.1')
  const served = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const request = get(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  request.on('error', () => undefined)
  const [reply] = (await once(request, 'response')) as [IncomingMessage]
  return { outcomes, reply, response: (await served)[1] }
}

describe('the exchange of an HTTP request', () => {
  it('ends written when all of the response was', async () => {
    const { outcomes, reply, response } = await exchange((answer) => answer.end('done'))
    reply.resume()
    await once(reply, 'end')
    if (!response.closed) await once(response, 'close')
    expect(outcomes).toEqual([true])
  })

  it.each([
    ['before its end', (answer: ServerResponse) => void answer.write('x')],
    ['while its end waits to be sent', (answer: ServerResponse) => void answer.end('x'.repeat(50_000_000))],
  ])('ends lost when the connection closes %s', async (_when, answer) => {
    const { outcomes, reply, response } = await exchange(answer)
    reply.destroy()
    if (!response.closed) await once(response, 'close')
    expect(outcomes).toEqual([false])
  })

  it('is lost from its beginning when the connection has closed before', () => {
    const response = Object.assign(new EventEmitter(), { destroyed: true, socket: null })
    const exchange = httpExchange(response as unknown as ServerResponse)
    const ends: boolean[] = []
    exchange.onEnd((isWritten) => ends.push(isWritten))
    expect([ends, exchange.lost.aborted]).toEqual([[false], true])
  })
})

describe('an exchange over stdio', () => {
  /** A transport whose output takes nothing until the test says so. */
  const open = async () => {
    const writes: (() => void)[] = []
    const output = new Writable({ highWaterMark: 1, write: (_chunk, _encoding, done) => void writes.push(done) })
    const transport = new AnsweringStdioTransport(new PassThrough(), output)
    await transport.start()
    onTestFinished(() => transport.close())
    const ask = (id: number, signal: AbortSignal = new AbortController().signal) => {
      const exchange = transport.exchangeOf({ mcpReq: { id, signal } } as never)
      const ends: boolean[] = []
      exchange.onEnd((isWritten) => ends.push(isWritten))
      return { exchange, ends }
    }
    const answer = (id: number) => transport.send({ jsonrpc: '2.0', id, result: {} })
    return { transport, writes, ask, answer }
  }

  it('ends unwritten when its request was cancelled, before it began or later, and never again', async () => {
    const { ask, answer, writes } = await open()
    const early = ask(1, AbortSignal.abort())
    expect([early.ends, early.exchange.lost.aborted]).toEqual([[false], true])
    const caller = new AbortController()
    const later = ask(2, caller.signal)
    expect(later.ends).toEqual([])
    caller.abort()
    expect([later.ends, later.exchange.lost.aborted]).toEqual([[false], true])
    const sent = answer(2)
    writes.shift()?.()
    await sent
    expect(later.ends).toEqual([false])
  })

  it('ends written when its answer was, and its request is not listened to any more', async () => {
    const { ask, answer, writes } = await open()
    const caller = new AbortController()
    const { exchange, ends } = ask(1, caller.signal)
    expect(getEventListeners(caller.signal, 'abort')).toHaveLength(1)
    const sent = answer(1)
    expect(ends).toEqual([])
    writes.shift()?.()
    await sent
    expect([ends, exchange.lost.aborted]).toEqual([[true], false])
    expect(getEventListeners(caller.signal, 'abort')).toEqual([])
    // Called at once when it has ended.
    const late: boolean[] = []
    exchange.onEnd((isWritten) => late.push(isWritten))
    expect(late).toEqual([true])
  })

  it('ends unwritten when the transport closes, while its answer waits to be written as well', async () => {
    const { transport, ask, answer } = await open()
    const [first, second] = [ask(1), ask(2)]
    void answer(1)
    await transport.close()
    expect([first.ends, second.ends]).toEqual([[false], [false]])
    expect(first.exchange.lost.aborted).toBe(true)
  })
})
