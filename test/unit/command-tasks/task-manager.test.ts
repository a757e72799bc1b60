/** Command tasks on local instances: S1 to S9, on a manual clock. */
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'
import { byteLimits } from '../../../src/command-tasks/task-bytes.js'
import { progressMessage } from '../../../src/command-tasks/task-record.js'
import type { Engine, Outcome } from '../../../src/engine/engine.js'
import {
  taskCompleteSchema,
  taskProgressSchema,
  taskSchema,
  type TaskSubmitMessage,
} from '../../../src/protocol/command-tasks.js'
import type { Instance } from '../../../src/command-tasks/instances/instance.js'
import { InstanceManager } from '../../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import { memoryStore, type Store } from '../../../src/store/index.js'
import { nested } from '../../support/nested.js'
import { createCommandHost, type CommandHost } from '../../support/command-host.js'
import { createControllableEngine } from '../../support/controllable-engine.js'

let host: CommandHost

beforeEach(() => {
  host = createCommandHost()
  host.watchConsole()
  host.connect('one')
})
afterEach(async () => {
  const warnings = await host.dispose()
  vi.restoreAllMocks()
  expect(warnings).toEqual([])
  expect(host.clock.pending).toBe(0)
})

/** Replaces the host by one with other options. */
async function rehost(...options: Parameters<typeof createCommandHost>): Promise<void> {
  await host.dispose()
  host = createCommandHost(...options)
  host.watchConsole()
  host.connect('one')
}

/** Checks every complete message (S1, S2). */
function checkCompletes(): void {
  const seen = new Set<string>()
  for (const message of host.told) {
    expect(seen).not.toContain(message.taskId)
    if (message.type === 'task_progress') {
      taskProgressSchema.parse(message)
      continue
    }
    seen.add(message.taskId)
    taskCompleteSchema.parse(message)
    const { summary, results } = message
    expect(results.map(({ status }) => status)).not.toContain('pending')
    expect(results.map(({ status }) => status)).not.toContain('running')
    expect(summary.totalCommands).toBe(results.length)
    expect(summary.successfulCommands).toBe(results.filter(({ status }) => status === 'success').length)
    const failed = results.findIndex(({ status }) => status === 'error')
    expect(summary.failedCommandIndex).toBe(failed === -1 ? undefined : failed)
    expect(Number.isFinite(summary.duration) && summary.duration >= 0).toBe(true)
  }
}

describe('an engine that breaks its contract', () => {
  const failedWith = async (engine: Engine): Promise<unknown> => {
    await rehost({ engine })
    const id = host.submit(['a'])
    await host.settle()
    return host.tasks.getTask(id)
  }
  const settling = (settled: () => Promise<Outcome>): Engine => ({
    start: () => ({ settled: settled(), abort: () => undefined }),
  })

  it('and rejects fails the command, and the lane goes on', async () => {
    const broken = settling(() => Promise.reject(new Error('out of order')))
    for (let count = 0; count < 2; count += 1) {
      expect(await failedWith(broken)).toMatchObject({
        status: 'failed',
        error: { code: 'EXECUTION_ERROR', message: 'out of order', commandId: 'cmd_1' },
      })
    }
    expect(host.tasks.laneDepths.size).toBe(0)
  })

  it('and skips a command that was not aborted fails the command', async () => {
    expect(await failedWith(settling(() => Promise.resolve({ type: 'skipped' })))).toMatchObject({
      status: 'failed',
      error: { code: 'EXECUTION_ERROR', message: 'The command did not run.' },
    })
  })
})

describe('what a failed command says', () => {
  const failureFor = async (reason: unknown): Promise<{ code: string; message: string } | undefined> => {
    const engine = createControllableEngine()
    await rehost({ engine })
    const id = host.submit('a')
    await host.settle()
    engine.runs[0]!.finish({ type: 'threw', reason })
    await host.settle()
    for (const call of host.calls) call.finish()
    return host.tasks.getTask(id)?.commands[0]?.error
  }

  it('is kept up to 10,000 characters, and its code up to 256', async () => {
    const [code, message] = ['C'.repeat(256), 'm'.repeat(10_000)]
    expect(await failureFor(Object.assign(new Error(message), { code }))).toEqual({ code, message })
    expect(await failureFor(Object.assign(new Error(`${message}n`), { code: `${code}D` }))).toEqual({
      code,
      message: `${message} [cut: the first 10000 of 10001 characters]`,
    })
  })

  it.each([[''], [7], [undefined]])('has EXECUTION_ERROR where the code of the error is %j', async (code) => {
    expect(await failureFor(Object.assign(new Error('no'), { code }))).toEqual({
      code: 'EXECUTION_ERROR',
      message: 'no',
    })
  })
})

