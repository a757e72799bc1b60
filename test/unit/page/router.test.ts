/** The addresses of the page: each is exact, and says what is wrong with one that is nearly right. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { startPage } from './test-page.js'

async function withTask() {
  const manager = new AsyncTaskManager()
  manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'x' })
  manager.completeTask('a', { content: [{ type: 'image', mimeType: 'image/png', data: 'AAAA' }] })
  return { manager, ...(await startPage({ tasks: manager })) }
}

describe('an address', () => {
  it.each([
    'tasks/async:a',
    'tasks/async:a/output',
    'tasks/async:a/output?cursor=0',
    'tasks/async:a/image/0',
    'tasks/async:a/value/goal',
    'tasks/async:a/value/goal?offset=1',
  ])('%s is one', async (path) => {
    const { get } = await withTask()
    expect((await get(path)).status).toBe(200)
  })

  it.each([
    '',
    'nothing',
    'constructor',
    'events/',
    'events/more',
    'tasks',
    'tasks/',
    'tasks/async:none',
    'tasks/async:a/',
    'tasks/async:a/constructor',
    'tasks/async:a/output/',
    'tasks/async:a/output/more',
    'tasks/async:a/image',
    'tasks/async:a/image/',
    'tasks/async:a/image/0x0',
    'tasks/async:a/image/1e0',
    'tasks/async:a/image/0/more',
    'tasks/async:a/value',
    'tasks/async:a/value/',
    'tasks/async:a/value/goal/',
    'tasks/async:a/value/constructor',
  ])('%j is none', async (path) => {
    const { get } = await withTask()
    const { status, body } = await get(path)
    expect([status, body]).toEqual([
      404,
      { error: expect.stringMatching(/^There is no /) as unknown, code: 'NOT_FOUND' },
    ])
  })

  it.each([
    ['events?x=1', 'Query parameter "x": expected no parameters.'],
    ['tasks/async:a?offset=1', 'Query parameter "offset": expected no parameters.'],
    ['tasks/async:a/image/0?offset=1', 'Query parameter "offset": expected no parameters.'],
    ['tasks/async:a/output?offset=1', 'Query parameter "offset": expected only cursor, once.'],
    ['tasks/async:a/output?cursor=1&cursor=2', 'Query parameter "cursor": expected only cursor, once.'],
    ['tasks/async:a/output?cursor=-1', 'Query parameter cursor: got "-1", expected an integer >= 0.'],
    ['tasks/async:a/value/goal?offset=1&x', 'Query parameter "x": expected only offset, once.'],
    ['tasks/async:a/value/goal?offset=1e3', 'Query parameter offset: got "1e3", expected an integer >= 0.'],
    [`tasks/async:a?${'x'.repeat(100)}`, `Query parameter "${'x'.repeat(40)}": expected no parameters.`],
  ])('with the parameters of %.60s is refused in words', async (path, error) => {
    const { get } = await withTask()
    expect(await get(path)).toMatchObject({ status: 400, body: { error, code: 'INVALID_INPUT' } })
  })

  it('of an action takes no parameters', async () => {
    const { post } = await withTask()
    expect(await post('tasks/async:a/run-again?x=1')).toMatchObject({
      status: 400,
      body: { error: 'Query parameter "x": expected no parameters.' },
    })
  })
})

describe('a method', () => {
  it.each(['HEAD', 'PUT', 'DELETE', 'OPTIONS'])('%s is refused under /api', async (method) => {
    const { raw, authorization } = await withTask()
    const { status, text, headers } = await raw('/api/tasks/async:a', { authorization }, method)
    expect([status, headers['cache-control']]).toEqual([405, 'no-store'])
    if (method !== 'HEAD') expect(JSON.parse(text)).toEqual({ error: 'Use GET or POST.', code: 'METHOD_NOT_ALLOWED' })
  })

  it.each(['POST', 'PUT', 'OPTIONS'])('%s is refused for a file', async (method) => {
    const { raw } = await withTask()
    const { status, text } = await raw('/', {}, method)
    expect([status, JSON.parse(text)]).toEqual([
      405,
      { error: 'The files of the page can only be read: use GET or HEAD.', code: 'METHOD_NOT_ALLOWED' },
    ])
  })
})

it.each(['tasks/%E0%A4%A', 'tasks/%', 'tasks/async:a/value/%FF'])(
  'an address that cannot be decoded, such as %s, is none, whatever the method',
  async (path) => {
    const { get, post } = await withTask()
    const none = { error: 'There is no such address.', code: 'NOT_FOUND' }
    expect([(await get(path)).body, (await post(path)).body]).toEqual([none, none])
  },
)

it('an address is decoded after it is split: a name may have a slash or a percent sign', async () => {
  const { manager, get } = await withTask()
  for (const id of ['b/c', 'd%41']) {
    manager.registerTask({ id, subagentName: 'helper', goalPrompt: 'x' })
    const { status, body } = await get(`tasks/${encodeURIComponent(`async:${id}`)}`)
    expect([status, body]).toMatchObject([200, { task: { id } }])
  }
})

it('a body that is too large is refused, and its connection closed only when it was not read to its end', async () => {
  const { post, raw, authorization } = await withTask()
  const read = await post('tasks/async:a/cancel', 'x'.repeat(1024 * 1024 + 1))
  expect([read.status, read.body]).toEqual([
    413,
    { error: 'The body of the request is too large: it may have at most 1048576 bytes.', code: 'TOO_LARGE' },
  ])
  expect(read.headers.get('connection')).toBe('keep-alive')
  expect((await post('tasks/async:a/cancel', ' '.repeat(1024 * 1024 - 2) + '{}')).status).toBe(409)
  // Nothing of it is sent.
  const declared = { authorization, connection: 'keep-alive', 'content-length': '100000000' }
  const unread = await raw('/api/tasks/async:a/cancel', declared, 'POST')
  expect(unread).toMatchObject({ status: 413, headers: { connection: 'close' } })
})

it('a request that fails is answered, and reported once', async () => {
  const failures: unknown[] = []
  const manager = new AsyncTaskManager()
  manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'x' })
  const { get } = await startPage({ tasks: manager, onError: (...failure) => failures.push(failure) })
  manager.readOutput = () => {
    throw new Error('unreadable')
  }
  expect(await get('tasks/async:a/output')).toMatchObject({ status: 500, body: { code: 'INTERNAL' } })
  expect(failures).toEqual([[new Error('unreadable'), { source: 'page' }]])
})

it('the output of a task that its manager has forgotten is the end of it', async () => {
  const manager = new AsyncTaskManager({ maxAsyncTasks: 1 })
  const { get } = await startPage({ tasks: manager })
  manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'x' })
  manager.appendOutput('a', 'the end')
  manager.cancelTask('a')
  manager.markNotified('a')
  for (let index = 0; manager.getTask('a') !== undefined; index += 1) {
    manager.registerTask({ id: `b${index}`, subagentName: 'helper', goalPrompt: 'x' })
    manager.completeTask(`b${index}`, {})
    manager.markNotified(`b${index}`)
  }
  expect((await get('tasks/async:a/output')).body).toMatchObject({ text: 'the end', isEnd: true })
  expect((await get('tasks/async:a/output?cursor=7')).body).toMatchObject({ text: '', cursor: 7, isEnd: true })
})

it('the output of an ended task is read to its end, and only its last piece is the end', async () => {
  const manager = new AsyncTaskManager({ maxAsyncTasks: 1, outputBytes: 200_000 })
  const { get } = await startPage({ tasks: manager })
  const written = 'x'.repeat(100_000)
  manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'x' })
  manager.appendOutput('a', written)
  const readAll = async () => {
    const pieces: { text: string; cursor: number; isEnd: boolean }[] = []
    do {
      const { body } = await get(`tasks/async:a/output?cursor=${pieces.at(-1)?.cursor ?? 0}`)
      pieces.push(body as unknown as (typeof pieces)[number])
    } while (pieces.at(-1)!.text !== '' && !pieces.at(-1)!.isEnd && pieces.length < 10)
    return { text: pieces.map(({ text }) => text).join(''), ends: pieces.map(({ isEnd }) => isEnd) }
  }
  // What runs may write more.
  expect((await readAll()).ends).toEqual([false, false, false])
  manager.completeTask('a', {})
  const { text, ends } = await readAll()
  expect([text === written, ends]).toEqual([true, [false, true]])
})
