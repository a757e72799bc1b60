/** check_async_tasks lists, shows and cancels tasks, with the texts of seed 002. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { InvalidSettingError } from '../../../src/errors.js'
import {
  CheckAsyncTasksTool,
  createCheckAsyncTasksTool,
  type CheckAsyncTasksOptions,
  type CheckAsyncTasksParams,
} from '../../../src/tools/check-async-tasks.js'
import { setUpHost } from './tool-host.js'
import { pushSubscribers } from '../../../src/features/delivery/push-subscribers.js'

function setUp(options: Partial<CheckAsyncTasksOptions> & { notifyCancelled?: boolean; maxAsyncTasks?: number } = {}) {
  const { notifyCancelled = false, maxAsyncTasks = 5, ...rest } = options
  const host = setUpHost({ notifyCancelled, maxAsyncTasks })
  const tool = createCheckAsyncTasksTool({ getAsyncTaskManager: host.getAsyncTaskManager, ...rest })
  const call = (input: CheckAsyncTasksParams = {}) => tool.execute(input)
  return { ...host, call }
}

describe('listing', () => {
  it('says that there are no tasks', async () => {
    expect(await setUp().call()).toEqual({
      llmContent: 'No async tasks.',
      returnDisplay: 'No async tasks are currently running or completed.',
      metadata: { count: 0 },
    })
  })

  it('counts the tasks by status and shows each on a line', async () => {
    const { call, clock, manager, register } = setUp()
    for (const id of ['researcher-a1', 'researcher-b2', 'coder-0001', 'tester-0001']) {
      register(id, { subagentName: id.replace(/-.*/, '') })
    }
    clock.advance(65_000)
    manager.completeTask('researcher-b2', {})
    manager.failTask('coder-0001', 'no')
    manager.cancelTask('tester-0001')
    clock.advance(5_000)
    expect(await call()).toEqual({
      llmContent: [
        'Async Tasks Summary:',
        '- Running: 1',
        '- Completed: 1',
        '- Failed: 1',
        '- Cancelled: 1',
        '',
        'Details:',
        ' [researcher-a] researcher - running (1m 10s) - do it',
        '[OK] [researcher-b] researcher - completed (1m 5s) - do it',
        '[ERROR] [coder-00] coder - failed (1m 5s) - do it',
        ' [tester-0] tester - cancelled (1m 5s) - do it',
      ].join('\n'),
      returnDisplay: [
        ' **researcher** (`researcher-a`) - running',
        '[OK] **researcher** (`researcher-b`) - completed',
        '[ERROR] **coder** (`coder-00`) - failed',
        ' **tester** (`tester-0`) - cancelled',
      ].join('\n'),
      metadata: { count: 4, running: 1, completed: 1, failed: 1, cancelled: 1 },
    })
  })

  it.each([{}, { task_id: '' }, { action: 'list' }, { action: 'list', task_id: 'a' }] as const)(
    'is what %j asks for',
    async (input) => {
      const { call, register } = setUp()
      register('a')
      expect((await call(input)).llmContent).toContain('Async Tasks Summary:')
    },
  )

  it('says how many tasks it omits when there are too many', async () => {
    const { call, register } = setUp({ maxMessageChars: 200 })
    for (let n = 1; n <= 100; n += 1) register(`task-${n}`)
    const { llmContent, returnDisplay } = await call()
    expect(llmContent).toContain('- Running: 100')
    expect(llmContent).toMatch(/\n\.\.\. and \d\d more\. Read on with check_async_tasks \{.*\}$/)
    expect(llmContent.length).toBeLessThan(450)
    expect(returnDisplay.length).toBeLessThan(250)
  })

  it('has at most 20000 characters, and says how to read on', async () => {
    const { call, register } = setUp()
    for (let n = 1; n <= 900; n += 1) register(`task-${n}`)
    const listed: string[] = []
    let next: CheckAsyncTasksParams | undefined = {}
    for (let pages = 0; next !== undefined; pages += 1) {
      // A cursor that leads back would have it read for ever.
      expect(pages).toBeLessThan(10)
      const { llmContent } = await call(next)
      expect(llmContent.length).toBeLessThanOrEqual(20_000)
      listed.push(...Array.from(llmContent.matchAll(/\[(task-\d+)\]/g), ([, id]) => id ?? ''))
      const notice = /Read on with check_async_tasks (\{.*\})$/.exec(llmContent)?.[1]
      next = notice === undefined ? undefined : (JSON.parse(notice) as CheckAsyncTasksParams)
    }
    expect(listed).toEqual(Array.from({ length: 900 }, (_, n) => `task-${n + 1}`))
    expect((await call({ cursor: 900 })).llmContent).toContain('No more tasks.')
  })

  it('A5: acknowledges nothing', async () => {
    const { call, manager, register } = setUp()
    register('a')
    manager.completeTask('a', {})
    await call()
    expect(manager.getTask('a')?.delivery).toBe('owed')
  })
})

