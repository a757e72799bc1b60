/** Everything for one host: turns, auto-trigger, settings, and hosts whose busy state is polled or emitted. */
import { BehaviorSubject } from 'rxjs'
import { describe, expect, it, vi } from 'vitest'
import { createAgentTasks, functionRunner, runCommandLine, type AgentTasksOptions } from '../../../src/index.js'
import { InstanceManager, localInstance, TaskManager } from '../../../src/server/index.js'
import { createTaskTool } from '../../../src/tools/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { InvalidInputError, InvalidSettingError } from '../../../src/errors.js'

const settle = () => new Promise((resolve) => setImmediate(resolve))

function setUp(options: AgentTasksOptions = {}) {
  const clock = createManualClock()
  const tasks = createAgentTasks({ clock, onError: vi.fn(), ...options })
  return { clock, tasks, manager: tasks.getAsyncTaskManager() }
}

const input = (id: string, owner?: string) => ({
  id,
  subagentName: 's',
  goalPrompt: 'g',
  ...(owner !== undefined && { owner }),
})

describe('turns of the host', () => {
  it('A5: a turn that accepted its reminder acknowledges what it carried, and nothing that ended since', () => {
    const { tasks, manager } = setUp()
    manager.registerTask(input('a'))
    manager.registerTask(input('b'))
    manager.completeTask('a', { final_message: 'result of a' })
    const { systemInstruction, reminder } = tasks.beforeTurn()
    expect(systemInstruction).toBe('[ASYNC TASKS: 2 total]\n[1] s - [DONE] (a...)\n[2] s - [RUNNING] (b...)')
    expect(reminder?.text).toContain('result of a')
    manager.completeTask('b', { final_message: 'result of b' })
    tasks.afterTurn({ accepted: true })
    expect(manager.getAllTasks().map((task) => task.delivery)).toEqual(['delivered', 'owed'])
  })

  it('A5: after a turn that failed everything is owed', () => {
    const { tasks, manager } = setUp()
    manager.registerTask(input('a'))
    manager.failTask('a', 'broken')
    tasks.beforeTurn()
    expect(manager.getPendingNotifications()).toEqual([])
    tasks.afterTurn({ accepted: false })
    expect(manager.getPendingNotifications()).toHaveLength(1)
    tasks.afterTurn({ accepted: true }) // the turn has ended
    expect(manager.getPendingNotifications()).toHaveLength(1)
  })

  it('A6: the next turn takes over a lease that was never ended', () => {
    const { tasks, manager } = setUp()
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    const first = tasks.beforeTurn().reminder
    const second = tasks.beforeTurn().reminder
    expect(second?.taskIds).toEqual(['a'])
    expect(second?.deliveryId).toBe(first?.deliveryId)
    first?.release() // too late: this lease has ended
    expect(manager.getPendingNotifications()).toEqual([])
    tasks.afterTurn(undefined, { accepted: true })
    expect(manager.getPendingNotifications()).toEqual([])
  })

  it('keeps the turns of owners apart', () => {
    const { tasks, manager } = setUp()
    manager.registerTask(input('mine'))
    manager.registerTask(input('theirs', 'sub'))
    manager.completeTask('mine', {})
    manager.completeTask('theirs', {})
    expect(tasks.beforeTurn('sub').reminder?.taskIds).toEqual(['theirs'])
    expect(tasks.beforeTurn().reminder?.taskIds).toEqual(['mine'])
    tasks.afterTurn('sub', { accepted: true })
    tasks.afterTurn({ accepted: false })
    expect(manager.getPendingNotifications().map((task) => task.id)).toEqual(['mine'])
  })

  it('A5: a turn that never ends holds its results for turnTimeoutMs, and an acceptance after that counts', async () => {
    const onError = vi.fn()
    const { tasks, manager, clock } = setUp({ turnTimeoutMs: 60_000, onError })
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    const { reminder } = tasks.beforeTurn()
    clock.advance(59_999)
    expect(manager.getPendingNotifications()).toEqual([])
    clock.advance(1)
    expect(manager.getPendingNotifications()).toHaveLength(1)
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      new Error(
        'A turn of main has not ended within 60000 ms, so its results will be delivered again. Call afterTurn, or use withTurn.',
      ),
      { source: 'turn-timeout', owner: 'main', deliveryId: reminder?.deliveryId },
    )
    tasks.afterTurn({ accepted: true })
    expect(manager.getPendingNotifications()).toEqual([])
    expect(clock.pending).toBe(0)
  })

  it('A9: a turn that has ended, or is disposed, leaves no timer', async () => {
    const { tasks, manager, clock } = setUp()
    for (const accepted of [true, false]) {
      manager.registerTask(input(`a-${accepted}`))
      manager.completeTask(`a-${accepted}`, {})
      tasks.beforeTurn()
      expect(clock.pending).toBe(1)
      tasks.afterTurn({ accepted })
      expect(clock.pending).toBe(0)
    }
    tasks.beforeTurn()
    await tasks.dispose()
    expect(clock.pending).toBe(0)
  })

  it('A5: a reminder that its host has given back by itself is not accepted by the end of its turn', () => {
    const { tasks, manager } = setUp()
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    const { reminder } = tasks.beforeTurn()
    reminder?.release()
    expect(manager.getTask('a')?.delivery).toBe('owed')
    tasks.afterTurn({ accepted: true })
    expect(manager.getTask('a')?.delivery).toBe('owed')
    // It may still have arrived.
    reminder?.acknowledge()
    expect(manager.getTask('a')?.delivery).toBe('delivered')
  })

  it('A5: withTurn delivers what its turn accepted, and returns its result', async () => {
    const { tasks, manager, clock } = setUp()
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    const answer = await tasks.withTurn(async ({ systemInstruction, reminder }) => {
      expect(systemInstruction).toContain('[DONE]')
      expect(manager.getTask('a')?.delivery).toBe('leased')
      await settle()
      return reminder?.taskIds
    })
    expect(answer).toEqual(['a'])
    expect(manager.getTask('a')?.delivery).toBe('delivered')
    expect(clock.pending).toBe(0)
  })

  it('A5: withTurn releases what a failed turn had, and a turn beside it leaves it alone', async () => {
    const { tasks, manager } = setUp()
    manager.registerTask(input('a', 'sub'))
    manager.completeTask('a', {})
    const failed = tasks.withTurn((turn) => {
      expect(turn.reminder?.taskIds).toEqual(['a'])
      expect(tasks.beforeTurn('sub').reminder).toBeUndefined()
      throw new Error('no model')
    }, 'sub')
    await expect(failed).rejects.toThrow('no model')
    expect(manager.getPendingNotifications()).toHaveLength(1)
    await expect(tasks.withTurn(undefined as never)).rejects.toThrow('run: got undefined, expected a function.')
  })

  it('A5: a turn of withTurn that ends leaves the one of beforeTurn beside it alone', async () => {
    const { tasks, manager, clock } = setUp()
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    await tasks.withTurn(() => {
      manager.registerTask(input('b'))
      manager.completeTask('b', {})
      expect(tasks.beforeTurn().reminder?.taskIds).toEqual(['b'])
    })
    tasks.afterTurn({ accepted: true })
    expect(manager.getAllTasks().map(({ delivery }) => delivery)).toEqual(['delivered', 'delivered'])
    expect(clock.pending).toBe(0)
  })

  it('refuses a turnTimeoutMs that is no duration', () => {
    expect(() => setUp({ turnTimeoutMs: 0 })).toThrow(InvalidSettingError)
    expect(() => setUp({ turnTimeoutMs: Number.NaN })).toThrow(InvalidSettingError)
  })

  it('returns an empty instruction and no reminder when there are no tasks', () => {
    expect(setUp().tasks.beforeTurn()).toEqual({ systemInstruction: '' })
  })

  it('refuses an outcome without `accepted`', () => {
    const { tasks } = setUp()
    expect(() => tasks.afterTurn({} as never)).toThrow(InvalidInputError)
    expect(() => tasks.afterTurn('main', undefined as never)).toThrow(
      'outcome.accepted: got undefined, expected true or false.',
    )
  })
})

