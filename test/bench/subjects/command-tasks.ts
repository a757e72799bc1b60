/** Command tasks that do nothing, through one lane or many, and the queues that do as many awaits. */
import fastq from 'fastq'
import PQueue from 'p-queue'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'
import { InstanceManager } from '../../../src/instances/instance-manager.js'
import { localInstance } from '../../../src/instances/local-instance.js'
import type { Subject } from '../subject.js'

export interface Load {
  readonly commands: number
  readonly lanes?: number
}

/** How many tasks are queued at once. */
const QUEUE = 1000

const noop = (): Promise<void> => Promise.resolve()

/** Does `times` things, at most so many of them at once. */
async function inBatches(times: number, each: (count: number) => Promise<unknown>): Promise<undefined> {
  for (let left = times; left > 0; left -= QUEUE) await each(Math.min(left, QUEUE))
  return undefined
}

export function laneTasks({ commands, lanes = 1 }: Load): Subject {
  const instances = new InstanceManager()
  const ids = Array.from({ length: lanes }, (_, at) => `instance-${at}`)
  for (const id of ids) {
    instances.connect(localInstance({ id, tools: [{ name: 'nothing', execute: () => undefined }] }))
  }
  const manager = new TaskManager({ instances, maxQueueSize: QUEUE, maxRetained: 10 })
  let left = 0
  let done = (): void => undefined
  manager.on('complete', () => {
    left -= 1
    if (left === 0) done()
  })
  return {
    run: (times) =>
      inBatches(times, (count) => {
        left = count
        const completed = new Promise<void>((resolve) => (done = resolve))
        for (let n = 0; n < count; n += 1) {
          const submitted = manager.submitTask({
            instanceId: ids[n % lanes],
            task_name: 'task',
            commands: Array.from({ length: commands }, () => ({ tool_name: 'nothing' })),
          })
          if ('error' in submitted) throw new Error(submitted.error)
        }
        return completed
      }),
    close: async () => {
      await manager.dispose()
      await instances.dispose()
    },
  }
}

export function queuedTasks({ commands }: Load): Subject {
  const queue = new PQueue({ concurrency: 1 })
  const work = async (): Promise<void> => {
    for (let n = 0; n < commands; n += 1) await noop()
  }
  return {
    run: (times) => inBatches(times, (count) => Promise.all(Array.from({ length: count }, () => queue.add(work)))),
  }
}

export function fastTasks({ commands }: Load): Subject {
  const queue = fastq.promise(async () => {
    for (let n = 0; n < commands; n += 1) await noop()
  }, 1)
  return {
    run: (times) =>
      inBatches(times, (count) => Promise.all(Array.from({ length: count }, () => queue.push(undefined)))),
  }
}