describe('the bytes of a task', () => {
  const result = (text: string) => ({ content: [{ type: 'text', text }] })
  const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
  /** Runs commands with these results. Returns the codes with which they failed. */
  const codesOf = async (...texts: string[]): Promise<(string | undefined)[]> => {
    const id = host.submit(texts)
    for (const text of texts) {
      await host.settle()
      if (host.tasks.getTask(id)?.status === 'running') host.call(text).finish(text)
    }
    await host.settle()
    return host.tasks.getTask(id)?.commands.map(({ error }) => error?.code) ?? []
  }

  it('S9: a result may have exactly maxResultBytes', async () => {
    const maxResultBytes = bytesOf(result('é'.repeat(100)))
    await rehost({ maxResultBytes })
    expect(await codesOf('é'.repeat(100), `${'é'.repeat(100)}x`)).toEqual([undefined, 'RESULT_TOO_LARGE'])
  })

  it('S9: a task may hold exactly maxTaskBytes: what was submitted, and all of its results', async () => {
    const texts = ['a'.repeat(100), 'b'.repeat(200)]
    const id = host.submit(texts)
    const {
      instanceId: _instance,
      currentCommandIndex: _index,
      status: _status,
      ...submitted
    } = host.tasks.getTask(id)!
    const held = bytesOf(submitted) + texts.reduce((sum, text) => sum + bytesOf(result(text)), 0)
    await rehost({ maxTaskBytes: held })
    expect(await codesOf(...texts)).toEqual([undefined, undefined])
    await rehost({ maxTaskBytes: held - 1 })
    expect(await codesOf(...texts)).toEqual([undefined, 'RESULT_TOO_LARGE'])
    // A submission may have as much as a task may hold.
    await rehost({ maxTaskBytes: bytesOf(submitted) })
    expect(host.submit(texts)).toBe(id)
    await rehost({ maxTaskBytes: bytesOf(submitted) - 1 })
    expect(() => host.submit(texts)).toThrow('INVALID_TASK')
  })

  it('S9: a result is 16 MiB by default, a task 64 MiB, and all of them 256 MiB', () => {
    const MIB = 1024 * 1024
    expect(byteLimits({}, false)).toEqual({
      maxResultBytes: 16 * MIB,
      maxSubmissionBytes: 64 * MIB,
      maxTaskBytes: 64 * MIB,
      maxBytes: 256 * MIB,
    })
    // A row of a store has 64 MiB: a result and a submission are rows, a task is several.
    expect(byteLimits({ maxResultBytes: 70 * MIB, maxTaskBytes: 80 * MIB }, true)).toMatchObject({
      maxResultBytes: 64 * MIB,
      maxSubmissionBytes: 64 * MIB,
      maxTaskBytes: 80 * MIB,
    })
  })
})

describe('an instance whose abort listener throws', () => {
  it('S6: is reported with the command, and the task is cancelled', async () => {
    const onError = vi.fn()
    await rehost({ onError })
    const listening: Instance = {
      ...localInstance({ id: 'listening', tools: [] }),
      callTool: ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(new Error('stopped'))
            throw new Error('in the listener')
          })
        }),
    }
    host.instances.connect(listening)
    const id = host.submit(['a'], { instanceId: 'listening' })
    await host.settle()
    expect(host.tasks.cancelTask(id)).toBe(true)
    await host.settle()
    expect(onError.mock.calls).toEqual([
      [new Error('in the listener'), { source: 'abort-listener', taskId: `${id}_cmd_1` }],
    ])
    expect(host.tasks.getTask(id)?.status).toBe('cancelled')
  })
})

describe('a message about a command', () => {
  it('that the task does not have throws', () => {
    expect(() => progressMessage({ id: 't', commands: [] } as never, 0, 0)).toThrow(
      new RangeError('task t has no command 0'),
    )
  })
})

describe('a task that succeeds', () => {
  it('S1: runs its commands in order and completes once, with every result', async () => {
    const id = host.submit(['a', 'b'], { task_intention: 'see', metadata: { user: 1 } })
    expect(host.tasks.getTask(id)).toMatchObject({ status: 'queued', currentCommandIndex: 0, createdAt: 10_000 })
    expect(host.told).toEqual([])
    await host.settle()
    expect(host.calls.map(({ name }) => name)).toEqual(['a'])
    host.clock.advance(5)
    host.call('a').finish('A')
    await host.settle()
    expect(host.tasks.getTask(id)).toMatchObject({ status: 'running', currentCommandIndex: 1 })
    host.clock.advance(7)
    host.call('b').finish('B')
    await host.settle()
    expect(host.story(id)).toEqual(['cmd_1 running', 'cmd_1 success', 'cmd_2 running', 'cmd_2 success', 'completed'])
    expect(host.completes()).toMatchObject([
      {
        taskId: id,
        instanceId: 'one',
        status: 'completed',
        timestamp: 10_012,
        summary: { totalCommands: 2, successfulCommands: 2, duration: 12 },
        results: [
          { commandId: 'cmd_1', status: 'success', result: { content: [{ type: 'text', text: 'A' }] } },
          { commandId: 'cmd_2', status: 'success', result: { content: [{ type: 'text', text: 'B' }] } },
        ],
      },
    ])
    expect(taskSchema.parse(host.tasks.getTask(id))).toMatchObject({
      name: 'a task',
      intention: 'see',
      metadata: { user: 1 },
      status: 'completed',
      startedAt: 10_000,
      completedAt: 10_012,
    })
    checkCompletes()
  })

  it('has an id of the form task_{timestamp}_{counter}', () => {
    expect(host.submit('a')).toBe('task_10000_1')
    expect(host.submit('a')).toBe('task_10000_2')
  })

  it('emits the progress of its command, without the fields that a tool adds', async () => {
    const id = host.submit('a')
    await host.settle()
    host.call('a').progress({ progress: 1, total: 4, message: 'one', status: 'success', taskId: 'other' } as never)
    expect(host.of(id).at(-1)).toEqual({
      type: 'task_progress',
      taskId: id,
      instanceId: 'one',
      commandId: 'cmd_1',
      commandIndex: 0,
      totalCommands: 1,
      status: 'running',
      timestamp: 10_000,
      tool_name: 'step',
      intention: '',
      progress: 1,
      total: 4,
      message: 'one',
    })
  })

  it('emits the same to streams and handlers', async () => {
    const streamed: unknown[] = []
    host.tasks.progress$.subscribe((message) => streamed.push(message))
    host.tasks.complete$.subscribe((message) => streamed.push(message))
    host.submit('a')
    await host.settle()
    host.call('a').finish()
    await host.settle()
    expect(streamed).toEqual(host.told)
  })

  it('keeps a copy of what was submitted', async () => {
    const args = { name: 'a', list: [1] }
    const result = host.tasks.submitTask({ task_name: 't', commands: [{ tool_name: 'step', args }] }) as {
      taskId: string
    }
    args.list.push(2)
    expect(host.tasks.getTask(result.taskId)!.commands[0]!.args).toEqual({ name: 'a', list: [1] })
    await host.settle()
    host.call('a').finish({ found: [1] })
    await host.settle()
    const { results } = host.completes()[0]!
    expect(
      Object.isFrozen((results[0]!.result as { structuredContent: { found: unknown } }).structuredContent.found),
    ).toBe(true)
  })
})

