/** wait_for_async_tasks waits until tasks have ended, and what it returns is delivered. */
import { boundParts } from '../../../src/tools/wait-texts.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { AsyncTaskReminderService } from '../../../src/features/delivery/reminder-service.js'
import { InvalidSettingError } from '../../../src/errors.js'
import { createCheckAsyncTasksTool, type CheckAsyncTasksParams } from '../../../src/tools/check-async-tasks.js'
import {
  createWaitForAsyncTasksTool,
  type WaitForAsyncTasksOptions,
  type WaitForAsyncTasksParams,
} from '../../../src/tools/wait-for-async-tasks.js'
import { buildInvocation } from '../../../src/tools/declarative-tool.js'
import { setUpHost, settle } from './tool-host.js'
import { pushSubscribers } from '../../../src/features/delivery/push-subscribers.js'

function setUp(options: Partial<WaitForAsyncTasksOptions> & { maxAsyncTasks?: number } = {}) {
  const { maxAsyncTasks = 5, ...rest } = options
  const host = setUpHost({ maxAsyncTasks })
  const tool = createWaitForAsyncTasksTool({ getAsyncTaskManager: host.getAsyncTaskManager, ...rest })
  const call = (input: WaitForAsyncTasksParams = {}, signal?: AbortSignal) => tool.execute(input, { signal })
  return { ...host, call }
}

const ended = (id: string, payload: object, subagent = 'helper') =>
  `Task ${id} (subagent '${subagent}', goal "do it"):\n${JSON.stringify({ agent_id: id, ...payload }, null, 2)}`

/** Without the empty variables that a reminder has. */
const completed = (id: string, message: string) => ended(id, { final_message: message })

