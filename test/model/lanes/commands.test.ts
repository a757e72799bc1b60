/** The lane half of the race kit, as its user meets it: own wiring, own instances, own commands, and what a failure says. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'
import type { TaskCompleteMessage } from '../../../src/protocol/command-tasks.js'
import type { LaneInstance, LaneSettings } from './actions.js'
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

describe('the lane commands of the race kit', () => {
  it('run against a task manager that its user makes, with listeners of his own and instances that he names', async () => {
    const instances: readonly LaneInstance[] = [
      { id: 'browser', kind: 'websocket' },
      { id: 'printer', kind: 'local' },
    ]
    const ends: TaskCompleteMessage[] = []
    let wrapped = 0
    let steps = 0
    await fc.assert(
      fc.asyncProperty(
        fc.commands(laneCommands({ instances, afterEach: () => (steps += 1) }), { size: '+1' }),
        (commands) =>
          fc.asyncModelRun(
            () =>
              createLanePair({
                settings,
                instances,
                createTaskManager: (options) =>
                  new TaskManager(options).on('complete', (message) => void ends.push(message)),
                wrapInstance: (instance) => {
                  wrapped += 1
                  return { ...instance, callTool: (call) => instance.callTool(call) }
                },
              }),
            commands,
          ),
      ),
      seeds,
    )
    expect(new Set(ends.map(({ instanceId }) => instanceId))).toEqual(new Set(['browser', 'printer']))
    expect(wrapped).toBeGreaterThan(30)
    expect(steps).toBeGreaterThan(100)
  })

  it('mix with commands of a user, who acts on both sides and compares them', async () => {
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
      fc.asyncProperty(fc.commands([...laneCommands(), fc.constant(drop)], { size: '+1' }), (commands) =>
        fc.asyncModelRun(() => createLanePair({ settings }), commands),
      ),
      seeds,
    )
    expect(answered).toBeGreaterThan(0)
  })

  it('say what was done, what the model expects and what came instead', async () => {
    const { model, real } = createLanePair({
      settings,
      createTaskManager: (options) => new TaskManager({ ...options, maxQueueSize: 0 }),
    })
    await expect(submit.run(model, real)).rejects.toThrow(
      /^the answer differs after \{"do":"submit".*\nexpected: .*"queuePosition":1.*\nactual: {3}.*"QUEUE_FULL"/,
    )
    expect(String(submit)).toBe('{"do":"submit","commands":[{"tool":"returns"}]}')
  })

  it('notice what happened on one side alone, and records that can be changed', async () => {
    const aside = createLanePair({ settings })
    aside.real.tasks.submitTask({ task_name: 'aside', commands: [{ tool_name: 'waits' }] })
    await expect(compareLanes(aside.model, aside.real, 'nothing')).rejects.toThrow(
      'what was told differs after nothing',
    )
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

  it('end when the task manager never does', async () => {
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

  it('take time only as a command: a listener cannot', () => {
    const { model, real } = createLanePair({ settings })
    expect(() => model.act({ do: 'advance', ms: 1 })).toThrow('advance takes time')
    expect(real.act({ do: 'advance', ms: 1 })).toEqual({
      threw: expect.stringContaining('advance takes time') as string,
    })
  })

  it('show a lost promise of the host as what it threw', () => {
    const real: LaneHost = createLanePair({ settings }).real
    expect(real.act({ do: 'connect', instance: 'x' })).toEqual({ threw: 'INSTANCE_ID_IN_USE' })
  })
})
