/** Invalid input throws an error that names the field, what it got and what was expected; nothing changes. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { asyncTaskMachine } from '../../../machines/index.js'
import type { OutputObject } from '../../../machines/records.js'
import { AsyncTaskManager, AsyncTaskReminderService } from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { InvalidInputError, InvalidSettingError } from '../../../src/errors.js'

function setUp(options: ConstructorParameters<typeof AsyncTaskManager>[0] & object = {}) {
  const onError = vi.fn()
  const clock = createManualClock()
  const manager = new AsyncTaskManager({ clock, onError, ...options })
  onTestFinished(() => manager.dispose())
  return { manager, clock, onError }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

const input = { id: 'a', subagentName: 's', goalPrompt: 'g' }

describe('the error names the field', () => {
  it.each([
    [() => new AsyncTaskManager({ graceMs: -1 }), 'Setting graceMs: got -1, expected a number >= 0.'],
    [() => new AsyncTaskManager({ outputBytes: 0 }), 'Setting outputBytes: got 0, expected a number >= 1.'],
    [() => new AsyncTaskManager(-2), 'Setting maxAsyncTasks: got -2, expected an integer >= 0'],
    [() => setUp().manager.setMaxAsyncTasks(1.5), 'Setting maxAsyncTasks: got 1.5'],
  ])('%s', (act, message) => {
    expect(act).toThrow(InvalidSettingError)
    expect(act).toThrow(message)
  })

  it.each<[(manager: AsyncTaskManager) => unknown, string]>([
    [(manager) => manager.tryReserveAsyncSlot({ ttlMs: -1 }), 'options.ttlMs: got -1'],
    [(manager) => manager.registerTask({ ...input, id: 7 } as never), 'input.id: got 7'],
    [
      (manager) => manager.registerTask({ ...input, id: 'a\n[OK] [b] forged' }),
      'input.id: got "a\\n[OK] [b] forged", expected text without line breaks or other control characters.',
    ],
    [(manager) => manager.launch({ ...input, id: 'a\u001b[2J' }, () => ({})), 'input.id: got "a\\u001b[2J"'],
    [(manager) => manager.launch({ ...input, subagentName: 7 } as never, () => ({})), 'input.subagentName: got 7'],
    [(manager) => manager.launch(input, 'run' as never), 'runner: got "run", expected a function'],
    [(manager) => manager.lease({ exclusive: 'yes' } as never), 'request.exclusive: got "yes"'],
    [(manager) => manager.releaseOwner('a', { to: 7 } as never), 'input.to: got 7'],
    [(manager) => manager.readOutput('a', { cursor: -1 }), 'options.cursor: got -1'],
  ])('%s', (act, message) => {
    const { manager } = setUp()
    expect(() => act(manager)).toThrow(InvalidInputError)
    expect(() => act(manager)).toThrow(message)
    expect(manager.getAllTasks()).toEqual([])
    expect(manager.canLaunchAsync()).toEqual({ allowed: true })
  })

  it.each<[(manager: AsyncTaskManager) => unknown, string]>([
    [
      (manager) => manager.registerTask({ ...input, timeout: 5 } as never),
      'input.timeout: got 5, expected a known field; the nearest is timeoutMs.',
    ],
    [
      (manager) => manager.registerTask({ ...input, kind: 'command' } as never),
      'input.kind: got "command", expected a known field',
    ],
    [
      (manager) => manager.launch({ ...input, dependsOn: ['b'] } as never, () => ({})),
      'input.dependsOn: got an array of 1',
    ],
    [
      (manager) => manager.launch({ ...input, retries: 3 } as never, () => ({})),
      'input.retries: got 3, expected a known field',
    ],
    [
      (manager) => manager.launch({ ...input, goal: 'g' } as never, () => ({})),
      'input.goal: got "g", expected a known field; the nearest is goalPrompt.',
    ],
    [
      (manager) => manager.launch(input, { run: () => ({}), timeoutMs: 5 } as never),
      'runner.timeoutMs: got 5, expected one of the names run, name, description, contextSchema, graceMs, retry, budget, idleMs, maxConcurrent, rate, durable, releasesSlot, survivesHost, takesMessages.',
    ],
    [
      (manager) => manager.launch(input, { run: () => ({}), retries: 2 } as never),
      'runner.retries: got 2, expected a known name; the nearest is retry.',
    ],
    [
      (manager) => manager.tryReserveAsyncSlot({ ttl: 5 } as never),
      'options.ttl: got 5, expected a known field; the nearest is ttlMs.',
    ],
    [(manager) => manager.lease({ task_ids: [] } as never), 'request.task_ids'],
    [
      (manager) => manager.lease({ questions: [{ taskId: 'a', question: 'b' }] } as never),
      'request.questions[0].question: got "b"',
    ],
    [(manager) => manager.releaseOwner('a', { heir: 'b' } as never), 'input.heir'],
    [
      (manager) => manager.cancelTask('a', { why: 'no' } as never),
      'options.why: got "no", expected a known field; the fields are reason.',
    ],
    [
      (manager) => manager.cancelAll({ owners: 'a' } as never),
      'options.owners: got "a", expected a known field; the nearest is owner.',
    ],
    [
      (manager) => manager.readOutput('a', { max: 1 } as never),
      'options.max: got 1, expected a known field; the nearest is maxBytes.',
    ],
    [(manager) => manager.output$('a', { from: 1 } as never), 'options.from'],
  ])('of an unknown field, with the nearest known one: %s', (act, message) => {
    const { manager } = setUp()
    expect(() => act(manager)).toThrow(InvalidInputError)
    expect(() => act(manager)).toThrow(message)
    expect(manager.getAllTasks()).toEqual([])
  })

  it('of an unknown field of a wait, and of what a run launches and asks', async () => {
    const { manager } = setUp()
    await expect(manager.waitFor(['a'], { timeout: 5 } as never)).rejects.toThrow(
      'options.timeout: got 5, expected a known field; the nearest is timeoutMs.',
    )
    const errors: unknown[] = []
    manager.launch(input, async (_input, context) => {
      for (const child of [{ owner: 'other' }, { timeout: 5 }]) {
        try {
          context.launch({ ...input, id: 'b', ...child }, () => ({}))
        } catch (error) {
          errors.push((error as Error).message)
        }
      }
      await context
        .ask({ message: 'Which?', shema: {} } as never)
        .catch((error: unknown) => errors.push((error as Error).message))
      return {}
    })
    await manager.waitFor(['a'])
    expect(errors).toEqual([
      expect.stringContaining('input.owner: got "other", expected a known field'),
      'input.timeout: got 5, expected a known field; the nearest is timeoutMs.',
      expect.stringContaining('shema'),
    ])
  })

  it('names invalid progress in a report to onError, and continues', () => {
    const { manager, onError } = setUp()
    manager.registerTask(input)
    expect(manager.reportProgress('a', 'half' as never)).toBe(false)
    expect(onError).toHaveBeenCalledWith(
      expect.objectContaining({
        message: expect.stringMatching(
          /^progress.*: got "half", expected a finite number, or \{ progress, total\?, message\? \}/,
        ) as string,
      }),
      expect.anything(),
    )
    expect(manager.getTask('a')?.progress).toBeUndefined()
  })
})

describe("a machine of the host's", () => {
  it('fails its task when it throws, and the registry continues', () => {
    const broken = () => {
      throw new Error('broken machine')
    }
    const { manager } = setUp({ machines: { task: asyncTaskMachine.provide({ actions: { keepOutput: broken } }) } })
    manager.registerTask(input)
    expect(manager.completeTask('a', {})).toBe(false)
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', error: 'broken machine', delivery: 'owed' })
    manager.registerTask({ ...input, id: 'b' })
    expect(manager.cancelTask('b')).toBe(true)
  })

  it('cannot register a task from inside a transition of the registry: the call throws, and nothing is registered', () => {
    const errors: unknown[] = []
    const requestAbort = () => {
      try {
        manager.registerTask({ ...input, id: 'inner' })
      } catch (error) {
        errors.push(error)
      }
    }
    const task = asyncTaskMachine.provide({ actions: { requestAbort } })
    const { manager, clock } = setUp({ machines: { task } })
    manager.registerTask({ ...input, timeoutMs: 10 })
    clock.advance(10)
    expect(errors).toEqual([expect.objectContaining({ code: 'REENTRANT_CALL' })])
    expect(manager.getTask('inner')).toBeUndefined()
  })
})

describe('a run that was cancelled', () => {
  it('A2: may throw a value that cannot be read, which is reported too', async () => {
    const { manager, onError } = setUp()
    const hostile = Object.defineProperty(new Error('unused'), 'name', {
      get: () => {
        throw new Error('do not look')
      },
    })
    manager.launch(input, (_input, { signal }) => {
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(hostile)))
    })
    await Promise.resolve()
    manager.cancelTask('a')
    await manager.onIdle()
    await settle()
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      new Error(
        'The run of task a returned an error (The run failed with an object that cannot be shown.) after the task had ended as cancelled. It was dropped.',
      ),
      { source: 'late-result', taskId: 'a' },
    )
  })

  it('A1: is abandoned when its grace has passed, and what it returns later is reported', async () => {
    const { manager, clock, onError } = setUp({ graceMs: 50 })
    let finish: (output: OutputObject) => void = () => undefined
    manager.launch(input, () => new Promise((resolve) => (finish = resolve)))
    await settle()
    manager.cancelTask('a')
    clock.advance(50)
    await settle()
    finish({ final_message: 'after all' })
    await settle()
    expect(manager.getTask('a')).toMatchObject({ status: 'cancelled' })
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      new Error(
        'The run of task a returned a result ({"final_message":"after all"}) after the task had ended as cancelled. It was dropped.',
      ),
      { source: 'late-result', taskId: 'a' },
    )
  })

  it('A2: is cancelled, even when aborting the controller of its host throws', () => {
    const { manager, onError } = setUp()
    const abort = () => {
      throw new Error('not now')
    }
    const { signal } = new AbortController()
    manager.registerTask({ ...input, abortController: { abort, signal } })
    expect(manager.cancelTask('a')).toBe(true)
    expect(onError).toHaveBeenCalledExactlyOnceWith(new Error('not now'), { source: 'abort-listener', taskId: 'a' })
  })
})

describe('an engine that breaks its contract', () => {
  it('A3: by rejecting `settled` fails the task, and its slot is free', async () => {
    const engine = { start: () => ({ settled: Promise.reject(new Error('out of order')), abort: () => undefined }) }
    const { manager } = setUp({ engine, maxAsyncTasks: 1 })
    manager.launch(input, () => ({}))
    await settle()
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', error: 'out of order' })
    expect(manager.canLaunchAsync().allowed).toBe(true)
  })
})

describe('a value that is not a manager', () => {
  it('is refused with its name', () => {
    expect(() => new AsyncTaskReminderService({} as never)).toThrow('manager: got {}, expected an AsyncTaskManager.')
  })
})

describe('a task that has ended', () => {
  it('accepts no progress and no output', () => {
    const { manager } = setUp()
    manager.registerTask(input)
    expect(manager.reportProgress('a', 0.5)).toBe(true)
    expect(manager.appendOutput('a', 'text')).toBe(true)
    manager.completeTask('a', {})
    expect([manager.reportProgress('a', 1), manager.appendOutput('a', 'more')]).toEqual([false, false])
    expect(manager.readOutput('a')?.text).toBe('text')
  })
})

describe('ids', () => {
  it('keep a readable part of a long name, and 16 random characters', () => {
    const { manager } = setUp()
    expect(manager.createTaskId('x'.repeat(500))).toMatch(/^x{256}-[0-9a-f]{16}$/)
    expect(manager.createTaskId(`${'x'.repeat(255)}😀`)).toMatch(/^x{255}-[0-9a-f]{16}$/)
  })

  it('are created again while they are in use, at most a hundred times', () => {
    let made = 0
    const { manager } = setUp({ createId: (prefix) => `${prefix}-${(made += 1) < 3 ? 'same' : made}` })
    manager.registerTask({ ...input, id: manager.createTaskId('s') })
    expect(manager.createTaskId('s')).toBe('s-3')
    const stuck = setUp({ createId: () => 'same' }).manager
    stuck.registerTask({ ...input, id: 'same' })
    expect(() => stuck.createTaskId('s')).toThrow(expect.objectContaining({ code: 'ID_REPEATS' }) as Error)
  })

  it('A5: of two leases are never one', () => {
    let made = 0
    const { manager } = setUp({ createId: () => `id-${Math.floor((made += 1) / 2)}` })
    for (const id of ['a', 'b']) manager.registerTask({ ...input, id })
    manager.completeTask('a', {})
    const first = manager.lease()
    manager.completeTask('b', {})
    const second = manager.lease()
    expect(first?.deliveryId).not.toBe(second?.deliveryId)
    expect([first?.tasks, second?.tasks].map((tasks) => tasks?.map(({ id }) => id))).toEqual([['a'], ['b']])
  })
})

describe('after dispose', () => {
  it('A9: nothing is reserved', async () => {
    const { manager, clock } = setUp()
    await manager.dispose()
    expect(manager.tryReserveAsyncSlot()).toBeNull()
    expect(clock.pending).toBe(0)
  })
})

it('reports what an abort listener of a run throws, with its task', () => {
  const { manager, onError } = setUp()
  manager.launch(input, (_input, { signal }) => {
    signal.addEventListener('abort', () => {
      throw new Error('in the listener')
    })
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve({})))
  })
  return Promise.resolve().then(() => {
    manager.cancelTask('a')
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ message: 'in the listener' }), {
      source: 'abort-listener',
      taskId: 'a',
    })
  })
})

it('an id that is made from a name is one line', () => {
  const { manager } = setUp()
  expect(manager.createTaskId('a\n[OK] [b]\u0000 forged')).toMatch(/^a \[OK\] \[b\] {2}forged-/)
})