describe('waiting', () => {
  it('A5: for all returns every end in one message, which delivers them', async () => {
    const { call, manager, register } = setUp()
    manager.registry.use(pushSubscribers).add('main')
    register('a')
    register('b')
    const waiting = call()
    manager.failTask('b', 'no network')
    expect(manager.getPendingNotifications()).toEqual([])
    await settle()
    manager.completeTask('a', { final_message: 'done' })
    expect(await waiting).toEqual({
      llmContent: [
        '2 of 2 async task(s) ended:',
        completed('a', 'done'),
        ended('b', { status: 'failed', error: 'no network' }),
      ].join('\n\n'),
      returnDisplay: '2 of 2 async task(s) ended, 0 still running',
      metadata: { settled: ['a', 'b'], pending: [] },
      deliveryIds: ['wait-1'],
    })
    expect(manager.getAllTasks().map((task) => task.delivery)).toEqual(['delivered', 'delivered'])
    expect(new AsyncTaskReminderService(manager).leaseReminder()).toBeUndefined()
  })

  it('for any returns at the first end, and says what still runs and what to do', async () => {
    const { call, clock, manager, register } = setUp()
    register('researcher-a1', { subagentName: 'researcher' })
    register('coder-b2', { subagentName: 'coder' })
    const waiting = call({ mode: 'any' })
    clock.advance(2_000)
    manager.cancelTask('coder-b2')
    const { llmContent, metadata } = await waiting
    expect(llmContent.split('\n\n')).toEqual([
      '1 of 2 async task(s) ended:',
      ended('coder-b2', { status: 'cancelled' }, 'coder'),
      '1 async task(s) still running:\n- [research] researcher (2s) - do it',
      'Wait again with wait_for_async_tasks, look at one with check_async_tasks, or continue with other work.',
    ])
    expect(metadata).toEqual({ settled: ['coder-b2'], pending: ['researcher-a1'] })
  })

  it('ends at its timeout, with the tasks that have ended by then', async () => {
    const { call, clock, manager, register } = setUp()
    register('a')
    register('b')
    const waiting = call({ timeout_seconds: 5 })
    manager.completeTask('a', { final_message: 'done' })
    clock.advance(5_000)
    const { llmContent, error } = await waiting
    expect(error).toBeUndefined()
    expect(llmContent).toMatch(
      /^1 of 2 async task\(s\) ended:\n\nTask a [^]*\}\n\n1 async task\(s\) still running:\n- \[b\]/,
    )
    expect(clock.pending).toBe(0)
  })

  it('says that nothing ended in time, by default 45 seconds', async () => {
    const { call, clock, register } = setUp()
    register('a')
    const waiting = call()
    clock.advance(44_999)
    expect(clock.pending).toBe(1)
    clock.advance(1)
    expect(clock.pending).toBe(0)
    expect((await waiting).llmContent).toMatch(/^0 of 1 async task\(s\) ended within 45 s\.\n\n1 async task\(s\)/)
  })

  it('is cut to its limit, with a note', async () => {
    const { call, clock, register } = setUp()
    register('a')
    const waiting = call({ timeout_seconds: 601 })
    clock.advance(600_000)
    expect((await waiting).llmContent).toMatch(/timeout_seconds was cut to the limit of 600 \(asked: 601\)\.$/)
  })

  it('is cut to a limit below the default', async () => {
    const { call, clock, register } = setUp({ maxWaitSeconds: 5 })
    register('a')
    const waiting = call()
    clock.advance(5_000)
    const { llmContent } = await waiting
    expect(llmContent).toContain('within 5 s.')
    expect(llmContent).not.toContain('was cut')
  })

  it('with a timeout of 0 returns at once', async () => {
    const { call, clock, register } = setUp()
    register('a')
    const waiting = call({ timeout_seconds: 0 })
    clock.advance(0)
    expect((await waiting).metadata).toEqual({ settled: [], pending: ['a'] })
  })

  it('without ids is for running tasks and for results that are owed', async () => {
    const { call, manager, register } = setUp()
    for (const id of ['delivered', 'owed', 'cancelled', 'running']) register(id)
    manager.completeTask('delivered', {})
    manager.markNotified('delivered')
    manager.completeTask('owed', {})
    manager.cancelTask('cancelled')
    const { metadata } = await call({ mode: 'any', task_ids: [] })
    expect(metadata).toEqual({ settled: ['owed'], pending: ['running'] })
  })

  it('says that there is nothing to wait for', async () => {
    const { call, manager, register } = setUp()
    register('a')
    manager.cancelTask('a')
    expect(await call()).toEqual({
      llmContent: 'Nothing to wait for: no async task is running.',
      returnDisplay: 'Nothing to wait for: no async task is running.',
      metadata: { settled: [], pending: [] },
    })
  })

  it('accepts prefixes, and returns each task once', async () => {
    const { call, manager, register } = setUp()
    register('researcher-a1')
    register('other')
    const waiting = call({ task_ids: ['res', 'researcher-a1', 'res'] })
    manager.completeTask('researcher-a1', {})
    expect((await waiting).metadata).toEqual({ settled: ['researcher-a1'], pending: [] })
  })

  it('returns a delivered result again when its task is named', async () => {
    const { call, manager, register } = setUp()
    register('a')
    manager.completeTask('a', { final_message: 'done' })
    manager.markNotified('a')
    expect((await call({ task_ids: ['a'] })).llmContent).toContain(completed('a', 'done'))
  })

  it('says which ids match no task or several, and waits for the others', async () => {
    const { call, manager, register } = setUp()
    for (const id of ['task-1', 'task-2', 'other']) register(id)
    const waiting = call({ task_ids: ['task', '', 'other', 'nobody'] })
    manager.completeTask('other', {})
    const { llmContent, error } = await waiting
    expect(error).toBeUndefined()
    expect(llmContent.split('\n\n').slice(2)).toEqual([
      "Ambiguous task ID prefix 'task'. Candidates:\n- task-1... (helper) - running\n- task-2... (helper) - running",
      "No async task found with ID or prefix ''.",
      "No async task found with ID or prefix 'nobody'.",
    ])
  })

  it('does not wait when no id matches', async () => {
    const { call, register } = setUp()
    register('a')
    expect(await call({ task_ids: ['nobody', 'noone'] })).toMatchObject({
      llmContent: "No async task found with ID or prefix 'nobody'.\nNo async task found with ID or prefix 'noone'.",
      returnDisplay: "No async task found with ID or prefix 'nobody'.\nNo async task found with ID or prefix 'noone'.",
      error: { type: 'parameter_validation', message: 'No such task' },
    })
  })

  it('returns an error when it fails, and delivers nothing', async () => {
    const { manager, register, getAsyncTaskManager } = setUpHost({
      createId: () => {
        throw new Error('no more ids')
      },
    })
    register('a')
    manager.completeTask('a', {})
    const result = await createWaitForAsyncTasksTool({ getAsyncTaskManager }).execute({})
    expect(result.error).toEqual({ type: 'execution_failed', message: 'wait_for_async_tasks failed: no more ids' })
    expect(manager.getTask('a')?.delivery).toBe('owed')
  })

  it('with an owner is only for the tasks of that owner', async () => {
    const { call, manager, register } = setUp({ owner: 'sub' })
    register('a')
    register('b', { owner: 'sub' })
    expect((await call({ task_ids: ['a'] })).error?.type).toBe('parameter_validation')
    const waiting = call()
    manager.completeTask('b', {})
    expect((await waiting).metadata).toEqual({ settled: ['b'], pending: [] })
  })

  it.each([
    [{ timeout_seconds: -1 }, 'params.timeout_seconds: got -1, expected at least 0.'],
    [{ mode: 'some' }, 'params.mode: got "some", expected one of "any", "all".'],
    [{ task_ids: 'a' }, 'params.task_ids: got "a", expected an array.'],
    [{ ids: [] }, 'params.ids: got an empty array, expected a known field; the nearest is task_ids.'],
  ])('refuses %j', async (input, message) => {
    expect((await setUp().call(input as never)).error).toEqual({ type: 'parameter_validation', message })
  })
})