describe('hosts that report when they are busy', () => {
  async function deliversAll(isPushing: boolean) {
    const delivered: string[] = []
    const busy$ = new BehaviorSubject(true)
    const { tasks, manager, clock } = setUp({
      isAgentBusy: isPushing ? busy$ : () => busy$.value,
      triggerAgentTurn: (_text, { taskIds }) => {
        delivered.push(...taskIds)
      },
    })
    for (const id of ['busy', 'idle', 'later']) manager.registerTask(input(id))
    manager.completeTask('busy', {})
    clock.advance(5_000)
    expect(delivered).toEqual([])
    busy$.next(false)
    clock.advance(1_000)
    await settle()
    manager.completeTask('idle', {})
    clock.advance(1_000)
    await settle()
    busy$.next(true)
    manager.failTask('later', 'no')
    clock.advance(10_000)
    expect(delivered).toEqual(['busy', 'idle'])
    busy$.next(false)
    clock.advance(1_000)
    await settle()
    expect(delivered).toEqual(['busy', 'idle', 'later'])
    expect(manager.getPendingNotifications()).toEqual([])
    await tasks.dispose()
    expect(clock.pending).toBe(0)
  }

  it('A6: every result reaches an agent whose busy state is polled, also those that ended while it was busy', () =>
    deliversAll(false))
  it('A6: every result reaches an agent whose busy state is emitted, also those that ended while it was busy', () =>
    deliversAll(true))

  it('sets the auto-trigger up again by replacing its callbacks', async () => {
    const delivered: string[] = []
    const { tasks, manager, clock } = setUp()
    const offFirst = tasks.setupAsyncTaskAutoTrigger(
      () => true,
      () => void delivered.push('first'),
    )
    const off = tasks.setupAsyncTaskAutoTrigger(
      () => false,
      () => void delivered.push('second'),
    )
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    clock.advance(0)
    await settle()
    expect(delivered).toEqual(['second'])
    off()
    offFirst()
    manager.registerTask(input('b'))
    manager.completeTask('b', {})
    clock.advance(60_000)
    expect(delivered).toEqual(['second'])
  })

  it('A6: an isAgentBusy that returns a promise is awaited', async () => {
    let isBusy = true
    const delivered: string[] = []
    const isAgentBusy = vi.fn(async () => {
      await settle()
      return isBusy
    })
    const { tasks, manager, clock } = setUp({
      isAgentBusy,
      triggerAgentTurn: (_text, { taskIds }) => void delivered.push(...taskIds),
    })
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    clock.advance(0)
    clock.advance(10_000)
    expect(isAgentBusy).toHaveBeenCalledTimes(1)
    await settle()
    await settle()
    expect(delivered).toEqual([])
    isBusy = false
    clock.advance(1_000)
    await settle()
    await settle()
    expect(delivered).toEqual(['a'])
    await tasks.dispose()
    expect(clock.pending).toBe(0)
  })

  it('A6: an unsubscribe function ends its own subscription, and no later one', async () => {
    const delivered: string[] = []
    const { tasks, manager, clock } = setUp()
    const subscribe = () =>
      tasks.setupAsyncTaskAutoTrigger(
        () => false,
        (_text, { taskIds }) => void delivered.push(...taskIds),
      )
    const stale = subscribe()
    stale()
    subscribe()
    stale()
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    clock.advance(0)
    await settle()
    expect(delivered).toEqual(['a'])
    // It shares the present subscription, and ends it.
    subscribe()()
    manager.registerTask(input('b'))
    manager.completeTask('b', {})
    clock.advance(60_000)
    await settle()
    expect(delivered).toEqual(['a'])
    await tasks.dispose()
  })

  it('A6: an agent that turned idle between two polls receives the next result at once', async () => {
    let isBusy = true
    const delivered: string[][] = []
    const { tasks, manager, clock } = setUp({
      isAgentBusy: () => isBusy,
      triggerAgentTurn: (_text, { taskIds }) => void delivered.push([...taskIds]),
      autoTrigger: { pollMs: 60_000 },
    })
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    clock.advance(10)
    isBusy = false
    manager.registerTask(input('b'))
    manager.completeTask('b', {})
    clock.advance(0)
    await settle()
    expect(delivered).toEqual([['a', 'b']])
    await tasks.dispose()
  })

  it('A6: delivers at once when notifyIdle reports that the agent is idle', async () => {
    let isBusy = true
    const delivered: string[] = []
    const { tasks, manager, clock } = setUp()
    tasks.notifyIdle() // there is no trigger yet
    const turn = (text: string) => void delivered.push(text)
    tasks.setupAsyncTaskAutoTrigger(() => isBusy, turn)
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    clock.advance(0)
    await settle()
    isBusy = false
    expect(delivered).toEqual([])
    tasks.notifyIdle()
    clock.advance(0)
    await settle()
    expect(delivered).toHaveLength(1)
    expect(tasks.getAsyncTaskReminderService().hasPendingNotifications()).toBe(false)
    await manager.dispose()
  })

  it('requires both callbacks or neither', () => {
    expect(() => createAgentTasks({ isAgentBusy: () => false })).toThrow('options.triggerAgentTurn: got undefined')
    expect(() => createAgentTasks({ triggerAgentTurn: () => undefined })).toThrow('options.isAgentBusy: got undefined')
  })
})