describe('a task that fails', () => {
  it('S2: ends at the first command that fails, and skips the rest', async () => {
    const id = host.submit(['a', 'b', 'c'])
    await host.settle()
    host.call('a').finish()
    await host.settle()
    host.call('b').fail(Object.assign(new Error('No such tab.'), { code: 'NO_TAB' }))
    await host.settle()
    expect(host.story(id)).toEqual(['cmd_1 running', 'cmd_1 success', 'cmd_2 running', 'cmd_2 error', 'failed'])
    expect(host.completes()).toMatchObject([
      {
        status: 'failed',
        error: { code: 'NO_TAB', message: 'No such tab.', commandId: 'cmd_2' },
        summary: { successfulCommands: 1, failedCommandIndex: 1 },
        results: [
          { status: 'success' },
          { status: 'error', error: { code: 'NO_TAB', message: 'No such tab.' } },
          { status: 'skipped' },
        ],
      },
    ])
    expect(host.calls.map(({ name }) => name)).toEqual(['a', 'b'])
    checkCompletes()
  })

  it('has EXECUTION_ERROR when the tool has no code of its own', async () => {
    host.submit('a')
    await host.settle()
    host.call('a').fail(new Error('no'))
    await host.settle()
    expect(host.completes()).toMatchObject([{ error: { code: 'EXECUTION_ERROR', message: 'no' } }])
  })

  it('has the result or the error of each command in its progress, and nothing else of them', async () => {
    const id = host.submit(['a', 'b'])
    await host.settle()
    host.call('a').finish('A')
    await host.settle()
    host.call('b').fail(new Error('no'))
    await host.settle()
    const outcomes = host
      .of(id)
      .map((message) => ('commandId' in message ? [message.result, message.error] : undefined))
    expect(outcomes).toEqual([
      [undefined, undefined],
      [{ content: [{ type: 'text', text: 'A' }] }, undefined],
      [undefined, undefined],
      [undefined, { code: 'EXECUTION_ERROR', message: 'no' }],
      undefined,
    ])
  })

  it('S1: when the engine throws, like any other', async () => {
    const engine = createControllableEngine()
    await rehost({ engine })
    engine.refuseNext(new Error('The engine is full.'))
    const first = host.submit('a')
    const second = host.submit('b')
    await host.settle()
    expect(host.story(first)).toEqual(['cmd_1 running', 'cmd_1 error', 'failed'])
    expect(host.story(second)).toEqual(['cmd_1 running'])
    engine.runs[0]!.finish({ type: 'returned', value: { content: [] } })
    await host.settle()
    expect(host.story(second)).toEqual(['cmd_1 running', 'cmd_1 success', 'completed'])
    host.calls[0]!.finish()
  })
})

describe('a command that exceeds its time limit', () => {
  it('S5: fails with COMMAND_TIMEOUT, is aborted, and the lane goes on when it has stopped', async () => {
    const slow = host.submit(['a', 'b'])
    const next = host.submit('c')
    await host.settle()
    host.clock.advance(59_999)
    expect(host.completes()).toEqual([])
    host.clock.advance(1)
    expect(host.completes()).toMatchObject([
      {
        taskId: slow,
        status: 'failed',
        error: { code: 'COMMAND_TIMEOUT', message: 'Command timeout after 60000ms', commandId: 'cmd_1' },
        summary: { duration: 60_000, failedCommandIndex: 0 },
        results: [{ status: 'error' }, { status: 'skipped' }],
      },
    ])
    expect(host.call('a').signal.aborted).toBe(true)
    await host.settle()
    expect(host.calls.map(({ name }) => name)).toEqual(['a'])
    host.call('a').fail(new Error('stopped'))
    await host.settle()
    expect(host.story(next)).toEqual(['cmd_1 running'])
    checkCompletes()
  })

  it.each([
    ['its own limit when that is shorter', 100, 100],
    ['the configured limit when its own is longer', 100_000, 60_000],
  ])('may take %s', async (_which, timeout, expected) => {
    host.submit('a', { timeout })
    await host.settle()
    host.clock.advance(expected - 1)
    expect(host.completes()).toEqual([])
    host.clock.advance(1)
    expect(host.completes()[0]!.error).toMatchObject({
      code: 'COMMAND_TIMEOUT',
      message: `Command timeout after ${expected}ms`,
    })
  })

  it('has a time limit of its own', async () => {
    const id = host.submit(['a', 'b'])
    await host.settle()
    host.clock.advance(59_000)
    host.call('a').finish()
    await host.settle()
    host.clock.advance(59_000)
    host.call('b').finish()
    await host.settle()
    expect(host.tasks.getTask(id)!.status).toBe('completed')
  })

  it('S5: one that does not stop holds its lane for the grace period', async () => {
    host.submit('a', { timeout: 100 })
    const next = host.submit('b')
    await host.settle()
    host.clock.advance(100)
    await host.settle()
    host.clock.advance(1999)
    await host.settle()
    expect(host.story(next)).toEqual([])
    host.clock.advance(1)
    await host.settle()
    expect(host.story(next)).toEqual(['cmd_1 running'])
  })
})

