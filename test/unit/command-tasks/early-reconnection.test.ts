/**
 * A disconnect handler that runs before the task manager's connects another instance with the same id and submits a task to it. Only the
 * tasks of the lost instance fail.
 */
import { setImmediate } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'
import { InstanceManager } from '../../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

/** @param onReconnected is called by the early handler after it has connected and submitted */
function setUp(onReconnected: (instances: InstanceManager) => void = () => undefined) {
  const clock = createManualClock(10_000)
  const instances = new InstanceManager({ clock })
  const ran: string[] = []
  const ended: string[] = []
  const connect = () =>
    instances.connect(
      localInstance({
        id: 'one',
        clock,
        tools: [
          {
            name: 'step',
            execute: (input, { signal }) => {
              const { name } = input as { name: string }
              ran.push(name)
              return name === 'new'
                ? name
                : new Promise((resolve) => signal.addEventListener('abort', () => resolve('late')))
            },
          },
        ],
      }),
    )
  const submit = (name: string): void => {
    const result = tasks.submitTask({ task_name: name, commands: [{ tool_name: 'step', args: { name } }] })
    if ('error' in result) throw new Error(result.error)
  }
  let hasReturned = false
  instances.onDisconnect(() => {
    if (hasReturned) return
    hasReturned = true
    connect()
    submit('new')
    onReconnected(instances)
  })
  const tasks = new TaskManager({ clock, instances, onError: () => undefined })
  tasks.on('complete', ({ taskId, status, error }) =>
    ended.push(`${tasks.getTask(taskId)!.name}: ${error?.code ?? status}`),
  )
  onTestFinished(async () => {
    hasReturned = true
    await Promise.all([tasks.dispose(), instances.dispose()])
  })
  connect()
  submit('old 1')
  submit('old 2')
  return { tasks, instances, ran, ended }
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await setImmediate()
}

it('S3: the tasks of the lost instance fail, and the task of the new one runs', async () => {
  const { instances, ran, ended } = setUp()
  await settle()
  void instances.disconnect('one')
  await settle()
  expect(ended).toEqual(['old 1: INSTANCE_DISCONNECTED', 'old 2: INSTANCE_DISCONNECTED', 'new: completed'])
  expect(ran).toEqual(['old 1', 'new'])
})

it('S1: all fail, once each, when the new instance is lost before the handler of the task manager runs', async () => {
  const { instances, ran, ended } = setUp((all) => void all.disconnect('one'))
  await settle()
  void instances.disconnect('one')
  await settle()
  expect(ended).toEqual(['old 1', 'old 2', 'new'].map((name) => `${name}: INSTANCE_DISCONNECTED`))
  expect(ran).toEqual(['old 1'])
})

it('handleInstanceDisconnect fails every task of the id, also those of an earlier instance', async () => {
  const { tasks, ended } = setUp()
  await settle()
  tasks.handleInstanceDisconnect('one')
  expect(ended).toEqual(['old 1: INSTANCE_DISCONNECTED', 'old 2: INSTANCE_DISCONNECTED'])
})