describe('tools, commands and settings', () => {
  it('runs a subagent by its name, in place and in the background', async () => {
    const { tasks, manager } = setUp({ subagents: { echo: ({ goal }) => ({ final_message: goal }) } })
    const inPlace = await tasks.tools.task.execute({ subagent_name: 'echo', goal_prompt: 'hello' })
    expect(inPlace.llmContent).toContain('"final_message": "hello"')
    const launched = await tasks.tools.task.execute({ subagent_name: 'echo', goal_prompt: 'later', async: true })
    const id = String(launched.metadata?.['agentId'])
    expect(launched.metadata?.['status']).toBe('running')
    const waited = await tasks.tools.wait_for_async_tasks.execute({ task_ids: [id] })
    expect(waited.llmContent).toContain('"final_message": "later"')
    expect(manager.getPendingNotifications()).toEqual([])
    expect((await tasks.tools.check_async_tasks.execute({})).llmContent).toContain('- Completed: 2')
    expect(runCommandLine(tasks.commands, '/tasks')?.text).toContain('[DONE]')
  })

  it('A5: delivers results that JSON cannot hold, and those that follow', async () => {
    const huge = () => Array.from({ length: 600 }, () => 'x'.repeat(1_000_000))
    const texts: string[] = []
    const { tasks, manager, clock } = setUp({
      subagents: {
        list: functionRunner(() => huge() as never),
        fields: () => ({ items: huge() }),
        small: functionRunner(() => 'done'),
      },
      isAgentBusy: () => false,
      triggerAgentTurn: (text) => void texts.push(text),
    })
    const delivered: string[] = []
    manager.transitions$.subscribe(({ kind, to, taskId }) => {
      if (kind === 'delivery' && to === 'delivered') delivered.push(taskId)
    })
    const run = async (...names: string[]): Promise<void> => {
      for (const subagent_name of names) {
        await tasks.tools.task.execute({ subagent_name, goal_prompt: 'go', async: true })
      }
      for (let n = 0; n < 10; n += 1) {
        await settle()
        clock.advance(0)
      }
    }
    await run('list', 'small')
    await run('fields')
    expect(delivered).toHaveLength(3)
    // The texts of all kept records are bounded, but the last one may exceed the limit alone.
    expect(manager.getAllTasks().map(({ subagentName }) => subagentName)).toContain('fields')
    expect(texts.filter((text) => text.length > 20_000)).toEqual([])
    const peek = await tasks.tools.check_async_tasks.execute({ task_id: 'fields' })
    expect(peek.llmContent).toContain('[Cut after')
    expect((await tasks.tools.task.execute({ subagent_name: 'list', goal_prompt: 'go' })).error).toBeUndefined()
    await tasks.dispose()
  })

  it('shows the model every field of an output, and reports a misnamed one to the host, once', async () => {
    const onError = vi.fn()
    const { tasks } = setUp({ onError, subagents: { s: () => ({ finalMessage: 'done', answer: 42 }) } })
    for (let n = 0; n < 2; n += 1) {
      const { llmContent } = await tasks.tools.task.execute({ subagent_name: 's', goal_prompt: 'go' })
      expect(llmContent).toContain('"finalMessage": "done"')
      expect(llmContent).toContain('"answer": 42')
    }
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      new Error('The output of subagent "s" has a field "finalMessage": did you mean final_message?'),
      { source: 'output', taskId: expect.stringMatching(/^s-/) as string },
    )
  })

  it('reports a misnamed field of a task that the host runs itself', () => {
    const onError = vi.fn()
    const { manager } = setUp({ onError })
    manager.registerTask(input('own'))
    manager.completeTask('own', { terminateReason: 'GOAL' })
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      new Error('The output of subagent "s" has a field "terminateReason": did you mean terminate_reason?'),
      { source: 'output', taskId: 'own' },
    )
  })

  it('has the limit on programs that its commands name', () => {
    const { manager } = setUp({ commands: { allow: ['make'], maxCommands: 2 } })
    expect(manager.getMaxCommands()).toBe(2)
    expect(setUp().manager.getMaxCommands()).toBe(5)
  })

  it('does not find a subagent on the prototype', async () => {
    const { tasks } = setUp({ subagents: {} })
    const result = await tasks.tools.task.execute({ subagent_name: 'toString', goal_prompt: 'x' })
    expect(result.error?.type).toBe('parameter_validation')
  })

  it('reads settings from text, changes them, and keeps the old value when the new one is wrong', () => {
    const { tasks, manager } = setUp({ settings: { 'task-max-async': '7' } })
    expect(manager.getMaxAsyncTasks()).toBe(7)
    tasks.setSetting('task-max-async', ' 2 ')
    expect(tasks.getSetting('task-max-async')).toBe(2)
    for (const bad of ['101', '-2', 'many', '', '1.5', Number.NaN]) {
      expect(() => tasks.setSetting('task-max-async', bad)).toThrow(InvalidSettingError)
    }
    expect(() => tasks.setSetting('task-max-async', 101)).toThrow('an integer from -1 to 100 (-1: no limit)')
    expect(() => tasks.setSetting('task-max-timeout-seconds', 0)).toThrow(InvalidSettingError)
    expect(() => createAgentTasks({ settings: { 'task-max': 1 } as never })).toThrow(
      'one of the settings task-max-async',
    )
    expect(tasks.getSetting('task-max-async')).toBe(2)
    expect(tasks.getSetting('task-default-timeout-seconds')).toBe(900)
  })
})