describe('a cancel', () => {
  it('S1: of a queued task ends it before it starts, with no duration', async () => {
    host.submit('a')
    const queued = host.submit(['b', 'c'])
    await host.settle()
    host.clock.advance(50)
    expect(host.tasks.cancelTask(queued)).toBe(true)
    expect(host.story(queued)).toEqual(['cancelled'])
    expect(host.completes()).toMatchObject([
      {
        status: 'cancelled',
        error: { code: 'CANCELLED', message: 'Task cancelled' },
        summary: { duration: 0, successfulCommands: 0 },
        results: [{ status: 'skipped' }, { status: 'skipped' }],
      },
    ])
    host.call('a').finish()
    await host.settle()
    expect(host.calls.map(({ name }) => name)).toEqual(['a'])
    checkCompletes()
  })

  it('S4: of a running task aborts its call, and no command of it starts after that', async () => {
    const id = host.submit(['a', 'b'])
    await host.settle()
    expect(host.tasks.cancelTask(id)).toBe(true)
    expect(host.story(id)).toEqual(['cmd_1 running', 'cancelled'])
    const error = { code: 'CANCELLED', message: 'Task cancelled' }
    expect(host.completes()[0]).toMatchObject({ results: [{ status: 'skipped', error }, { status: 'skipped' }] })
    expect(host.completes()[0]!.results[1]).not.toHaveProperty('error')
    expect(host.completes()[0]!.summary.failedCommandIndex).toBeUndefined()
    expect(host.call('a').signal.aborted).toBe(true)
    host.call('a').progress(1)
    host.call('a').finish('late')
    await host.settle()
    expect(host.calls.map(({ name }) => name)).toEqual(['a'])
    checkCompletes()
  })

  it('of a task that has ended or is unknown changes nothing', async () => {
    const id = host.submit('a')
    await host.settle()
    host.call('a').finish()
    await host.settle()
    const before = host.told.length
    expect(host.tasks.cancelTask(id)).toBe(false)
    expect(host.tasks.cancelTask('task_0_0')).toBe(false)
    expect(host.told).toHaveLength(before)
  })

  it('right after the submit leaves no lane', async () => {
    const id = host.submit('a')
    expect(host.tasks.cancelTask(id)).toBe(true)
    await host.settle()
    expect(host.story(id)).toEqual(['cancelled'])
    expect(host.tasks.laneDepths.size).toBe(0)
  })

  it('S5: the next task starts when the cancelled call has settled', async () => {
    const first = host.submit('a')
    const second = host.submit('b')
    await host.settle()
    host.tasks.cancelTask(first)
    await host.settle()
    expect(host.story(second)).toEqual([])
    host.call('a').fail(new Error('stopped'))
    await host.settle()
    expect(host.story(second)).toEqual(['cmd_1 running'])
  })
})

describe('a disconnect', () => {
  it('S1: fails the running and the queued tasks, each once, in order', async () => {
    const running = host.submit(['a', 'b'])
    const queued = host.submit('c')
    await host.settle()
    host.clock.advance(30)
    void host.instances.disconnect('one')
    expect(host.completes()).toMatchObject([
      {
        taskId: running,
        status: 'failed',
        error: { code: 'INSTANCE_DISCONNECTED', message: 'In-process instance disconnected' },
        summary: { duration: 30 },
        results: [{ status: 'skipped' }, { status: 'skipped' }],
      },
      { taskId: queued, status: 'failed', error: { code: 'INSTANCE_DISCONNECTED' }, summary: { duration: 0 } },
    ])
    expect(host.call('a').signal.aborted).toBe(true)
    host.call('a').fail(new Error('stopped'))
    await host.settle()
    expect(host.completes()).toHaveLength(2)
    checkCompletes()
  })

  it('S1: does not affect a task that a listener submits to another instance with the same id', async () => {
    host.connect('two')
    const lost = host.submit('a', { instanceId: 'two' })
    const first = host.submit('b', { instanceId: 'one' })
    await host.settle()
    let next = ''
    host.tasks.on('complete', ({ taskId }) => {
      if (taskId !== first) return
      void host.instances.disconnect('two')
      host.connect('two')
      next = host.submit('c', { instanceId: 'two' })
    })
    void host.instances.disconnect('one')
    expect(host.completes().map(({ taskId }) => taskId)).toEqual([first, lost])
    host.call('a').fail(new Error('stopped'))
    await host.settle()
    host.call('c').finish()
    await host.settle()
    expect(host.story(next)).toEqual(['cmd_1 running', 'cmd_1 success', 'completed'])
  })

  it('S9: leaves no lane when no command was in flight', () => {
    host.submit('a')
    void host.instances.disconnect('one')
    expect(host.completes()).toHaveLength(1)
    expect(host.tasks.laneDepths.size).toBe(0)
  })

  it('of a remote worker that is no browser says so', async () => {
    host.instances.connect({ ...localInstance({ id: 'other', tools: [] }), kind: 'websocket', isBrowser: false })
    host.submit('a', { instanceId: 'other' })
    await host.instances.disconnect('other')
    expect(host.completes()).toMatchObject([{ error: { message: 'Remote worker disconnected' } }])
  })

  it('S3: an instance with the same id waits for the aborted call of the lost one', async () => {
    host.submit('a')
    await host.settle()
    void host.instances.disconnect('one')
    host.connect('one')
    const next = host.submit('b')
    const after = host.submit('c')
    await host.settle()
    expect(host.calls.map(({ name }) => name)).toEqual(['a'])
    host.call('a').fail(new Error('stopped'))
    await host.settle()
    expect(host.story(next)).toEqual(['cmd_1 running'])
    expect(host.story(after)).toEqual([])
    host.call('b').finish()
    await host.settle()
    expect(host.story(after)).toEqual(['cmd_1 running'])
  })

  it('S3: repeated reconnects do not run two commands at once', async () => {
    for (let n = 0; n < 5; n += 1) {
      host.submit(`call ${n}`)
      await host.settle()
      void host.instances.disconnect('one')
      host.connect('one')
    }
    host.submit('last')
    await host.settle()
    expect(host.calls.map(({ name }) => name)).toEqual(['call 0'])
    host.call('call 0').finish()
    await host.settle()
    expect(host.calls.map(({ name }) => name)).toEqual(['call 0', 'last'])
  })

  it.each([
    ['websocket', 'Browser instance disconnected'],
    ['mcp', 'MCP server instance disconnected'],
    ['local', 'In-process instance disconnected'],
  ] as const)('of an instance of kind %s says: %s', async (kind, message) => {
    host.instances.connect({ ...localInstance({ id: 'other', tools: [] }), kind })
    host.submit('a', { instanceId: 'other' })
    await host.instances.disconnect('other')
    expect(host.completes()).toMatchObject([{ error: { code: 'INSTANCE_DISCONNECTED', message } }])
  })

  it('does not touch other instances', async () => {
    host.connect('two')
    const here = host.submit('a', { instanceId: 'one' })
    const there = host.submit('b', { instanceId: 'two' })
    await host.settle()
    void host.instances.disconnect('two')
    host.call('a').finish()
    await host.settle()
    expect([here, there].map((id) => host.tasks.getTask(id)!.status)).toEqual(['completed', 'failed'])
  })
})

