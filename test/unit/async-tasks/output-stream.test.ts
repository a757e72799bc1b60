/** What a task writes, as a stream, and what is kept of it when the task is stopped. */
import { describe, expect, it, vi } from 'vitest'
import { AsyncTaskManager, AsyncTaskReminderService, createAgentTasks, type AsyncTaskManagerOptions } from 'agent-tasks'
import { memoryStore } from 'agent-tasks/store'
import { createCheckAsyncTasksTool } from 'agent-tasks/tools'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function setUp(options: AsyncTaskManagerOptions = {}) {
  const clock = createManualClock()
  const onError = vi.fn()
  const manager = new AsyncTaskManager({ clock, onError, graceMs: 0, ...options })
  const register = (id: string) =>
    manager.registerTask({ id, subagentName: 'writer', goalPrompt: 'write', timeoutMs: 1000 })
  const follow = (id: string, cursor?: number) => {
    const seen: unknown[] = []
    const subscription = manager.output$(id, cursor === undefined ? {} : { cursor }).subscribe({
      next: ({ taskId, text, cursor: at }) => seen.push([taskId, text, at]),
      complete: () => seen.push('end'),
    })
    return { seen, subscription }
  }
  return { clock, onError, manager, register, follow }
}

describe('a stream of output', () => {
  it('F2: begins with what is kept, goes on with what is written, and ends with its task', () => {
    const { manager, register, follow } = setUp()
    register('a')
    manager.appendOutput('a', 'one ')
    const { seen } = follow('a')
    const { seen: later } = follow('a', 2)
    manager.appendOutput('a', 'twö')
    expect(later).toEqual([
      ['a', 'e ', 4],
      ['a', 'twö', 8],
    ])
    manager.completeTask('a', {})
    expect(seen).toEqual([['a', 'one ', 4], ['a', 'twö', 8], 'end'])
    expect(follow('a').seen).toEqual([['a', 'one twö', 8], 'end'])
    expect(follow('unknown').seen).toEqual(['end'])
  })

  it('F2: waits for its cursor, and reads on where readOutput has ended', () => {
    const { manager, register, follow } = setUp()
    register('a')
    manager.appendOutput('a', 'one two')
    const { nextCursor = 0 } = manager.readOutput('a', { maxBytes: 3 }) ?? {}
    expect(follow('a', nextCursor).seen).toEqual([['a', ' two', 7]])
    const ahead = follow('a', 9)
    manager.appendOutput('a', ' three')
    expect(ahead.seen).toEqual([['a', 'hree', 13]])
  })

  it('F2: keeps nothing for a subscriber, which loses what is no longer kept', () => {
    const { manager, register, follow } = setUp({ outputBytes: 4 })
    register('a')
    const { seen } = follow('a')
    manager.appendOutput('a', 'abcdef')
    manager.appendOutput('a', 'g')
    expect(seen).toEqual([
      ['a', 'cdef', 6],
      ['a', 'g', 7],
    ])
  })

  it('F2: has the order of the writes for everyone, also when a subscriber writes', () => {
    const { manager, register } = setUp()
    register('a')
    const [first, second]: string[][] = [[], []]
    manager.output$('a').subscribe(({ text }) => {
      first!.push(text)
      if (text === 'one') manager.appendOutput('a', 'two')
    })
    manager.output$('a').subscribe(({ text }) => second!.push(text))
    manager.appendOutput('a', 'one')
    expect(first!.join('')).toBe('onetwo')
    expect(second!.join('')).toBe('onetwo')
  })

  it('F2: has what a subscriber has written before it ended the task, and then its end, for everyone', () => {
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1 })
    manager.registerTask({ id: 'a', subagentName: 'agent', goalPrompt: 'goal' })
    const seen: string[] = []
    for (const name of ['first', 'second']) {
      manager.output$('a').subscribe({
        next: ({ text }) => {
          seen.push(`${name} ${text}`)
          if (name !== 'first' || text !== 'one') return
          manager.appendOutput('a', 'two')
          manager.completeTask('a', {})
        },
        complete: () => seen.push(`${name} ends`),
      })
    }
    manager.appendOutput('a', 'one')
    const of = (name: string) => seen.filter((each) => each.startsWith(name))
    expect(of('first')).toEqual(['first one', 'first two', 'first ends'])
    expect(of('second').join('').replaceAll('second ', '')).toBe('onetwoends')
  })

  it('F2: does not go deeper for each part that a subscriber writes', () => {
    const { manager, register } = setUp()
    register('a')
    let parts = 0
    manager.output$('a').subscribe(() => {
      parts += 1
      if (parts < 20_000) manager.appendOutput('a', 'x')
    })
    manager.appendOutput('a', 'x')
    expect(parts).toBe(20_000)
  })

  it('A2: the exception of a subscriber is reported, and the others are notified', () => {
    const { manager, register, follow, onError } = setUp()
    register('a')
    manager.output$('a').subscribe(() => {
      throw new Error('mine')
    })
    const { seen } = follow('a')
    manager.appendOutput('a', 'x')
    expect(onError).toHaveBeenCalledWith(new Error('mine'), { source: 'stream', taskId: 'a' })
    expect(seen).toEqual([['a', 'x', 1]])
  })

  it('A9: ends with its subscription, and with the manager', async () => {
    const { manager, register, follow } = setUp()
    register('a')
    const { seen, subscription } = follow('a')
    const other = follow('a')
    subscription.unsubscribe()
    manager.appendOutput('a', 'x')
    expect(seen).toEqual([])
    await manager.dispose()
    expect(other.seen).toEqual([['a', 'x', 1], 'end'])
    expect(follow('a').seen.at(-1)).toBe('end')
  })

  it('K2: ends when the end of its task is stored', async () => {
    const store = memoryStore()
    const write = vi.spyOn(store, 'write')
    const { clock, manager, register, follow } = setUp({ store })
    register('a')
    await manager.stored()
    const { seen } = follow('a')
    write.mockImplementation(() => {
      throw new Error('full')
    })
    manager.completeTask('a', {})
    await expect(manager.stored()).rejects.toThrow('could not be written')
    const late = follow('a')
    expect([seen, late.seen]).toEqual([[], []])
    write.mockRestore()
    clock.advance(60_000)
    await manager.stored()
    expect([seen, late.seen]).toEqual([['end'], ['end']])
    await manager.dispose()
  })

  it('refuses a cursor that is none', () => {
    const { manager } = setUp()
    expect(() => manager.output$('a', { cursor: -1 })).toThrow('options.cursor: got -1')
  })
})