describe('a field that does not exist', () => {
  it.each<[object, string]>([
    [
      { subagents: { a: { run: () => 'x', timeoutMs: 5 } } },
      'options.subagents.a.timeoutMs: got 5, expected one of the names run, name, description, contextSchema, graceMs, retry, budget, idleMs, maxConcurrent, rate, durable, releasesSlot, survivesHost, takesMessages.',
    ],
    [{ subagents: { a: { run: () => 'x', maxConcurent: 2 } } }, 'the nearest is maxConcurrent.'],
    [{ subagents: { a: { run: () => 'x', descripton: 'd' } } }, 'the nearest is description.'],
  ])('is refused in an entry of subagents: %#', (options, message) => {
    expect(() => createAgentTasks(options)).toThrow(message)
  })

  it('is refused in what resolveSubagent returns: the task fails', async () => {
    const { tasks } = setUp({ resolveSubagent: () => ({ run: () => ({}), timeoutMs: 5 }) as never })
    const { error } = await tasks.tools.task.execute({ subagent_name: 'a', goal_prompt: 'g' })
    expect(error?.message).toContain('timeoutMs: got 5, expected one of the names run')
  })

  it('is refused in the outcome of a turn', () => {
    const { tasks } = setUp()
    expect(() => tasks.afterTurn({ accepted: true, delivered: true } as never)).toThrow('outcome.delivered: got true')
  })

  it('is refused in followUps', () => {
    const { manager } = setUp()
    const followUps = { cancel: 'x', answer: { tool: 'a', params: {}, parms: {} } }
    expect(() =>
      createTaskTool({ getAsyncTaskManager: () => manager, resolveSubagent: () => undefined, followUps }),
    ).toThrow('options.followUps.answer.parms')
  })
})

