/** The commands of the lane model themselves: what they notice, and what their errors say. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'
import type { LaneSettings } from './actions.js'
import { compareLanes, createLanePair, laneCommand, laneCommands } from './commands.js'
import type { LaneCommand } from './commands.js'
import type { LaneHost } from './host.js'

const settings: LaneSettings = {
  commandTimeout: 200,
  maxQueueSize: 5,
  abortGraceMs: 50,
  retentionMs: 5000,
  maxRetained: 100,
}

const submit = laneCommand({ do: 'submit', commands: [{ tool: 'returns' }] })
const seeds = { seed: 7, numRuns: 30 }

describe('the commands of the lanes', () => {
  it('run together with other commands that act on both sides', async () => {
    let answered = 0
    const drop: LaneCommand = {
      check: (model) => Object.keys(model.observe().depths).length > 0,
      run: async (model, host) => {
        for (const instance of Object.keys(model.observe().depths)) {
          model.act({ do: 'dropTasks', instance })
          host.tasks.handleInstanceDisconnect(instance)
        }
        await compareLanes(model, host, 'all tasks are dropped')
        answered += 1
      },
      toString: () => 'drop all',
    }
    await fc.assert(
      fc.asyncProperty(fc.commands([laneCommands(), fc.constant(drop)], { size: '+1' }), (commands) =>
        fc.asyncModelRun(() => createLanePair({ settings }), commands),
      ),
      seeds,
    )
    expect(answered).toBeGreaterThan(0)
  })

  it('report the action, what the model expects and what came instead', async () => {
    const { model, real } = createLanePair({
      settings,
      createTaskManager: (options) => new TaskManager({ ...options, maxQueueSize: 0 }),
    })
    await expect(submit.run(model, real)).rejects.toThrow(
      /^the answer differs after \{"do":"submit".*\nexpected: .*"queuePosition":1.*\nactual: {3}.*"QUEUE_FULL"/,
    )
    expect(String(submit)).toBe('{"do":"submit","commands":[{"tool":"returns"}]}')
  })

  it('notice an event on one side only, and records that are not frozen', async () => {
    const aside = createLanePair({ settings })
    aside.real.tasks.submitTask({ task_name: 'aside', commands: [{ tool_name: 'waits' }] })
    await expect(compareLanes(aside.model, aside.real, 'nothing')).rejects.toThrow('the log differs after nothing')
    const open = createLanePair({
      settings,
      createTaskManager: (options) => {
        const manager = new TaskManager(options)
        const list = manager.listTasks.bind(manager)
        manager.listTasks = (...which) => list(...which).map((task) => ({ ...task }))
        return manager
      },
    })
    await expect(submit.run(open.model, open.real)).rejects.toThrow('the record of task_0_1 is not frozen')
  })

  it('end when the task manager does not come to rest', async () => {
    const { model, real } = createLanePair({
      settings,
      createTaskManager: (options) => {
        const manager = new TaskManager(options)
        const next = (): void => {
          manager.submitTask({ task_name: 'again', commands: [{ tool_name: 'returns' }] })
        }
        return manager.on('complete', next)
      },
    })
    await expect(submit.run(model, real)).rejects.toThrow('does not come to rest')
  })

  it('do not let a script advance the clock', () => {
    const { model, real } = createLanePair({ settings })
    expect(() => model.act({ do: 'advance', ms: 1 })).toThrow('advance takes time')
    expect(real.act({ do: 'advance', ms: 1 })).toEqual({
      threw: expect.stringContaining('advance takes time') as string,
    })
  })

  it('show the code of an error as the answer', () => {
    const real: LaneHost = createLanePair({ settings }).real
    expect(real.act({ do: 'connect', instance: 'x' })).toEqual({ threw: 'INSTANCE_ID_IN_USE' })
  })
})