describe('a lane', () => {
  it('S3: runs one command at a time, tasks in the order of their submission', async () => {
    const ids = ['a', 'b', 'c'].map((name) => host.submit([name, `${name}2`]))
    for (const name of ['a', 'a2', 'b', 'b2', 'c', 'c2']) {
      await host.settle()
      expect(host.calls.at(-1)!.name).toBe(name)
      host.call(name).finish()
    }
    await host.settle()
    expect(host.completes().map(({ taskId }) => taskId)).toEqual(ids)
    expect(host.calls).toHaveLength(6)
  })

  it('S3: does not wait for other lanes', async () => {
    host.connect('two')
    host.submit('a', { instanceId: 'one' })
    host.submit('b', { instanceId: 'two' })
    await host.settle()
    expect(host.calls.map(({ instanceId, name }) => `${instanceId} ${name}`)).toEqual(['one a', 'two b'])
  })

  it('S9: does not keep tasks that are submitted and cancelled behind a long one', async () => {
    host.submit('long')
    await host.settle()
    for (let n = 0; n < 100; n += 1) host.tasks.cancelTask(host.submit(`task ${n}`))
    expect(host.completes()).toHaveLength(100)
    expect([...host.tasks.laneDepths]).toEqual([['one', 1]])
  })

  it('S9: is removed when it has nothing to do', async () => {
    host.submit('a')
    await host.settle()
    expect([...host.tasks.laneDepths]).toEqual([['one', 1]])
    host.call('a').finish()
    await host.settle()
    expect(host.tasks.laneDepths.size).toBe(0)
  })
})

describe('a late result', () => {
  it('S4: affects no other call, and is dropped and counted', async () => {
    const first = host.submit('a')
    const second = host.submit('b')
    await host.settle()
    host.tasks.cancelTask(first)
    host.clock.advance(2000)
    await host.settle()
    const [late, present] = [host.call('a'), host.call('b')]
    const before = host.told.length
    late.progress(5)
    late.finish('late')
    await host.settle()
    expect(host.told).toHaveLength(before)
    expect(host.tasks.getTask(second)!.commands[0]).toMatchObject({ status: 'running' })
    expect(host.tasks.lateResults).toBe(1)
    expect(host.onError).toHaveBeenCalledWith(expect.any(Error), { source: 'late-result', taskId: first })
    present.finish('own')
    await host.settle()
    expect(host.completes().at(-1)).toMatchObject({
      taskId: second,
      results: [{ result: { content: [{ text: 'own' }] } }],
    })
  })

  it('S4: late progress is dropped, and is not taken for that of the next command', async () => {
    const reports: ((progress: { progress: number }) => void)[] = []
    const instance: Instance = {
      id: 'chatty',
      kind: 'local',
      listTools: () => Promise.resolve([]),
      callTool: ({ name, onProgress }) => {
        reports.push(onProgress)
        return name === 'first' ? Promise.resolve({ content: [] }) : new Promise(() => undefined)
      },
      onLost: () => undefined,
      close: () => Promise.resolve(),
    }
    host.instances.connect(instance)
    const commands = [{ tool_name: 'first' }, { tool_name: 'second' }]
    host.tasks.submitTask({ task_name: 't', instanceId: 'chatty', commands })
    await host.settle()
    const before = host.told.length
    reports[0]!({ progress: 1 })
    expect(host.told).toHaveLength(before)
    reports[1]!({ progress: 1 })
    expect(host.told.slice(before)).toMatchObject([{ commandId: 'cmd_2', progress: 1 }])
  })

  it('S4: progress of a cancelled command is dropped, although its call goes on', async () => {
    const reports: ((progress: { progress: number }) => void)[] = []
    host.instances.connect({
      ...localInstance({ id: 'stubborn', tools: [] }),
      callTool: ({ onProgress }) => {
        reports.push(onProgress)
        return new Promise(() => undefined)
      },
    })
    const id = host.submit('a', { instanceId: 'stubborn' })
    await host.settle()
    host.tasks.cancelTask(id)
    reports[0]!({ progress: 1 })
    expect(host.story(id)).toEqual(['cmd_1 running', 'cancelled'])
  })

  it('S4: after the disposal has begun is counted, and not reported', async () => {
    host.submit('a')
    await host.settle()
    const disposed = host.tasks.dispose()
    host.call('a').finish('late')
    await disposed
    expect(host.tasks.lateResults).toBe(1)
    expect(host.onError).not.toHaveBeenCalled()
  })

  it('S4: within the grace period is dropped and counted, too', async () => {
    const id = host.submit('a')
    await host.settle()
    host.tasks.cancelTask(id)
    host.call('a').finish('late')
    await host.settle()
    expect(host.tasks.getTask(id)).toMatchObject({ status: 'cancelled', commands: [{ status: 'skipped' }] })
    expect(host.tasks.getTask(id)!.commands[0]!.result).toBeUndefined()
    expect(host.tasks.lateResults).toBe(1)
  })
})