describe('an aborted wait', () => {
  it('A5: returns an error, and what had ended is owed again', async () => {
    const { call, clock, manager, register } = setUp()
    register('a')
    register('b')
    const controller = new AbortController()
    const waiting = call({}, controller.signal)
    manager.completeTask('a', {})
    expect(manager.getTask('a')?.delivery).toBe('leased')
    controller.abort()
    expect((await waiting).error).toEqual({
      type: 'aborted',
      message: 'The wait was aborted. The tasks continue, and results that were not returned are delivered later.',
    })
    expect(manager.getTask('a')?.delivery).toBe('owed')
    expect(manager.getTask('b')?.status).toBe('running')
    expect(clock.pending).toBe(0)
  })

  it('does not start when it was aborted before', async () => {
    const { call, manager, register } = setUp()
    register('a')
    manager.completeTask('a', {})
    expect((await call({ task_ids: ['a'] }, AbortSignal.abort())).error?.type).toBe('aborted')
    expect(manager.getTask('a')?.delivery).toBe('owed')
  })
})

describe('a long result', () => {
  it('A7: is cut, and its record stays until the rest was read', async () => {
    const { call, manager, register, getAsyncTaskManager } = setUp({ maxMessageChars: 200, maxAsyncTasks: 0 })
    register('long')
    register('short')
    manager.completeTask('long', { final_message: 'x'.repeat(1_000) })
    manager.completeTask('short', {})
    const { llmContent } = await call()
    expect(llmContent).toContain('\n[Cut after 200 of ')
    expect(manager.getAllTasks().map((task) => [task.id, task.delivery])).toEqual([['long', 'delivered']])

    const notice = /Read the rest with check_async_tasks (\{.*\})\]/.exec(llmContent)?.[1] ?? ''
    const params = JSON.parse(notice) as CheckAsyncTasksParams
    const rest = await createCheckAsyncTasksTool({ getAsyncTaskManager }).execute(params)
    expect(rest.llmContent).toMatch(
      /^Result of task long \(completed; [^\n]*\), bytes 200 to \d+:\nx+"\n\}\n\[That is the end\.\]$/,
    )
    expect(manager.getAllTasks()).toEqual([])
  })
})