describe('a synchronous call', () => {
  it('F2: passes what its task writes to onUpdate, until it returns', async () => {
    const { tools } = createAgentTasks({
      subagents: {
        writer: async (_request, context) => {
          context.append('one\n')
          await Promise.resolve()
          context.append('two\n')
          return { final_message: 'done' }
        },
      },
    })
    const onUpdate = vi.fn()
    const { llmContent } = await tools.task.execute({ subagent_name: 'writer', goal_prompt: 'write' }, { onUpdate })
    expect(onUpdate.mock.calls).toEqual([[{ text: 'one\n', cursor: 4 }], [{ text: 'two\n', cursor: 8 }]])
    expect(llmContent).toContain('done')
  })

  it('F2: passes nothing on once it has returned', async () => {
    const { tools, getAsyncTaskManager } = createAgentTasks({
      subagents: {
        asker: async (_request, context) => {
          context.append('one')
          await context.ask('Go on?')
          context.append('two')
          return {}
        },
      },
    })
    const onUpdate = vi.fn()
    const { metadata } = await tools.task.execute({ subagent_name: 'asker', goal_prompt: 'ask' }, { onUpdate })
    const id = String(metadata?.['agentId'])
    const manager = getAsyncTaskManager()
    manager.answerTask(id, 'question-1', { action: 'decline' })
    await manager.waitFor([id])
    expect(manager.readOutput(id)?.text).toBe('onetwo')
    expect(onUpdate.mock.calls).toEqual([[{ text: 'one', cursor: 3 }]])
  })

  it('A2: what onUpdate throws or rejects with is reported, and changes nothing', async () => {
    const onError = vi.fn()
    const { tools } = createAgentTasks({
      onError,
      subagents: { writer: (_request, context) => (context.append('one'), { final_message: 'done' }) },
    })
    const params = { subagent_name: 'writer', goal_prompt: 'write' }
    const broken = () => {
      throw new Error('thrown')
    }
    expect((await tools.task.execute(params, { onUpdate: broken })).error).toBeUndefined()
    expect(
      (await tools.task.execute(params, { onUpdate: () => Promise.reject(new Error('rejected')) })).error,
    ).toBeUndefined()
    expect(onError.mock.calls.map(([error]) => String(error))).toEqual(['Error: thrown', 'Error: rejected'])
  })
})