describe('peeking', () => {
  it('shows a running task', async () => {
    const { call, clock, manager, register } = setUp()
    register('researcher-a1', { subagentName: 'researcher', goalPrompt: 'g'.repeat(101) })
    clock.advance(3_000)
    manager.reportProgress('researcher-a1', { progress: 1, total: 4 })
    const details = {
      id: 'researcher-a1',
      subagentName: 'researcher',
      goalPrompt: 'g'.repeat(101),
      status: 'running',
      launchedAt: '2024-01-01T00:00:00.000Z',
      duration: '3s',
      progress: { progress: 1, total: 4 },
    }
    expect(await call({ task_id: 'researcher-a1' })).toEqual({
      llmContent: JSON.stringify(details, null, 2),
      returnDisplay: [
        ' **researcher**',
        'ID: `researcher-a1`',
        'Status: running',
        `Goal: ${'g'.repeat(100)}...`,
        'Duration: 3s',
      ].join('\n'),
      metadata: details,
    })
  })

  it('shows everything a completed task returned, and cuts only what is too long for the display', async () => {
    const { call, clock, manager, register } = setUp()
    register('a', { goalPrompt: 'g'.repeat(100) })
    clock.advance(1_000)
    const vars = { short: 'x'.repeat(50), long: 'x'.repeat(51), pair: `${'x'.repeat(49)}😀`, list: [1, 2], none: null }
    manager.completeTask('a', { emitted_vars: vars, final_message: 'done', cost: 3 })
    const result = await call({ task_id: 'a' })
    expect(JSON.parse(result.llmContent)).toEqual({
      id: 'a',
      subagentName: 'helper',
      goalPrompt: 'g'.repeat(100),
      status: 'completed',
      launchedAt: '2024-01-01T00:00:00.000Z',
      duration: '1s',
      completedAt: '2024-01-01T00:00:01.000Z',
      output: { emitted_vars: vars, final_message: 'done', cost: 3 },
    })
    expect(result.returnDisplay.split('\n')).toEqual([
      '[OK] **helper**',
      'ID: `a`',
      'Status: completed',
      `Goal: ${'g'.repeat(100)}`,
      'Duration: 1s',
      'Emitted variables:',
      `  - short: ${'x'.repeat(50)}`,
      `  - long: ${'x'.repeat(50)}...`,
      `  - pair: ${'x'.repeat(49)}...`,
      '  - list: [1,2]',
      '  - none: null',
    ])
  })

  it('shows why a task failed', async () => {
    const { call, manager, register } = setUp()
    register('a')
    manager.failTask('a', 'no network')
    const result = await call({ task_id: 'a' })
    expect(JSON.parse(result.llmContent)).toMatchObject({ status: 'failed', error: 'no network' })
    expect(result.returnDisplay).toBe(
      '[ERROR] **helper**\nID: `a`\nStatus: failed\nGoal: do it\nDuration: 0s\nError: no network',
    )
  })

  it.each([{ emitted_vars: 'text' }, { emitted_vars: null }, { emitted_vars: {} }, {}])(
    'shows no variables for the output %j',
    async (output) => {
      const { call, manager, register } = setUp()
      register('a')
      manager.completeTask('a', output as never)
      const { error, returnDisplay } = await call({ task_id: 'a' })
      expect(error).toBeUndefined()
      expect(returnDisplay).not.toContain('Emitted variables')
    },
  )

  it('shows a time outside the range of a date as a number', async () => {
    const record = { id: 'old', subagentName: 's', goalPrompt: 'g', status: 'cancelled', launchedAt: 1e17 } as const
    const manager = AsyncTaskManager.restore([{ ...record, completedAt: 2e17 }])
    const { llmContent } = await createCheckAsyncTasksTool({ getAsyncTaskManager: () => manager }).execute({
      task_id: 'old',
    })
    expect(JSON.parse(llmContent)).toMatchObject({
      launchedAt: '100000000000000000',
      completedAt: '200000000000000000',
    })
  })

  it('prefers an exact id to a longer one, and accepts a prefix that matches one task', async () => {
    const { call, register } = setUp()
    register('task-1')
    register('task-10')
    register('other')
    expect((await call({ task_id: 'task-1' })).metadata).toMatchObject({ id: 'task-1' })
    expect((await call({ task_id: 'oth' })).metadata).toMatchObject({ id: 'other' })
  })

  it('names the candidates of an ambiguous prefix', async () => {
    const { call, register } = setUp()
    register('researcher-a1', { subagentName: 'researcher' })
    register('researcher-b2', { subagentName: 'reviewer' })
    const candidates = '- researcher-a... (researcher) - running\n- researcher-b... (reviewer) - running'
    expect(await call({ task_id: 'res' })).toEqual({
      llmContent: `Ambiguous task ID prefix 'res'. Candidates:\n${candidates}`,
      returnDisplay: `Ambiguous prefix. Did you mean:\n${candidates}`,
      error: { message: 'Ambiguous task ID', type: 'parameter_validation' },
    })
  })

  it.each(['cancel', 'answer'] as const)('of several tasks, %s means the one that it can be about', async (action) => {
    const { call, register, manager } = setUp()
    for (const id of ['lead-1', 'lead-2', 'lead-3', 'lead-4']) register(id)
    for (const id of ['lead-1', 'lead-3']) manager.completeTask(id, {})
    if (action === 'cancel') {
      manager.completeTask('lead-4', {})
    } else {
      manager.launch({ id: 'lead-5', subagentName: 's', goalPrompt: 'g' }, (_input, context) =>
        context.ask('Sure?').then(() => ({})),
      )
    }
    await call({})
    expect((await call({ task_id: 'lead', action, answer: 'yes' })).llmContent).toBe(
      action === 'cancel' ? 'Cancelled task: lead-2' : 'Answered question-1 of task lead-5.',
    )
    // Now there is none: all are candidates.
    const { llmContent } = await call({ task_id: 'lead', action, answer: 'yes' })
    expect(llmContent).toContain('- lead-1... (helper) - completed\n- lead-2... (helper) - ')
  })

  it('says that no task matches', async () => {
    expect(await setUp().call({ task_id: 'nobody' })).toEqual({
      llmContent: "No async task found with ID or prefix 'nobody'.",
      returnDisplay: 'Task not found: nobody',
      error: { message: 'Task not found', type: 'parameter_validation' },
    })
  })

  it.each([
    { action: 'peek' },
    { action: 'peek', task_id: '' },
    { task_id: '  ' },
    { action: 'cancel', task_id: ' \n' },
    { action: 'output' },
  ] as const)('refuses %j, which names no task', async (input) => {
    const { call, register, manager } = setUp()
    register('a')
    const { error } = await call(input)
    expect(error?.type).toBe('parameter_validation')
    expect(error?.message).toMatch(/^params\.task_id: got .*, expected a task ID or a prefix of one, to \w+\.$/)
    expect(manager.getTask('a')?.status).toBe('running')
  })

  it.each([
    [{ task: 'a' }, 'params.task: got "a", expected a known field; the nearest is task_id.'],
    [{ action: 'kill' }, 'params.action: got "kill", expected one of "list", "peek", "cancel", "output", "answer".'],
    [{ cursor: -1 }, 'params.cursor: got -1, expected at least 0.'],
    [{ cursor: 1.5 }, 'params.cursor: got 1.5, expected an int.'],
  ])('refuses %j', async (input, message) => {
    expect((await setUp().call(input as never)).error).toEqual({ type: 'parameter_validation', message })
  })
})

