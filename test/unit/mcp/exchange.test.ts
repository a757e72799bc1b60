/** Whether an HTTP response was written out. */
import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { httpExchange } from '../../../src/mcp/exchange.js'

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
})
