/** Command tasks that do nothing: through this package's lanes, through seed 004's manager, and as functions in p-queue. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import PQueue from 'p-queue'
import { importEntry } from '../package.js'
import { SeedInstanceManager } from '../seed-004/instance-manager.js'
import { SeedTaskManager } from '../seed-004/task-manager.js'
import type { SeedCompleteMessage } from '../seed-004/types.js'
import type { Subject } from '../subject.js'

export interface Load {
  readonly commands: number
  readonly lanes?: number
  /** Whether they are stored. */
  readonly isDurable?: boolean
}

/** How many tasks are queued at once. Both managers accept 100 by default, and the seed's still counts the one that has just ended. */
const QUEUE = 90

/** Runs tasks in batches: `submit` starts a batch, and `onComplete` is called for each task of it. */
function inBatches(submit: (count: number) => void) {
  let left = 0
  let resolve = (): void => undefined
  let reject = (_error: Error): void => undefined
  return {
    onComplete: ({ status }: { readonly status: string }): void => {
      if (status !== 'completed') reject(new Error(`a task of the benchmark ended as ${status}`))
      left -= 1
      if (left === 0) resolve()
    },
    run: async (times: number): Promise<undefined> => {
      for (let toStart = times; toStart > 0; toStart -= QUEUE) {
        left = Math.min(toStart, QUEUE)
        const completed = new Promise<void>((...settle) => ([resolve, reject] = settle))
        submit(left)
        await completed
      }
    },
  }
}

function taskOf(at: number, { commands, lanes = 1 }: Load) {
  return {
    type: 'task_submit' as const,
    task_name: 'task',
    task_intention: 'do nothing',
    instanceId: `instance-${at % lanes}`,
    commands: Array.from({ length: commands }, () => ({ tool_name: 'nothing', intention: 'do nothing', args: {} })),
  }
}

const instanceIds = ({ lanes = 1 }: Load): string[] => Array.from({ length: lanes }, (_, at) => `instance-${at}`)

/** A manager without a listener could do less than one that has a server. */
const onProgress = (): void => undefined

export async function laneTasks(load: Load, checkout: string): Promise<Subject> {
  const { InstanceManager, TaskManager, localInstance } = await importEntry(checkout, './server')
  const instances = new InstanceManager()
  for (const id of instanceIds(load)) {
    instances.connect(localInstance({ id, tools: [{ name: 'nothing', execute: () => undefined }] }))
  }
  const folder = load.isDurable === true ? mkdtempSync(join(tmpdir(), 'agent-tasks-bench-')) : undefined
  // An older build has no stores.
  const store = folder && (await importEntry(checkout, './store')).sqliteStore(join(folder, 'tasks.db'))
  const manager = new TaskManager({ instances, ...(store && { store }) })
  const { run, onComplete } = inBatches((count) => {
    for (let n = 0; n < count; n += 1) {
      const submitted = manager.submitTask(taskOf(n, load))
      if ('error' in submitted) throw new Error(submitted.error)
    }
  })
  manager.on('progress', onProgress).on('complete', onComplete)
  return {
    run,
    close: async () => {
      await manager.dispose()
      await instances.dispose()
      if (folder !== undefined) rmSync(folder, { recursive: true })
    },
  }
}

export function seedTasks(load: Load): Subject {
  const instances = new SeedInstanceManager()
  for (const id of instanceIds(load)) instances.connect(id, { nothing: () => undefined })
  const manager = new SeedTaskManager(instances)
  const { run, onComplete } = inBatches((count) => {
    for (let n = 0; n < count; n += 1) {
      const submitted = manager.submitTask(taskOf(n, load))
      if ('error' in submitted) throw new Error(submitted.error)
    }
  })
  manager.on('progress', onProgress).on('complete', (message: SeedCompleteMessage) => onComplete(message))
  return {
    run,
    // What the seed keeps for an hour would fill the heap.
    prepare: () => {
      manager.cleanupTasks(0)
    },
  }
}

export function queuedFunctions({ commands }: Load): Subject {
  const queue = new PQueue({ concurrency: 1 })
  const work = async (): Promise<void> => {
    for (let n = 0; n < commands; n += 1) await Promise.resolve()
  }
  return {
    run: async (times) => {
      for (let left = times; left > 0; left -= QUEUE) {
        await Promise.all(Array.from({ length: Math.min(left, QUEUE) }, () => queue.add(work)))
      }
      return undefined
    },
  }
}
