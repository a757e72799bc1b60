/** The contract of lanes: it holds in this process, and finds what is broken. test/cluster/lane-contract.test.ts has it on several nodes. */
import { describe, expect, it } from 'vitest'
import { InstanceManager, localInstance, TaskManager } from '../../../src/server/index.js'
import { laneContract, type LaneSubject } from '../../../src/testing/lane-contract.js'

function inProcess(change: (subject: LaneSubject) => Partial<LaneSubject> = () => ({})): LaneSubject {
  const instances = new InstanceManager()
  const tasks = new TaskManager({ instances, onError: () => undefined })
  const ends: (() => void)[] = []
  const subject: LaneSubject = {
    keepsWaiting: false,
    connect: (id, onCall) => {
      const execute = (args: unknown, { signal }: { readonly signal: AbortSignal }): Promise<object> =>
        new Promise((resolve) => {
          const end = (): void => resolve({})
          ends.push(end)
          onCall({ name: (args as { name: string }).name, signal, end })
        })
      const connect = (): void => void instances.connect(localInstance({ id, tools: [{ name: 'call', execute }] }))
      connect()
      return Promise.resolve({
        cut: () =>
          void instances
            .disconnect(id, 'It was lost.')
            .then(connect)
            .catch(() => undefined),
      })
    },
    submit: (instanceId, name) => {
      const commands = [{ tool_name: 'call', args: { name } }]
      const answer = tasks.submitTask({ task_name: name, instanceId, commands })
      return Promise.resolve('taskId' in answer ? answer.taskId : undefined)
    },
    cancel: (id) => Promise.resolve(tasks.cancelTask(id)),
    ended: (id) =>
      new Promise((resolve) => {
        const look = (): void => {
          const task = tasks.getTask(id)
          if (task?.completedAt === undefined) return
          tasks.off('complete', look)
          resolve({ status: task.status, code: task.error?.code })
        }
        tasks.on('complete', look)
        look()
      }),
    dispose: async () => {
      for (const end of ends) end()
      await tasks.dispose()
      await instances.dispose()
    },
  }
  return { ...subject, ...change(subject) }
}

describe('in this process', () => {
  for (const { name, run } of laneContract(() => inProcess())) it(name, run)
})

describe('what is broken is found', () => {
  const broken: Readonly<Record<string, (subject: LaneSubject) => Partial<LaneSubject>>> = {
    'runs the tasks of an instance one at a time, in the order in which they were accepted': ({ connect }) => ({
      connect: (id, onCall) =>
        connect(id, (call) => {
          onCall(call)
          onCall(call)
        }),
    }),
    'ends a task once, and ignores what comes after its end': () => ({ cancel: () => Promise.resolve(true) }),
    'never starts a task that is cancelled while it waits': () => ({ cancel: () => Promise.resolve(false) }),
    'fails the running task when its instance is lost, ignores its late answer, and keeps the order of the others': ({
      ended,
    }) => ({ ended: async (id) => ({ ...(await ended(id)), code: undefined }) }),
  }
  it.each(Object.keys(broken))('%s', async (name) => {
    const found = laneContract(() => inProcess(broken[name])).find((one) => one.name === name)
    await expect(found?.run()).rejects.toThrow(/got .*, expected/)
  })
})
