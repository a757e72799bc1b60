/** Errors of REST requests without a valid answer. */
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ConnectionError, TaskServerError } from '../../../src/client/client-errors.js'
import type { FetchLike } from '../../../src/client/platform.js'
import { callRest } from '../../../src/client/rest.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

const schema = z.object({ ok: z.boolean() })

const clock = createManualClock()
const call = (fetch: FetchLike, signal = new AbortController().signal): Promise<unknown> =>
  callRest(
    { baseUrl: 'http://127.0.0.1:1', token: undefined, fetch, signal, clock, timeoutMs: 1000 },
    '/health',
    schema,
  ).catch((error: unknown) => error)
const answer =
  (status: number, text: string): FetchLike =>
  () =>
    Promise.resolve({ ok: status < 400, status, text: () => Promise.resolve(text) })
const refuse =
  (reason: unknown): FetchLike =>
  () =>
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- a fetch may reject with anything
    Promise.reject(reason)

afterEach(() => expect(clock.pending).toBe(0))

describe('a call of a REST route', () => {
  it('fails when there is no answer within its time limit', async () => {
    const never: FetchLike = (_url, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => reject(new Error('aborted')))
      })
    const failed = call(never)
    clock.advance(1000)
    expect(await failed).toMatchObject({
      code: 'REQUEST_TIMEOUT',
      message: 'http://127.0.0.1:1/health did not answer within 1000 ms.',
    })
  })

  it.each([
    [
      'says why there is no answer',
      new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') }),
      'fetch failed: ECONNREFUSED',
    ],
    ['says what it can without a cause', new TypeError('fetch failed', { cause: 'unknown' }), 'fetch failed'],
    ['says what was thrown when it is no error', 'out of sockets', 'out of sockets'],
  ])('%s', async (_what, reason, why) => {
    const error = await call(refuse(reason))
    expect(error).toBeInstanceOf(ConnectionError)
    expect(error).toMatchObject({
      code: 'CONNECTION_FAILED',
      message: `Cannot reach http://127.0.0.1:1/health (${why}).`,
    })
  })

  it('rejects with the abort reason when it is aborted', async () => {
    const reason = new Error('called off')
    expect(await call(refuse(new DOMException('aborted', 'AbortError')), AbortSignal.abort(reason))).toBe(reason)
  })

  it('distinguishes errors of the server from those of another program', async () => {
    expect(await call(answer(200, '{"ok":true}'))).toEqual({ ok: true })
    expect(await call(answer(200, '<html>'))).toMatchObject({ code: 'BAD_ANSWER' })
    const refused = await call(answer(409, '{"error":"taken","code":"IN_USE"}'))
    expect(refused).toBeInstanceOf(TaskServerError)
    expect(refused).toMatchObject({ code: 'IN_USE', message: 'taken' })
    expect(await call(answer(502, 'Bad gateway'))).toMatchObject({
      code: 'HTTP_502',
      message: 'http://127.0.0.1:1/health answered with the HTTP status 502.',
    })
  })
})
