/** What the page shows of one task: its values, bounded, as long as the journal has it. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { InstanceManager, localInstance, TaskManager } from 'agent-tasks/server'
import type { PageTaskDetail, ValuePiece } from '../../../src/page/wire.js'
import { toOneLine } from '../../../src/data/control-characters.js'
import { startPage } from './test-page.js'

const MIB = 1024 * 1024
const task = (id: string, goalPrompt = 'a goal') => ({ id, subagentName: 'helper', goalPrompt })

async function withTasks(options: { maxBytes?: number; maxTasks?: number } = {}) {
  const manager = new AsyncTaskManager(-1)
  const page = await startPage({ tasks: manager, ...options })
  const detail = async (id: string): Promise<PageTaskDetail> =>
    (await page.get(`tasks/async:${id}`)).body as unknown as PageTaskDetail
  return { manager, ...page, detail }
}

/** Ends tasks until the manager has forgotten this one. */
function forget(manager: AsyncTaskManager, id: string): void {
  manager.markNotified(id)
  for (let index = 0; manager.getTask(id) !== undefined; index += 1) {
    manager.setMaxAsyncTasks(1)
    manager.registerTask(task(`after-${id}-${index}`))
    manager.completeTask(`after-${id}-${index}`, {})
    manager.markNotified(`after-${id}-${index}`)
  }
}

