/** What a failed run threw: as it was for the host, and in words, by name and by code for the model. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import {
  AsyncTaskManager,
  AsyncTaskReminderService,
  type AsyncTaskInfo,
  type OutputObject,
} from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { settle } from '../tools/tool-host.js'
import type { OnError } from '../../../src/isolation/error-report.js'

const input = { id: 'a', subagentName: 'helper', goalPrompt: 'help' }
const reason = Object.assign(new TypeError('bad', { cause: new Error('worse') }), { code: 'ERR_BAD' })

async function fail(thrown: unknown) {
  const onError = vi.fn<OnError>()
  const manager = new AsyncTaskManager({ onError })
  const records: AsyncTaskInfo[] = []
  manager.transitions$.subscribe(({ record }) => records.push(record))
  manager.launch(input, () => {
    throw thrown
  })
  await settle()
  return { manager, records, onError, record: () => manager.getTask('a')! }
}

describe('the record of a failed task', () => {
  it('A8: has what its run threw, through every later change, and not in copies', async () => {
    const { manager, records, record } = await fail(reason)
    expect(record()).toMatchObject({ status: 'failed', error: 'bad', errorName: 'TypeError', errorCode: 'ERR_BAD' })
    manager.lease()?.release()
    manager.releaseOwner('main', { to: 'sub' })
    manager.lease()?.acknowledge()
    const failed = records.filter(({ status }) => status === 'failed')
    expect(failed.map(({ delivery }) => delivery)).toEqual([
      'owed',
      'owed',
      'leased',
      'owed',
      'owed',
      'leased',
      'delivered',
    ])
    for (const each of failed) {
      expect(each.status === 'failed' && each.cause).toBe(reason)
      expect(Object.isFrozen(each)).toBe(true)
      expect({ ...each }).not.toHaveProperty('cause')
    }
    await manager.dispose()
  })

  it('is restored without it, with its name and code', async () => {
    const { manager, record } = await fail(reason)
    const restored = AsyncTaskManager.restore([JSON.parse(JSON.stringify(record())) as never])
    expect(restored.getTask('a')).toMatchObject({ error: 'bad', errorName: 'TypeError', errorCode: 'ERR_BAD' })
    expect(restored.getTask('a')).not.toHaveProperty('cause')
    await Promise.all([manager.dispose(), restored.dispose()])
  })

  it.each<[string, unknown, object]>([
    ['a plain error', new Error('x'), { error: 'x' }],
    ['text', 'x', { error: 'x' }],
    ['a number as code', Object.assign(new Error('x'), { code: 7 }), { error: 'x', errorCode: '7' }],
    [
      'an object that cannot be read',
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('no')
          },
        },
      ),
      { error: 'The run failed with an object that cannot be shown.' },
    ],
  ])('names nothing that is not there: %s', async (_what, thrown, expected) => {
    const { manager, record } = await fail(thrown)
    const { error, errorName, errorCode } = record() as { error?: string; errorName?: string; errorCode?: string }
    expect({
      error,
      ...(errorName !== undefined && { errorName }),
      ...(errorCode !== undefined && { errorCode }),
    }).toEqual(expected)
    await manager.dispose()
  })

  it('has an error that a host without types failed it with', async () => {
    const manager = new AsyncTaskManager()
    manager.registerTask(input)
    manager.failTask('a', reason as never)
    expect(manager.getTask('a')).toMatchObject({ error: 'bad', errorName: 'TypeError' })
    expect((manager.getTask('a') as { cause?: unknown }).cause).toBe(reason)
    await manager.dispose()
  })
})

it('has one line for each problem that a zod schema found', async () => {
  const schema = z.object({ width: z.number(), list: z.array(z.object({ a: z.string().min(2) })) })
  const wrong = { width: 'wide', list: [{ a: 'x' }] }
  const text = 'width: expected number, received string\nlist[0].a: Too small: expected string to have >=2 characters'
  const parse = (): unknown => schema.parse(wrong)
  for (const thrown of [schema.safeParse(wrong).error, thrownBy(parse)]) {
    const { manager, record } = await fail(thrown)
    expect(record()).toMatchObject({ error: text, errorName: 'ZodError' })
    await manager.dispose()
  }
  const { manager, record } = await fail(thrownBy(() => z.string().parse(5)))
  expect(record().error).toBe('expected string, received number')
  await manager.dispose()
})

function thrownBy(fn: () => unknown): unknown {
  try {
    return fn()
  } catch (error) {
    return error
  }
}

it('the model reads the name and the code', async () => {
  const { manager } = await fail(reason)
  expect(new AsyncTaskReminderService(manager).generateReminder()).toContain(
    '"error": "bad",\n  "error_name": "TypeError",\n  "error_code": "ERR_BAD"',
  )
  await manager.dispose()
})

it('a failure that comes too late reaches onError with what was thrown', async () => {
  const onError = vi.fn<OnError>()
  const manager = new AsyncTaskManager({ onError })
  let reject: (thrown: unknown) => void = () => undefined
  manager.launch(input, () => new Promise<never>((_resolve, no) => (reject = no)))
  await settle()
  manager.cancelTask('a')
  reject(reason)
  await settle()
  expect(onError).toHaveBeenCalledWith(expect.objectContaining({ cause: reason }), {
    source: 'late-result',
    taskId: 'a',
  })
  await manager.dispose()
})

describe('what a run does after its task has ended', () => {
  const setUp = () => {
    const onError = vi.fn()
    const manager = new AsyncTaskManager({ clock: createManualClock(), onError })
    let end: { resolve(value: OutputObject): void; reject(reason: unknown): void } | undefined
    manager.launch(
      { id: 'a', subagentName: 'agent', goalPrompt: 'go' },
      () => new Promise((resolve, reject) => (end = { resolve, reject })),
    )
    return { manager, onError, end: () => end }
  }

  it.each(['AbortError', 'TimeoutError'])('is not reported when it stops with an %s', async (name) => {
    const { manager, onError, end } = setUp()
    await settle()
    manager.cancelTask('a')
    end()?.reject(new DOMException('stopped', name))
    await settle()
    expect(onError).not.toHaveBeenCalled()
  })

  it('is not reported when it stops with the reason of the abort', async () => {
    const onError = vi.fn()
    const manager = new AsyncTaskManager({ clock: createManualClock(), onError })
    const abortController = new AbortController()
    manager.launch(
      { ...input, abortController },
      (_input, { signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => setImmediate(() => reject(signal.reason as Error))),
        ),
    )
    await settle()
    abortController.abort(new Error('no longer needed'))
    await new Promise(setImmediate)
    await settle()
    expect(manager.getTask('a')?.status).toBe('cancelled')
    expect(onError).not.toHaveBeenCalled()
  })

  it('is one line on the console, without a stack', async () => {
    const said = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => said.mockRestore())
    const manager = new AsyncTaskManager({ clock: createManualClock() })
    manager.launch(
      input,
      (_input, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('two\nlines')))),
    )
    await settle()
    manager.cancelTask('a')
    await settle()
    expect(said.mock.calls).toEqual([
      [
        '[agent-tasks] late-result of task a:',
        'The run of task a returned an error (two lines) after the task had ended as cancelled. It was dropped.',
      ],
    ])
  })

  it('is reported with its cause otherwise, and not when everything was disposed by then', async () => {
    const { manager, onError, end } = setUp()
    await settle()
    manager.cancelTask('a')
    const cause = new Error('broken')
    end()?.reject(cause)
    await settle()
    expect(onError).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ cause }), {
      source: 'late-result',
      taskId: 'a',
    })
    const late = setUp()
    await settle()
    void late.manager.dispose()
    late.end()?.resolve({ final_message: 'late' })
    await settle()
    expect(late.onError).not.toHaveBeenCalled()
  })
})

it('F12: a run that could not start ends its operation, with the error of its task', async () => {
  const end = vi.fn()
  const operation = { trace: {}, run: (work: () => unknown) => work(), end }
  const telemetry = {
    start: () => operation,
    within: () => undefined,
    current: () => undefined,
    watch: () => () => undefined,
  }
  const start = (): never => {
    throw Object.assign(new Error('no worker'), { code: 'NO_WORKER' })
  }
  const manager = new AsyncTaskManager({ telemetry, engine: { start }, clock: createManualClock() } as never)
  manager.launch(input, () => Promise.resolve({}))
  await settle()
  expect(manager.getTask('a')).toMatchObject({ status: 'failed', error: 'no worker' })
  expect(end).toHaveBeenCalledExactlyOnceWith({ errorType: 'NO_WORKER', error: 'no worker' })
})