describe('a task that was stopped', () => {
  it('F2: that was cancelled keeps the end of what it wrote, and a peek shows it', async () => {
    const { manager, register } = setUp({ notifyCancelled: true })
    register('a')
    manager.appendOutput('a', `${'x'.repeat(2000)}\nlast line\n`)
    manager.cancelTask('a')
    const { outputTail = '' } = manager.getTask('a') ?? {}
    expect(outputTail).toHaveLength(1000)
    expect(outputTail.endsWith('x\nlast line')).toBe(true)
    expect(manager.readOutput('a', { cursor: 1999 })?.text).toBe('x\nlast line\n')
    expect(new AsyncTaskReminderService(manager).generateReminder()).toContain('last line"\n}')
    const check = createCheckAsyncTasksTool({ getAsyncTaskManager: () => manager })
    expect((await check.execute({ task_id: 'a' })).metadata).toMatchObject({ status: 'cancelled', outputTail })
  })

  it('F2: that exceeded its deadline shows it in its message', () => {
    const { clock, manager, register } = setUp()
    register('a')
    manager.appendOutput('a', 'step 1\nstep 2\n')
    clock.advance(1001)
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', outputTail: 'step 1\nstep 2' })
    expect(new AsyncTaskReminderService(manager).generateReminder()).toContain(
      String.raw`"output_tail": "step 1\nstep 2"`,
    )
  })

  it('F2: keeps it across a crash', async () => {
    const store = memoryStore()
    const { manager, register } = setUp({ store })
    register('a')
    manager.appendOutput('a', 'step 1')
    manager.cancelTask('a')
    await manager.dispose()
    const next = setUp({ store }).manager
    expect(next.getTask('a')).toMatchObject({ status: 'cancelled', outputTail: 'step 1' })
    await next.dispose()
  })

  it('F2: has none where its message ends with it, or where it wrote nothing', () => {
    const { clock, manager, register } = setUp({ maxAsyncTasks: -1 })
    for (const id of ['completed', 'failed', 'blank', 'silent']) register(id)
    for (const id of ['completed', 'failed']) manager.appendOutput(id, 'text')
    manager.appendOutput('blank', ' \n')
    manager.completeTask('completed', {})
    manager.failTask('failed', 'broken')
    manager.cancelTask('blank')
    clock.advance(1001)
    for (const task of manager.getAllTasks()) expect(task).not.toHaveProperty('outputTail')
  })

  it('F2: a command keeps its end however it ended, unless its result or its error ends with it', () => {
    const end = (written: string, finish: (manager: AsyncTaskManager) => unknown): string | undefined => {
      const { manager } = setUp()
      const never = (): Promise<never> => new Promise(() => undefined)
      const task = { id: 'a', kind: 'command', command: ['make'], subagentName: 'shell', goalPrompt: 'make' } as const
      manager.launch(task, never)
      manager.appendOutput('a', written)
      finish(manager)
      return manager.getTask('a')?.outputTail
    }
    const complete = (output: { final_message?: string }) => (manager: AsyncTaskManager) =>
      manager.completeTask('a', output)
    const fail = (error: string) => (manager: AsyncTaskManager) => manager.failTask('a', error)
    expect(end('line 1\nline 2\n', complete({ final_message: 'done' }))).toBe('line 1\nline 2')
    expect(end('line 2\n', complete({ final_message: 'line 1\nline 2\n \n' }))).toBeUndefined()
    expect(end('line 1\n', complete({ final_message: 'line 1\nline 2' }))).toBe('line 1')
    expect(end('line 1', complete({}))).toBe('line 1')
    expect(end('line 1', fail('exit code 1: line 1'))).toBeUndefined()
    expect(end('line 1', fail('exit code 1'))).toBe('line 1')
    expect(end(' \n', complete({ final_message: 'done' }))).toBeUndefined()
    expect(end('line 1', (manager) => manager.cancelTask('a'))).toBe('line 1')
  })
})