describe('a peek that shows everything', () => {
  it('A5: delivers the result of an owner without a push subscriber', async () => {
    const { call, manager, register } = setUp()
    register('a')
    await call({ task_id: 'a' })
    manager.completeTask('a', {})
    expect(manager.getTask('a')?.delivery).toBe('owed')
    await call({ task_id: 'a' })
    expect(manager.getTask('a')?.delivery).toBe('delivered')
  })

  it('A5: delivers nothing for an owner with a push subscriber', async () => {
    const { call, manager, register } = setUp()
    manager.registry.use(pushSubscribers).add('main')
    register('a')
    manager.completeTask('a', {})
    await call({ task_id: 'a' })
    expect(manager.getTask('a')?.delivery).toBe('owed')
  })
})

it('T4: a peek has the code of a task whose deadline has passed, and the name of an error', async () => {
  const { call, clock, manager } = setUp()
  manager.registerTask({ id: 'slow', subagentName: 's', goalPrompt: 'g', timeoutMs: 10, graceMs: 0 })
  clock.advance(10)
  clock.advance(0)
  expect((await call({ task_id: 'slow' })).metadata).toMatchObject({ status: 'failed', errorCode: 'TASK_TIMEOUT' })
  manager.launch({ id: 'bad', subagentName: 's', goalPrompt: 'g' }, () => {
    throw Object.assign(new TypeError('bad'), { code: 'E_BAD' })
  })
  await manager.waitFor(['bad'])
  expect(JSON.parse((await call({ task_id: 'bad' })).llmContent)).toMatchObject({
    error: 'bad',
    errorName: 'TypeError',
    errorCode: 'E_BAD',
  })
})