describe('results that do not fit into one message', () => {
  it('A5: are returned by further calls, the oldest first, and only what was returned is delivered', async () => {
    const { call, manager, register } = setUp()
    for (const id of ['a', 'b', 'c', 'd', 'e']) register(id)
    for (const id of ['b', 'a', 'c', 'd', 'e']) manager.completeTask(id, { final_message: id.repeat(6_500) })
    const all = { task_ids: ['a', 'b', 'c', 'd', 'e'] }
    const first = await call(all)
    expect(first.llmContent.length).toBeLessThanOrEqual(20_000)
    expect(first.llmContent).toContain(
      '3 more ended, but their results do not fit here. Get the next ones with wait_for_async_tasks {"task_ids":["c","d","e"]}',
    )
    expect(manager.getPendingNotifications().map((task) => task.id)).toEqual(['c', 'd', 'e'])
    // The same call goes on where the first ended.
    const second = await call(all)
    for (const id of ['c', 'd']) expect(second.llmContent).toContain(id.repeat(6_500))
    expect((await call()).llmContent).toContain('e'.repeat(6_500))
    expect(manager.getPendingNotifications()).toEqual([])
  })

  it('A5: go to the next message of an owner that gets messages', async () => {
    const { call, manager, register } = setUp()
    for (const id of ['a', 'b', 'c']) register(id)
    for (const id of ['a', 'b', 'c']) manager.completeTask(id, { final_message: id.repeat(9_000) })
    await call()
    expect(new AsyncTaskReminderService(manager).leaseReminder()?.taskIds).toEqual(['c'])
  })

  it('A5: a huge result does not hold up the others', async () => {
    const { call, manager, register } = setUp()
    for (const id of ['huge', 'small']) register(id)
    manager.completeTask('huge', { items: Array.from({ length: 600 }, () => 'x'.repeat(1_000_000)) })
    manager.completeTask('small', { final_message: 'done' })
    const { llmContent } = await call()
    expect(llmContent).toContain('[Cut to a preview')
    expect(llmContent).toContain('"done"')
    expect(manager.getPendingNotifications()).toEqual([])
  })

  it('a wait for many tasks and wrong ids has at most 20000 characters', async () => {
    const { call, clock, manager, register } = setUp()
    const ids = Array.from({ length: 900 }, (_, n) => `task-${n}-${'y'.repeat(400)}`)
    for (const id of ids) register(id)
    manager.completeTask(ids[0]!, { final_message: 'x'.repeat(30_000) })
    const waiting = call({ task_ids: [...ids, ...ids.map((id) => `z${id.repeat(9)}`), 'task-'], timeout_seconds: 1 })
    clock.advance(1_000)
    const { llmContent } = await waiting
    expect(llmContent.length).toBeLessThanOrEqual(20_000)
    expect(llmContent).toContain('Read the rest with check_async_tasks')
    expect((await call({ task_ids: ids.map((id) => `z${id}`) })).llmContent.length).toBeLessThanOrEqual(20_000)
  })
})

it('A7: a record whose text a reminder cut is not kept once its whole result was shown', async () => {
  const { call, manager, register } = setUp({ maxAsyncTasks: 0 })
  register('a')
  manager.completeTask('a', { final_message: 'x'.repeat(1_000) })
  new AsyncTaskReminderService(manager, { maxMessageChars: 200 }).leaseReminder()?.acknowledge()
  expect(manager.getAllTasks()).toHaveLength(1)
  await call({ task_ids: ['a'] })
  expect(manager.getAllTasks()).toEqual([])
})

it('A9: a wait ends when the manager is disposed', async () => {
  const { call, manager, register } = setUp()
  register('a')
  const waiting = call()
  await manager.dispose()
  expect((await waiting).metadata).toEqual({ settled: ['a'], pending: [] })
})

it('can be bound to the parameters of a call', async () => {
  const { getAsyncTaskManager, manager, register } = setUpHost()
  const tool = createWaitForAsyncTasksTool({ getAsyncTaskManager })
  expect([tool.name, tool.description]).toEqual(['wait_for_async_tasks', expect.stringContaining('Wait until')])
  register('a')
  const invocation = buildInvocation(tool, { task_ids: ['a', 'b'], mode: 'any' })
  expect(invocation.getDescription()).toBe("Wait for any of the async tasks 'a', 'b'")
  manager.completeTask('a', {})
  expect((await invocation.execute(new AbortController().signal)).metadata).toMatchObject({ settled: ['a'] })
})

it('has a JSON schema without required or additional properties', () => {
  const schema = z.toJSONSchema(
    createWaitForAsyncTasksTool({ getAsyncTaskManager: setUpHost().getAsyncTaskManager }).inputSchema,
  )
  expect(schema).toMatchObject({ type: 'object', additionalProperties: false })
  expect(schema.required).toBeUndefined()
})

it.each([{ maxWaitSeconds: 0 }, { maxWaitSeconds: Infinity }, { maxMessageChars: 1 }])(
  'refuses the option %j',
  (option) => {
    const { getAsyncTaskManager } = setUpHost()
    expect(() => createWaitForAsyncTasksTool({ getAsyncTaskManager, ...option })).toThrow(InvalidSettingError)
  },
)

it('the notes of a wait have at most 2,000 characters together, each of them 1,000, and say how many are left out', () => {
  const [a, b] = ['a'.repeat(1000), 'b'.repeat(1000)]
  expect(boundParts([a, b])).toEqual([a, b])
  expect(boundParts([a, b, 'c'])).toEqual([a, b, '... and 1 more'])
  const [cut, ...others] = boundParts([`${a}x`])
  expect([cut, others]).toEqual([`${a}...`, []])
})