describe('command tasks of the host', () => {
  it('S10: its agent submits commands, and their end wakes it', async () => {
    const messages: string[] = []
    const clock = createManualClock()
    const instances = new InstanceManager({ clock })
    const taskManager = new TaskManager({ instances, clock })
    instances.connect(localInstance({ id: 'calc', tools: [{ name: 'answer', execute: () => '42' }], clock }))
    const tasks = createAgentTasks({
      clock,
      taskManager,
      owner: 'browser-agent',
      settings: { 'task-default-timeout-seconds': 60 },
      isAgentBusy: () => false,
      triggerAgentTurn: (text) => void messages.push(text),
    })
    const launched = await tasks.tools.submit_commands.execute({
      task_name: 'Ask',
      commands: [{ tool_name: 'answer' }],
    })
    expect(launched.metadata).toMatchObject({ status: 'running', effectiveTimeoutSeconds: 60, instanceId: 'calc' })
    while (messages.length === 0) {
      await settle()
      clock.advance(1)
    }
    await settle()
    expect(messages).toEqual([expect.stringContaining('42')])
    expect(tasks.getAsyncTaskManager().getAllTasks()).toMatchObject([{ owner: 'browser-agent', delivery: 'delivered' }])
    await Promise.all([tasks.dispose(), taskManager.dispose(), instances.dispose()])
    expect(clock.pending).toBe(0)
  })

  it('has no such tool without a task manager', () => {
    expect(Object.keys(setUp().tasks.tools)).not.toContain('submit_commands')
  })
})