describe('a task', () => {
  it('has its events in order, with what happened', async () => {
    const { manager, detail } = await withTasks()
    manager.launch({ ...task('a'), whenFull: 'queue' }, async (_input, context) => ({
      answer: await context.ask('Which?'),
    }))
    await expect.poll(() => manager.getTask('a')?.questions?.length).toBe(1)
    manager.answerTask('a', 'question-1', { action: 'accept', content: { answer: 'this' } })
    await expect.poll(async () => (await detail('a')).task.state).toBe('completed')
    const lease = manager.lease({ owner: 'main' })
    lease?.release()
    manager.lease({ owner: 'main' })?.acknowledge()
    const { events, result, can, children } = await detail('a')
    expect(events.map(({ event }) => event)).toEqual([
      'started',
      'asked',
      'answered',
      'completed',
      'owed',
      'leased',
      'owed again',
      'leased',
      'delivered',
    ])
    expect(events.map(({ at }) => at)).toEqual(events.map(({ at }) => at).sort((a, b) => a - b))
    expect(JSON.parse(result?.text ?? '')).toEqual({ answer: { action: 'accept', content: { answer: 'this' } } })
    expect([can, children]).toEqual([{ cancel: false, runAgain: true }, undefined])
  })

  it('keeps its result, its error and its cause when its manager has forgotten it', async () => {
    const { manager, detail, get } = await withTasks()
    manager.registerTask(task('a'))
    manager.completeTask('a', { answer: 42 })
    manager.launch(task('b'), () => Promise.reject(new TypeError('no such thing', { cause: new Error('deep below') })))
    await expect.poll(() => manager.getTask('b')?.status).toBe('failed')
    forget(manager, 'a')
    forget(manager, 'b')
    expect(manager.getTask('a')).toBeUndefined()
    expect((await detail('a')).result).toEqual({ type: 'json', text: '{"answer":42}', bytes: 13, isCut: false })
    const { error } = await detail('b')
    expect(error).toMatchObject({ name: 'TypeError', message: { text: 'no such thing' } })
    expect(error?.cause?.text).toMatch(/TypeError: no such thing[^]*Caused by: Error: deep below/)
    expect((await get('tasks/async:b/value/error')).body['text']).toBe('no such thing')
  })

  it('shows an output that is one text as text', async () => {
    const { manager, detail } = await withTasks()
    manager.registerTask(task('a'))
    manager.completeTask('a', { final_message: 'line 1\nline 2 😀' })
    expect((await detail('a')).result).toEqual({ type: 'text', text: 'line 1\nline 2 😀', bytes: 18, isCut: false })
  })

  it('G3: text stays text, whatever is in it: markup, control characters, half a character', async () => {
    const { manager, read, detail } = await withTasks()
    const nasty = '<script>alert(1)</script>\u0000\u001b[2J\u202e\ud800 "quoted" \u2028data: x\n\nevent: y\n\n</style>'
    manager.registerTask({ ...task('a', nasty), subagentName: nasty, owner: nasty })
    manager.failTask('a', nasty)
    const reader = await read()
    await reader.until(({ ready }) => ready !== undefined)
    expect(reader.tasks.get('async:a')).toMatchObject({
      title: nasty,
      subagent: toOneLine(nasty),
      group: nasty,
      error: nasty,
    })
    expect(reader.ready?.owners.map(({ owner }) => owner)).toEqual([nasty])
    const { goal, error } = await detail('a')
    // UTF-8 has no half characters.
    const shown = nasty.replace('\ud800', '\ufffd')
    expect([goal?.text, error?.message.text]).toEqual([shown, nasty])
  })

  it('is read in pieces, on whole characters, to its end', async () => {
    const { manager, get, detail } = await withTasks()
    manager.registerTask(task('a'))
    const text = '0123456789é漢😀'.repeat(100_000)
    manager.completeTask('a', { text })
    const whole = JSON.stringify({ text })
    const { result } = await detail('a')
    expect(result).toMatchObject({ type: 'json', isCut: true, hasMore: true })
    let read = ''
    for (let offset = 0; ;) {
      const piece = (await get(`tasks/async:a/value/result?offset=${offset}`)).body as unknown as ValuePiece
      expect(piece.offset).toBe(offset)
      read += piece.text
      offset += Buffer.byteLength(piece.text)
      if (piece.isEnd) break
    }
    expect(read === whole).toBe(true)
    expect((await get('tasks/async:a/value/result')).body['text'] === whole).toBe(true)
    const inside = (await get('tasks/async:a/value/result?offset=22')).body as unknown as ValuePiece
    expect([inside.offset, inside.text.slice(0, 3)]).toEqual([24, '😀0'])
    expect((await get('tasks/async:a/value/result?offset=999999999')).body).toEqual({
      text: '',
      offset: Buffer.byteLength(whole),
      bytes: Buffer.byteLength(whole),
      isEnd: true,
    })
    expect(await get('tasks/async:a/value/result?offset=-1')).toMatchObject({ status: 400 })
    expect(await get('tasks/async:a/value/nothing?offset=0')).toMatchObject({ status: 404 })
  })

  it('G2: of 100 MB is shown up to the part that was read, and neither copied nor kept whole by the journal', async () => {
    const { manager, detail, get } = await withTasks()
    manager.registerTask(task('a'))
    manager.completeTask('a', { text: 'x'.repeat(100 * MIB) })
    const { result } = await detail('a')
    expect(result).toMatchObject({ isCut: true, hasMore: true })
    expect(result?.text.length).toBe(64 * 1024)
    expect(result?.bytes).toBeLessThan(MIB)
    const piece = (await get(`tasks/async:a/value/result?offset=${5 * MIB}`)).body as unknown as ValuePiece
    expect([piece.text.length, piece.isEnd, piece.hasMore]).toEqual([MIB, false, true])
    expect((await get(`tasks/async:a/value/result?offset=${50 * MIB}`)).body).toMatchObject({
      text: '',
      isEnd: true,
      hasMore: true,
    })
    forget(manager, 'a')
    const kept = await detail('a')
    expect(kept.result?.isCut).toBe(true)
    expect(kept.result?.bytes).toBeLessThanOrEqual(MIB)
  })

  it('G2: whose parts are shared a million million times is shown up to the part that was read', async () => {
    const { manager, detail, get, call } = await withTasks()
    let many: unknown = [1]
    for (let level = 0; level < 40; level += 1) many = [many, many]
    manager.registerTask(task('a'))
    manager.completeTask('a', { many })
    const shown = await detail('a')
    expect(shown.result).toMatchObject({ isCut: true, hasMore: true, type: 'json' })
    expect(shown.result?.text).toHaveLength(64 * 1024)
    expect((await get('tasks/async:a/value/result?offset=65536')).body).toMatchObject({ isEnd: false, hasMore: true })
    expect((await call('tasks/async:a/image/0')).status).toBe(404)
    forget(manager, 'a')
    expect((await detail('a')).result).toMatchObject({ isCut: true })
  })

  it('G2: asks with a schema that is not too large to be sent', async () => {
    const manager = new AsyncTaskManager({ onError: () => undefined })
    const { get } = await startPage({ tasks: manager })
    const large = { type: 'string', default: 'x'.repeat(80_000) }
    const small = { type: 'object', properties: { x: { type: 'string' } } }
    manager.launch(task('a'), async (_input, context) => {
      const asked = [
        context.ask({ message: 'Small?', schema: small }),
        context.ask({ message: 'Large?', schema: { type: 'object', properties: { x: large } } }),
      ]
      await Promise.all(asked)
      return {}
    })
    await expect.poll(() => manager.getTask('a')?.questions?.length).toBe(2)
    const { questions = [] } = (await get('tasks/async:a')).body as unknown as PageTaskDetail
    expect(questions.map(({ message, schema }) => [message, schema])).toEqual([
      ['Small?', small],
      ['Large?', { type: 'object' }],
    ])
    manager.cancelTask('a')
  })

  it('nested deep is shown', async () => {
    const { manager, detail } = await withTasks()
    let deep: unknown = 'the bottom'
    for (let level = 0; level < 10_000; level += 1) deep = [deep]
    manager.registerTask(task('a'))
    manager.completeTask('a', { deep })
    expect((await detail('a')).result?.text).toContain('too deep')
  })

  it('shows its images, and no type that a browser would run', async () => {
    const { manager, detail, call } = await withTasks()
    manager.registerTask(task('a'))
    const png = Buffer.from('89504e470d0a1a0a', 'hex').toString('base64')
    const image = (mimeType: string) => ({ type: 'image', mimeType, data: png })
    manager.completeTask('a', { content: [image('image/png'), image('image/svg+xml'), image('text/html')] })
    expect((await detail('a')).images).toEqual([{ index: 0, mimeType: 'image/png', bytes: 8 }])
    const { status, headers } = await call('tasks/async:a/image/0')
    expect([status, headers.get('content-type'), headers.get('content-length')]).toEqual([200, 'image/png', '8'])
    expect((await call('tasks/async:a/image/1')).status).toBe(404)
    expect((await call('tasks/async:a/image/x')).status).toBe(404)
  })

  it('shows its images when its manager has forgotten it, as long as its result is kept whole', async () => {
    const { manager, detail } = await withTasks()
    const image = { type: 'image', mimeType: 'image/png', data: Buffer.from('89504e47', 'hex').toString('base64') }
    for (const [id, content] of [
      ['a', [image]],
      ['b', [image, 'x'.repeat(2 * MIB)]],
    ] as const) {
      manager.registerTask(task(id))
      manager.completeTask(id, { content })
      forget(manager, id)
    }
    expect((await detail('a')).images).toHaveLength(1)
    expect((await detail('b')).images).toBeUndefined()
  })

  it('has the beginning of a long error and of a long command when its manager has forgotten it', async () => {
    const { manager, detail } = await withTasks()
    const words = ['echo', 'x'.repeat(30_000)]
    manager.launch({ ...task('a', 'echo'), kind: 'command', command: words }, () =>
      Promise.reject(Object.assign(new Error('漢'.repeat(100_000)), { code: 'c'.repeat(1000) })),
    )
    manager.launch({ ...task('b', 'echo'), kind: 'command', command: ['echo', 'y'] }, () => ({}))
    await expect.poll(() => manager.getTask('b')?.status).toBe('completed')
    const before = await detail('a')
    expect(before.error?.message).toMatchObject({ text: '漢'.repeat(20_000), isCut: true })
    expect(before.program?.command).toEqual(['echo', 'x'.repeat(19_996), '…'])
    forget(manager, 'a')
    forget(manager, 'b')
    const after = await detail('a')
    expect(after.error?.message).toMatchObject({ text: '漢'.repeat(20_000), isCut: true })
    expect(after.error?.code).toBe('c'.repeat(200))
    expect(after.program?.command).toEqual(before.program?.command)
    expect([before, after].map(({ copyAs }) => copyAs.typescript)).toEqual(
      Array.from({ length: 2 }, () => '// The command is too long to copy.'),
    )
    const short = await detail('b')
    expect(short.program?.command).toEqual(['echo', 'y'])
    expect(short.copyAs.typescript).toContain('"command":"echo"')
  })

  it('shows its output as it comes', async () => {
    const { manager, get } = await withTasks()
    manager.registerTask(task('a'))
    manager.appendOutput('a', 'one ')
    expect((await get('tasks/async:a/output')).body).toEqual({ text: 'one ', cursor: 4, dropped: 0, isEnd: false })
    manager.appendOutput('a', 'x'.repeat(100_000))
    expect((await get('tasks/async:a/output?cursor=4')).body).toMatchObject({ dropped: 34_464, cursor: 100_004 })
    manager.cancelTask('a')
    expect((await get('tasks/async:a/output?cursor=100004')).body).toEqual({
      text: '',
      cursor: 100_004,
      dropped: 0,
      isEnd: true,
    })
    expect((await get('tasks/async:a/output?cursor=x')).status).toBe(400)
  })

  it('that is unknown is not found', async () => {
    const { get } = await withTasks()
    expect(await get('tasks/async:a')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
    expect(await get('tasks/async:a/anything')).toMatchObject({ status: 404 })
  })
})

describe('a command task', () => {
  it('shows its commands with their arguments, results and errors, also when its manager has forgotten it', async () => {
    const instances = new InstanceManager()
    instances.connect(
      localInstance({
        id: 'calc',
        tools: [
          { name: 'add', execute: (input: unknown) => input },
          { name: 'break', execute: () => Promise.reject(new Error('it broke')) },
        ],
      }),
    )
    const taskManager = new TaskManager({ instances, maxRetained: 1 })
    const { get, read } = await startPage({ taskManager, restUrl: 'http://127.0.0.1:3300' })
    const submit = (): string => {
      const commands = [
        { tool_name: 'add', args: { a: 1, quote: "it's" } },
        { tool_name: 'break', args: {} },
        { tool_name: 'add', args: {} },
      ]
      const submitted = taskManager.submitTask({ type: 'task_submit', task_name: 'Sum', commands })
      return 'taskId' in submitted ? submitted.taskId : submitted.error
    }
    const id = submit()
    const reader = await read()
    await reader.until(({ tasks }) => tasks.get(`command:${id}`)?.state === 'failed')
    expect(reader.tasks.get(`command:${id}`)).toMatchObject({ title: 'Sum', group: 'calc', commandCount: 3 })
    const detail = (await get(`tasks/command:${id}`)).body as unknown as PageTaskDetail
    expect(detail.commands).toMatchObject([
      { tool: 'add', state: 'completed', args: { text: `{"a":1,"quote":"it's"}` }, result: { type: 'json' } },
      { tool: 'break', state: 'failed', error: expect.stringContaining('it broke') as unknown },
      { tool: 'add', state: 'skipped' },
    ])
    expect(detail.copyAs.curl).toContain(`'http://127.0.0.1:3300/tasks'`)
    expect(detail.copyAs.curl).toContain(`it'\\''s`)
    expect(detail.events.map(({ event }) => event)).toEqual([
      'queued',
      'started',
      'command running',
      'command completed',
      'command running',
      'command failed',
      'failed',
    ])
    const other = submit()
    await reader.until(({ tasks }) => tasks.get(`command:${other}`)?.state === 'failed')
    expect(taskManager.getTask(id)).toBeUndefined()
    const kept = (await get(`tasks/command:${id}`)).body as unknown as PageTaskDetail
    expect(kept.commands).toMatchObject([
      { result: detail.commands?.[0]?.result },
      { error: expect.stringContaining('it broke') as unknown },
      {},
    ])
    expect(kept.can.runAgain).toBe(true)
    expect((await get(`tasks/command:${id}/output`)).status).toBe(404)
    reader.close()
    await taskManager.dispose()
    await instances.dispose()
  })
})