describe('a peek that is too long', () => {
  const long = { final_message: `${'x'.repeat(300)}end` }

  it('cuts the goal first', async () => {
    const { call, manager, register } = setUp({ maxMessageChars: 600 })
    register('a', { goalPrompt: 'g'.repeat(1_000) })
    manager.completeTask('a', { final_message: 'done' })
    const { llmContent, metadata } = await call({ task_id: 'a' })
    expect(JSON.parse(llmContent)).toMatchObject({
      goalPrompt: `${'g'.repeat(100)}...`,
      output: { final_message: 'done' },
    })
    expect(metadata).toMatchObject({ goalPrompt: 'g'.repeat(1_000) })
    expect(manager.getTask('a')?.delivery).toBe('delivered')
  })

  it('A5: is cut, and delivers the result once the rest was read', async () => {
    const { call, manager, register } = setUp({ maxMessageChars: 200 })
    register('a')
    manager.completeTask('a', long)
    const first = await call({ task_id: 'a' })
    const [kept = '', notice = ''] = first.llmContent.split('\n[Cut after 200 of ')
    expect(kept).toHaveLength(200)
    expect(manager.getTask('a')?.delivery).toBe('owed')

    let next = JSON.parse(/check_async_tasks (.*)\]$/.exec(notice)?.[1] ?? '') as CheckAsyncTasksParams
    expect(next).toEqual({ task_id: 'a', action: 'peek', cursor: 200 })
    let whole = kept
    for (;;) {
      const { llmContent } = await call(next)
      const lines = llmContent.split('\n')
      expect(lines[0]).toMatch(/^Details of task a \(completed; subagent 'helper', goal "do it"\), bytes \d+ to \d+:$/)
      whole += lines.slice(1, -1).join('\n')
      const further = /^\[\d+ bytes remain\. Read on with check_async_tasks (.*)\]$/.exec(lines.at(-1) ?? '')?.[1]
      if (further === undefined) {
        expect(lines.at(-1)).toBe('[That is the end.]')
        break
      }
      expect(manager.getTask('a')?.delivery).toBe('owed')
      next = JSON.parse(further) as CheckAsyncTasksParams
    }
    expect(JSON.parse(whole)).toMatchObject({ id: 'a', output: long })
    expect(manager.getTask('a')?.delivery).toBe('delivered')
  })

  it('A7: keeps a delivered record until the rest was read', async () => {
    const { call, manager, register } = setUp({ maxMessageChars: 200, maxAsyncTasks: 1 })
    register('old')
    manager.completeTask('old', long)
    manager.markNotified('old')
    await call({ task_id: 'old' })
    for (const id of ['b', 'c', 'd']) {
      register(id)
      manager.cancelTask(id)
    }
    expect(manager.getAllTasks().map((task) => task.id)).toEqual(['old', 'c', 'd'])
    await call({ task_id: 'old', action: 'peek', cursor: 500 })
    register('e')
    manager.cancelTask('e')
    expect(manager.getAllTasks().map((task) => task.id)).toEqual(['d', 'e'])
  })

  it('A7: does not keep a record that a later message carries', async () => {
    const { call, manager, register } = setUp({ maxMessageChars: 200, maxAsyncTasks: 0 })
    register('a')
    manager.completeTask('a', long)
    await call({ task_id: 'a' })
    const lease = manager.lease()
    await call({ task_id: 'a' })
    lease?.acknowledge()
    expect(manager.getAllTasks()).toEqual([])
  })

  it('is bounded for the person as well', async () => {
    const { call, manager, register } = setUp({ maxMessageChars: 200 })
    register('a')
    manager.failTask('a', 'x'.repeat(10_000))
    expect((await call({ task_id: 'a' })).returnDisplay).toHaveLength(203)
  })
})