describe('listeners', () => {
  it('S6: one that throws or rejects is reported and stops no other', async () => {
    const boom = new Error('boom')
    const throwing = (): void => {
      throw boom
    }
    await rehost()
    const { tasks } = host
    const heard: string[] = []
    for (const handler of [throwing, (() => Promise.reject(boom)) as () => void]) {
      tasks.on('progress', handler)
      tasks.on('complete', handler)
    }
    tasks.progress$.subscribe(throwing)
    tasks.complete$.subscribe(throwing)
    tasks.on('progress', ({ status }) => heard.push(status))
    tasks.on('complete', ({ status }) => heard.push(status))
    tasks.submitTask({ task_name: 't', commands: [{ tool_name: 'step', args: { name: 'a' } }] })
    await host.settle()
    host.call('a').finish()
    await host.settle()
    expect(heard).toEqual(['running', 'success', 'completed'])
    expect(host.onError).toHaveBeenCalledTimes(9)
  })

  it('S7: may submit and cancel, and receive the messages about that after the present one', async () => {
    const order: string[] = []
    let second = ''
    host.tasks.on('complete', ({ taskId, status }) => {
      order.push(`${taskId === second ? 'second' : 'first'} ${status}`)
      if (second !== '') return
      second = host.submit('b')
      host.tasks.cancelTask(second)
      order.push('cancelled from inside')
    })
    host.submit('a')
    await host.settle()
    host.call('a').finish()
    await host.settle()
    expect(order).toEqual(['first completed', 'cancelled from inside', 'second cancelled'])
  })

  it('S7: receive the first message about a task after its submit has returned', async () => {
    const heard = vi.fn()
    host.submit('a')
    host.tasks.on('progress', heard)
    await host.settle()
    expect(heard).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ status: 'running' }))
  })

  it('are not called after they were removed, also by another listener', async () => {
    const second = vi.fn()
    const first = (): void => void host.tasks.off('complete', second)
    host.tasks.on('complete', first).on('complete', second)
    host.tasks.cancelTask(host.submit('a'))
    expect(second).not.toHaveBeenCalled()
  })
})

describe('the capacity of a queue', () => {
  it('S8: counts tasks that have not ended', async () => {
    await rehost({ maxQueueSize: 2 })
    const first = host.submit('a')
    const second = host.submit('b')
    const third = { task_name: 't', commands: [{ tool_name: 'step', args: { name: 'c' } }] }
    expect(host.tasks.submitTask(third)).toEqual({
      code: 'QUEUE_FULL',
      error: 'Task queue is full (max 2, maxQueueSize)',
    })
    host.tasks.cancelTask(second)
    expect(host.tasks.submitTask(third)).toMatchObject({ queuePosition: 2 })
    expect(host.tasks.submitTask(third)).toMatchObject({ code: 'QUEUE_FULL' })
    await host.settle()
    host.call('a').finish()
    await host.settle()
    expect(host.tasks.getTask(first)!.status).toBe('completed')
    expect(host.tasks.submitTask(third)).toMatchObject({ queuePosition: 2 })
  })

  it('S8: is counted for each instance', async () => {
    await rehost({ maxQueueSize: 1 })
    host.connect('two')
    host.submit('a', { instanceId: 'one' })
    host.submit('b', { instanceId: 'two' })
    expect(() => host.submit('c', { instanceId: 'two' })).toThrow('QUEUE_FULL')
  })

  it('S8: is 100 by default', () => {
    for (let n = 0; n < 100; n += 1) host.submit(`task ${n}`)
    expect(() => host.submit('one more')).toThrow('QUEUE_FULL: Task queue is full (max 100, maxQueueSize)')
  })

  it('S8: of 0 accepts no task', async () => {
    await rehost({ maxQueueSize: 0 })
    expect(() => host.submit('a')).toThrow('QUEUE_FULL: Task queue is full (max 0, maxQueueSize)')
  })

  it('counts the queue position from 1, among tasks that have not ended', () => {
    const place = () =>
      (host.tasks.submitTask({ task_name: 't', commands: [{ tool_name: 'step' }] }) as { queuePosition: number })
        .queuePosition
    expect([place(), place(), place()]).toEqual([1, 2, 3])
  })
})

