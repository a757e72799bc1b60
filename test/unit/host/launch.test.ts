/** `tasks.launch`: what it returns at once, and what it refuses. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createAgentTasks, TaskFailedError } from '../../../src/index.js'
import { setUp, settle } from './launched-tasks.js'
import { DisposedError, InvalidInputError, TaskLimitError } from '../../../src/errors.js'
import { ownerOfRun } from '../../../src/parts.js'

describe('a launch', () => {
  it('H2: returns a handle at once, with the id and the record of its task', async () => {
    const { tasks, manager, runs } = setUp({ owner: 'anna' })
    const handle = tasks.launch('worker', 'work', { id: 'w-1', timeoutMs: 1000 })
    expect(handle.id).toBe('w-1')
    expect(handle.record).toBe(manager.getTask('w-1'))
    expect(handle.record).toMatchObject({
      status: 'running',
      subagentName: 'worker',
      goalPrompt: 'work',
      owner: 'anna',
      timeoutMs: 1000,
    })
    await settle()
    runs[0]?.resolve('done')
    await settle()
    expect(handle.record).toBe(manager.getTask('w-1'))
    expect(handle.record).toMatchObject({ status: 'completed', output: { final_message: 'done' } })
  })

  it('H2: belongs to the owner that it names, or to the run that it names', async () => {
    const { tasks, runs } = setUp({ owner: 'anna' })
    expect(tasks.launch('echo', 'hi', { owner: 'ben' }).record.owner).toBe('ben')
    const parent = tasks.launch('worker', 'work')
    await settle()
    expect(runs).toHaveLength(1)
    expect(tasks.launch('echo', 'hi', { parentId: parent.id }).record).toMatchObject({
      owner: ownerOfRun(parent.id),
      parentId: parent.id,
    })
  })

  it('H2: passes the context to the subagent', async () => {
    const run = vi.fn(() => 'done')
    const tasks = createAgentTasks({ subagents: { worker: run } })
    onTestFinished(() => tasks.dispose())
    await tasks.launch('worker', 'work', { context: { file: 'a.txt' } }).result
    expect(run).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ subagent: 'worker', goal: 'work', context: { file: 'a.txt' } }),
      expect.anything(),
    )
  })

  it('H2: with an unknown subagent throws INVALID_INPUT, which names those that there are', () => {
    const resolveSubagent = vi.fn()
    const { tasks, manager } = setUp({ resolveSubagent })
    const launch = (name: string) => (): unknown => tasks.launch(name as 'echo', 'hi')
    expect(launch('ech')).toThrow(InvalidInputError)
    expect(launch('ech')).toThrow('name: got "ech", expected one of echo, worker; the nearest is echo.')
    expect(launch('b')).toThrow('name: got "b", expected one of echo, worker.')
    expect(launch('toString')).toThrow('name: got "toString", expected one of echo, worker.')
    expect(launch(undefined as never)).toThrow('name: got undefined, expected one of echo, worker.')
    expect(() => tasks.launch('echo', undefined as never)).toThrow('goal: got undefined, expected a string.')
    expect(resolveSubagent).not.toHaveBeenCalled()
    expect(manager.getAllTasks()).toEqual([])
    const empty = createAgentTasks()
    onTestFinished(() => empty.dispose())
    expect(() => empty.launch('echo', 'hi')).toThrow(
      'name: got "echo", expected the name of a subagent (there are none).',
    )
  })

  it('H2: with a wrong option throws INVALID_INPUT, and launches nothing', () => {
    const { tasks, manager } = setUp()
    expect(() => tasks.launch('echo', 5 as never)).toThrow(InvalidInputError)
    expect(() => tasks.launch('echo', 'hi', { timeout: 5 } as never)).toThrow('input.timeout')
    expect(manager.getAllTasks()).toEqual([])
  })

  it('H2: at the limit, and with a full queue, throws TASK_LIMIT', () => {
    const { tasks } = setUp({ maxAsyncTasks: 1, queue: { max: 1 } })
    tasks.launch('worker', 'first')
    expect(() => tasks.launch('worker', 'second')).toThrow(TaskLimitError)
    expect(() => tasks.launch('worker', 'second')).toThrow(
      "Max async tasks (1) reached. Set whenFull: 'queue' to let launches wait, or raise maxAsyncTasks.",
    )
    // The manager keeps its text, which tools show to models.
    expect(() => tasks.manager.launch({ subagentName: 'a', goalPrompt: 'g' }, () => 'x')).toThrow(new TaskLimitError(1))
    expect(tasks.launch('worker', 'second', { whenFull: 'queue' }).record.status).toBe('queued')
    expect(() => tasks.launch('worker', 'third', { whenFull: 'queue' })).toThrow(new TaskLimitError(1, 1))
  })

  it('H2: throws DISPOSED after dispose', async () => {
    const { tasks } = setUp()
    await tasks.dispose()
    expect(() => tasks.launch('echo', 'hi')).toThrow(DisposedError)
  })

  it('H2: of a task that waits for a slot resolves when that has run', async () => {
    const { tasks, runs } = setUp({ maxAsyncTasks: 1, whenFull: 'queue' })
    tasks.launch('worker', 'first')
    const { result } = tasks.launch('worker', 'second')
    await settle()
    runs[0]?.resolve('one')
    await settle()
    runs[1]?.resolve('two')
    await expect(result).resolves.toEqual({ final_message: 'two' })
  })

  it('H2: of a task whose runs are repeated settles once, with the last of them', async () => {
    const { tasks, clock, runs } = setUp()
    const retry = { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 100 } } as const
    const settled = vi.fn()
    const { result } = tasks.launch('worker', 'work', { retry })
    result.then(settled, settled)
    await settle()
    runs[0]?.reject(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' }))
    await settle()
    expect(settled).not.toHaveBeenCalled()
    clock.advance(1000)
    await settle()
    runs[1]?.reject(new Error('broken'))
    await settle()
    expect(settled).toHaveBeenCalledExactlyOnceWith(expect.any(TaskFailedError))
  })

  it('H2: has a handle although its task ends, and is pruned, before it returns', async () => {
    const { tasks, manager } = setUp({ maxAsyncTasks: 0 })
    const abortController = new AbortController()
    abortController.abort()
    const handle = tasks.launch('worker', 'work', { isForeground: true, abortController })
    expect(manager.getTask(handle.id)).toBeUndefined()
    expect(handle.record.status).toBe('cancelled')
    await expect(handle.result).rejects.toMatchObject({ code: 'TASK_CANCELLED' })
  })
})

describe('detach', () => {
  it('F14: moves a task that was launched in the foreground, and says why it moves another', async () => {
    const { tasks, manager, runs } = setUp({ maxAsyncTasks: 2 })
    const handle = tasks.launch('worker', 'work', { isForeground: true })
    expect(handle.record.isForeground).toBe(true)
    expect(handle.detach()).toEqual({ detached: true })
    expect(handle.record).not.toHaveProperty('isForeground')
    expect(manager.actor.getSnapshot().slots).toBe(1)
    const reason = `Task "${handle.id}" is in the background already.`
    expect([handle.detach(), tasks.detach(handle.id)]).toEqual([
      { detached: false, reason },
      { detached: false, reason },
    ])
    await settle()
    runs[0]?.resolve('done')
    await handle.result
    expect(handle.detach()).toMatchObject({ detached: false, reason: expect.stringContaining('has ended') as string })
  })

  it('F14: says that the task has ended, also when its record was pruned', () => {
    const { tasks } = setUp({ maxAsyncTasks: 0 })
    const abortController = new AbortController()
    abortController.abort()
    const handle = tasks.launch('worker', 'work', { isForeground: true, abortController })
    const reason = `Task ${handle.id} has ended: it is cancelled.`
    expect(handle.detach()).toEqual({ detached: false, reason })
  })
})

it('has the manager and the reminders as properties', () => {
  const { tasks } = setUp()
  expect(tasks.manager).toBe(tasks.getAsyncTaskManager())
  expect(tasks.reminders).toBe(tasks.getAsyncTaskReminderService())
})