describe('cancelling', () => {
  it('cancels a running task, found as a peek finds it', async () => {
    const { call, manager, register } = setUp()
    const { abortController } = register('researcher-a1')
    register('other')
    await call({})
    expect(await call({ task_id: 'rese', action: 'cancel' })).toEqual({
      llmContent: 'Cancelled task: researcher-a1',
      returnDisplay: 'Cancelled task: researcher-a1',
      metadata: { id: 'researcher-a1', status: 'cancelled', cancelled: true },
    })
    expect(manager.getTask('researcher-a1')?.status).toBe('cancelled')
    expect(abortController?.signal.aborted).toBe(true)
    expect(manager.getTask('other')?.status).toBe('running')
  })

  it('A1: says that the task has ended, and changes nothing', async () => {
    const { call, manager, register } = setUp()
    register('a')
    manager.completeTask('a', {})
    const record = manager.getTask('a')
    const { llmContent, error, metadata } = await call({ task_id: 'a', action: 'cancel' })
    expect({ llmContent, error }).toEqual({ llmContent: 'Task a is already completed.', error: undefined })
    expect(metadata).toEqual({ id: 'a', status: 'completed', cancelled: false })
    expect(manager.getTask('a')).toBe(record)
  })

  it('cancels nothing by an ambiguous prefix or an unknown id', async () => {
    const { call, manager, register } = setUp()
    register('task-1')
    register('task-2')
    expect((await call({ task_id: 'task', action: 'cancel' })).llmContent).toBe(
      "Ambiguous task ID prefix 'task'. Candidates:\n- task-1... (helper) - running\n- task-2... (helper) - running",
    )
    expect((await call({ task_id: 'x', action: 'cancel' })).error?.message).toBe('Task not found')
    expect(manager.getRunningTasks()).toHaveLength(2)
  })
})

describe('with an owner', () => {
  it('shows and cancels only the tasks of that owner', async () => {
    const { call, manager, register } = setUp({ owner: 'sub' })
    register('task-1')
    register('task-2', { owner: 'sub' })
    expect((await call()).metadata).toMatchObject({ count: 1 })
    expect((await call({ task_id: 'task' })).metadata).toMatchObject({ id: 'task-2' })
    expect((await call({ task_id: 'task-1' })).error?.message).toBe('Task not found')
    expect((await call({ task_id: 'task-1', action: 'cancel' })).error?.message).toBe('Task not found')
    expect((await call({ task_id: 'task-1', action: 'output' })).error?.message).toBe('Task not found')
    expect(manager.getTask('task-1')?.status).toBe('running')
  })
})

describe('the class', () => {
  it('is a drop-in', async () => {
    const { manager, register } = setUpHost()
    register('a')
    const tool = new CheckAsyncTasksTool({ getAsyncTaskManager: () => manager })
    expect([CheckAsyncTasksTool.Name, tool.name, tool.kind]).toEqual([
      'check_async_tasks',
      'check_async_tasks',
      'think',
    ])
    expect(tool.description).toContain('Call with no arguments to list all tasks')
    const { signal } = new AbortController()
    expect((await tool.build({ task_id: 'a' }).execute(signal)).metadata).toMatchObject({ id: 'a', status: 'running' })
    expect((await tool.build({}).execute(signal)).metadata).toMatchObject({ count: 1 })
    expect((await tool.build().execute()).metadata).toMatchObject({ count: 1 })
  })

  it.each<[CheckAsyncTasksParams, string]>([
    [{}, 'List all async tasks'],
    [{ task_id: 'a' }, "Check status of async task 'a'"],
    [{ task_id: 'a', action: 'cancel' }, "Cancel async task 'a'"],
    [{ task_id: 'a', action: 'output' }, "Read output of async task 'a'"],
    [{ task_id: 'a', action: 'answer' }, "Answer async task 'a'"],
    [{ task_id: 'a', action: 'output', part: 'result' }, "Read result of async task 'a'"],
  ])('describes %j', (params, description) => {
    const { getAsyncTaskManager } = setUpHost()
    expect(new CheckAsyncTasksTool({ getAsyncTaskManager }).build(params).getDescription()).toBe(description)
  })

  it('returns an error when there is no manager', async () => {
    const tool = new CheckAsyncTasksTool({
      getAsyncTaskManager: () => {
        throw new Error('not configured')
      },
    })
    expect((await tool.build().execute()).error).toEqual({
      type: 'execution_failed',
      message: 'check_async_tasks failed: not configured',
    })
  })
})

it('has a JSON schema without required or additional properties', () => {
  const { inputSchema } = new CheckAsyncTasksTool(setUpHost()).tool
  const schema = z.toJSONSchema(inputSchema)
  expect(schema).toMatchObject({ type: 'object', additionalProperties: false })
  expect(schema.required).toBeUndefined()
})

it('refuses a maxMessageChars that is too small', () => {
  const { getAsyncTaskManager } = setUpHost()
  expect(() => createCheckAsyncTasksTool({ getAsyncTaskManager, maxMessageChars: 10 })).toThrow(InvalidSettingError)
})