describe('a submit that is refused', () => {
  const refusal = (message: unknown) => host.tasks.submitTask(message as TaskSubmitMessage)
  const commands = [{ tool_name: 'step' }]

  it('changes nothing and returns the reason', async () => {
    expect(refusal({ task_name: 't', commands: [] })).toEqual({
      code: 'NO_COMMANDS',
      error: 'Task must have at least one command',
    })
    expect(refusal({ task_name: 't', commands, instanceId: 'two' })).toEqual({
      code: 'INVALID_INSTANCE',
      error: 'Instance not found: two. Known instances: one.',
    })
    expect(refusal({ commands })).toEqual({
      code: 'INVALID_TASK',
      error: 'task.task_name: got undefined, expected a string.',
    })
    expect(refusal({ task_name: 't', commands: [{ tool_name: 'x', args: 'y' }] })).toEqual({
      code: 'INVALID_TASK',
      error: 'task.commands[0].args: got "y", expected a record.',
    })
    expect(refusal({ task_name: 't', commands, dependsOn: [] })).toMatchObject({
      error: expect.stringContaining('task.dependsOn: got an empty array, expected a known field') as string,
    })
    expect(refusal({ task_name: 't', commands: [{ tool_name: 'x', timeoutMs: 5 }] })).toMatchObject({
      error: expect.stringContaining('task.commands[0].timeoutMs: got 5, expected a known field') as string,
    })
    expect(refusal(null)).toMatchObject({ code: 'INVALID_TASK' })
    await host.instances.disconnect('one')
    expect(refusal({ task_name: 't', commands })).toEqual({ code: 'NO_INSTANCE', error: 'No instance is connected' })
    expect(host.tasks.listTasks()).toEqual([])
    expect(host.told).toEqual([])
  })

  it.each([
    ['task.commands[0].args', { commands: [{ tool_name: 'step', args: nested(101) }] }],
    ['task.metadata', { commands, metadata: nested(101) }],
  ])('refuses a value that is nested too deep to arrive as it is: %s', (field, message) => {
    expect(refusal({ task_name: 't', ...message })).toEqual({
      code: 'INVALID_TASK',
      error: `${field}: got a value with more than 100 levels, expected at most 100 levels.`,
    })
    expect(host.tasks.listTasks()).toEqual([])
  })

  it('takes arguments of a hundred levels, and passes all of them', async () => {
    const args = nested(100)
    const id = host.submit([], { commands: [{ tool_name: 'step', args }] })
    expect(host.tasks.getTask(id)?.commands[0]?.args).toEqual(args)
    await host.settle()
  })

  it('NOT_CONNECTED: its instance is registered and not connected', () => {
    host.instances.connect({
      id: 'late',
      kind: 'websocket',
      listTools: () => Promise.resolve([]),
      callTool: () => Promise.reject(new Error('no')),
      onLost: () => undefined,
      connection: { timing: {}, onEvent: () => undefined, failCalls: () => undefined },
      close: () => Promise.resolve(),
    })
    expect(refusal({ task_name: 't', commands, instanceId: 'late' })).toEqual({
      code: 'NOT_CONNECTED',
      error: 'Instance not connected: late',
    })
  })
})

describe('a task without an instanceId', () => {
  function setUp(offers: Readonly<Record<string, readonly string[]>>) {
    const instances = new InstanceManager()
    const tasks = new TaskManager({ instances })
    onTestFinished(async () => {
      await tasks.dispose()
      await instances.dispose()
    })
    for (const [id, tools] of Object.entries(offers)) {
      instances.connect(localInstance({ id, tools: tools.map((name) => ({ name, execute: () => name })) }))
    }
    const submit = (...tools: string[]) =>
      tasks.submitTask({ task_name: 't', commands: tools.map((tool_name) => ({ tool_name })) })
    const chosen = (...tools: string[]): string | undefined => {
      const answer = submit(...tools)
      return 'taskId' in answer ? tasks.getTask(answer.taskId)?.instanceId : answer.code
    }
    return { instances, submit, chosen }
  }

  it('goes to the first connected instance that has all its tools', async () => {
    const { instances, submit, chosen } = setUp({ one: ['a'], two: ['b'], both: ['b', 'a'] })
    expect([chosen('a'), chosen('b'), chosen('a', 'b', 'a')]).toEqual(['one', 'two', 'both'])
    await instances.disconnect('both')
    expect(submit('a', 'b')).toEqual({
      code: 'NO_INSTANCE',
      error: 'No connected instance has all tools of the task (a, b): one (has no b), two (has no a).',
    })
  })

  it('goes to the first whose tools are not known, if none is known to have them', () => {
    const { instances, chosen } = setUp({ one: ['a'], two: ['b'] })
    instances.connect({ ...localInstance({ id: 'quiet', tools: [] }), toolNames: undefined })
    instances.connect({ ...localInstance({ id: 'last', tools: [] }), toolNames: undefined })
    expect([chosen('b'), chosen('c')]).toEqual(['two', 'quiet'])
  })

  it('goes to an MCP server that may have more tools by now, and to the only instance in any case', () => {
    const mcp = { ...localInstance({ id: 'mcp', tools: [] }), kind: 'mcp' as const }
    const { instances, chosen } = setUp({ one: ['a'] })
    expect(chosen('c')).toBe('one')
    instances.connect(mcp)
    expect([chosen('a'), chosen('c')]).toEqual(['one', 'mcp'])
  })
})

describe('retention', () => {
  const end = async (name: string): Promise<string> => {
    const id = host.submit(name)
    await host.settle()
    host.call(name).finish()
    await host.settle()
    return id
  }

  it('S9: keeps an ended task for an hour', async () => {
    const id = await end('a')
    host.clock.advance(3_600_000)
    expect(host.tasks.getTask(id)).toBeDefined()
    host.clock.advance(3_600_000)
    expect(host.tasks.getTask(id)).toBeUndefined()
    expect(host.clock.pending).toBe(0)
  })

  it('S9: keeps the latest maxRetained ended tasks, and all others', async () => {
    await rehost({ maxRetained: 2 })
    host.connect('two')
    const live = host.submit('live', { instanceId: 'two' })
    const ended = [await end('a'), await end('b'), await end('c')]
    expect(host.tasks.listTasks().map(({ id }) => id)).toEqual([ended[2], ended[1], live])
  })

  it('S9: keeps 1000 ended tasks by default', () => {
    const first = host.submit('a')
    host.tasks.cancelTask(first)
    for (let n = 0; n < 999; n += 1) host.tasks.cancelTask(host.submit(`task ${n}`))
    expect(host.tasks.getTask(first)).toBeDefined()
    host.tasks.cancelTask(host.submit('one more'))
    expect(host.tasks.getTask(first)).toBeUndefined()
    expect(host.tasks.listTasks()).toHaveLength(1000)
  })

  it('S9: keeps a task until its complete was emitted', async () => {
    await rehost({ maxRetained: 1 })
    const known: boolean[] = []
    host.tasks.on('complete', ({ taskId }) => known.push(host.tasks.getTask(taskId) !== undefined))
    host.submit('a')
    host.submit('b')
    host.submit('c')
    void host.instances.disconnect('one')
    expect(known).toEqual([true, true, true])
    expect(host.tasks.listTasks()).toHaveLength(1)
  })

  it('cleanupTasks removes tasks that ended longer ago than maxAge, and returns how many', async () => {
    await end('a')
    host.clock.advance(100)
    await end('b')
    expect(host.tasks.cleanupTasks(99)).toBe(1)
    expect(host.tasks.listTasks()).toHaveLength(1)
  })

  it('cleanupTasks throws for a maxAge that is not a number, and removes nothing', async () => {
    await end('a')
    host.clock.advance(100)
    expect(() => host.tasks.cleanupTasks(NaN)).toThrow('maxAge: got NaN, expected a number')
    expect(host.tasks.listTasks()).toHaveLength(1)
    expect(host.tasks.cleanupTasks(Infinity)).toBe(0)
  })

  it('lists by instance and status, newest first, and takes `all` for any status', async () => {
    host.connect('two')
    const a = host.submit('a', { instanceId: 'two' })
    const b = host.submit('b', { instanceId: 'one' })
    const c = host.submit('c', { instanceId: 'two' })
    await host.settle()
    expect(host.tasks.listTasks().map(({ id }) => id)).toEqual([c, b, a])
    expect(host.tasks.listTasks(undefined, 'all').map(({ id }) => id)).toEqual([c, b, a])
    expect(host.tasks.listTasks('two').map(({ id }) => id)).toEqual([c, a])
    expect(host.tasks.listTasks('two', 'all').map(({ id }) => id)).toEqual([c, a])
    expect(host.tasks.listTasks('two', 'queued').map(({ id }) => id)).toEqual([c])
    expect(host.tasks.listTasks(undefined, 'running').map(({ id }) => id)).toEqual([b, a])
  })
})

describe('an instance manager', () => {
  it('S3: belongs to one task manager until that is disposed and its last command has ended', async () => {
    const { instances, clock } = host
    const another = () => new TaskManager({ instances, clock })
    expect(another).toThrow(
      expect.objectContaining({
        code: 'INSTANCES_IN_USE',
        message: expect.stringMatching(/^options\.instances: /) as string,
      }),
    )
    host.submit('a')
    await host.settle()
    const disposed = host.tasks.dispose()
    await host.settle()
    expect(another).toThrow(/two commands of one instance at the same time/)
    host.call('a').finish()
    await disposed
    const next = another()
    expect(next.submitTask({ task_name: 't', commands: [{ tool_name: 'step' }] })).toMatchObject({ queuePosition: 1 })
    await host.settle()
    host.calls.at(-1)?.finish()
    await next.dispose()
  })

  it('is free when an option of its task manager was refused', async () => {
    const instances = new InstanceManager()
    expect(() => new TaskManager({ instances, abortGraceMs: -1 })).toThrow(/abortGraceMs/)
    await new TaskManager({ instances }).dispose()
    await instances.dispose()
  })

  it('is free when the store of its task manager cannot be opened', async () => {
    const instances = new InstanceManager()
    const broken: Store = {
      ...memoryStore(),
      open: () => {
        throw new Error('no disk')
      },
    }
    expect(() => new TaskManager({ instances, store: broken })).toThrow('no disk')
    await new TaskManager({ instances }).dispose()
    await instances.dispose()
  })
})

describe('dispose', () => {
  it('S1: cancels the tasks that have not ended and emits that, also inside a handler', async () => {
    const first = host.submit('a')
    const second = host.submit('b')
    let disposed: Promise<void> | undefined
    host.tasks.on('complete', () => {
      disposed ??= host.tasks.dispose()
    })
    await host.settle()
    const streamed: string[] = []
    host.tasks.complete$.subscribe(({ taskId }) => streamed.push(taskId))
    host.tasks.cancelTask(first)
    expect(host.completes().map(({ taskId }) => taskId)).toEqual([first, second])
    expect(streamed).toEqual([first, second])
    host.call('a').fail(new Error('stopped'))
    await disposed
    expect(host.tasks.submitTask({ task_name: 't', commands: [{ tool_name: 'step' }] })).toMatchObject({
      code: 'NO_INSTANCE',
    })
  })

  it('completes the streams, after the last event', async () => {
    const ends: string[] = []
    host.tasks.progress$.subscribe({ complete: () => ends.push('progress$') })
    host.tasks.complete$.subscribe({ next: () => ends.push('a task'), complete: () => ends.push('complete$') })
    host.tasks.submitted$.subscribe({ complete: () => ends.push('submitted$') })
    host.submit('a')
    await host.tasks.dispose()
    expect(ends[0]).toBe('a task')
    expect(ends.slice(1).sort()).toEqual(['complete$', 'progress$', 'submitted$'])
  })

  it('waits for aborted calls, each time it is called', async () => {
    host.submit('a')
    await host.settle()
    const done = vi.fn()
    const both = Promise.all([host.tasks.dispose(), host.tasks.dispose()]).then(done)
    await host.settle()
    expect(done).not.toHaveBeenCalled()
    host.call('a').finish()
    await both
  })

  it('is called by `await using`', async () => {
    const { tasks } = host
    {
      await using used = tasks
      host.submit('a')
      await host.settle()
      host.call('a').finish()
      expect(used).toBe(tasks)
    }
    expect(() => host.submit('b')).toThrow('The task manager was disposed.')
  })
})

it('an option out of its range throws', () => {
  expect(() => new TaskManager({ instances: host.instances, maxQueueSize: -1 })).toThrow(/maxQueueSize/)
  expect(() => new TaskManager({ instances: host.instances, commandTimeout: 0 })).toThrow(/commandTimeout/)
})
