/** Bytes of heap: each subject returns those of one element. The first filling compiles what has to be compiled. */
import { createActor } from 'xstate'
import { importEntry } from '../package.js'
import type { Subject } from '../subject.js'
import { loadTaskMachine } from './task-machine.js'

const OUTPUT_TEXT = 'done'

const taskOf = (id: string) => ({ id, subagentName: 'agent', goalPrompt: 'look into it' })

/** The heap after everything unreachable has been collected. */
function heapUsed(): number {
  for (let n = 0; n < 4; n += 1) globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

/** The bytes of each of the elements with which `fill` fills what it returns. */
export function bytesEach(count: number, fill: (count: number) => unknown): Subject {
  return {
    run: async () => {
      const first = await fill(100)
      const before = heapUsed()
      const filled = await fill(count)
      const bytes = (heapUsed() - before) / count
      // The comparison keeps both reachable until here.
      return first === filled ? NaN : bytes
    },
  }
}

export async function liveTasks(count: number, checkout: string): Promise<Subject> {
  const { AsyncTaskManager } = await importEntry(checkout, '.')
  return bytesEach(count, (n) => {
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1 })
    for (let at = 0; at < n; at += 1) manager.registerTask(taskOf(`task-${at}`))
    return manager
  })
}

export async function startedActors(count: number, checkout: string): Promise<Subject> {
  const { machine, inputOf } = await loadTaskMachine(checkout)
  return bytesEach(count, (n) =>
    Array.from({ length: n }, (_, at) => {
      const id = `task-${at}`
      return createActor(machine, { id, input: inputOf(id) }).start()
    }),
  )
}

export async function retainedRecords(count: number, checkout: string): Promise<Subject> {
  const { AsyncTaskManager } = await importEntry(checkout, '.')
  return bytesEach(count, (n) => {
    const manager = new AsyncTaskManager({ maxAsyncTasks: n })
    for (let at = 0; at < n; at += 1) {
      const id = `task-${at}`
      manager.registerTask(taskOf(id))
      manager.completeTask(id, { final_message: OUTPUT_TEXT })
      manager.markNotified(id)
    }
    return manager
  })
}

/** Objects with the fields of such a record. */
export function frozenObjects(count: number): Subject {
  return bytesEach(count, (n) =>
    Array.from({ length: n }, (_, at) =>
      Object.freeze({
        id: `task-${at}`,
        subagentName: 'agent',
        goalPrompt: 'look into it',
        owner: 'main',
        launchedAt: Date.now(),
        status: 'completed',
        output: Object.freeze({ final_message: OUTPUT_TEXT }),
        delivery: 'delivered',
        completedAt: Date.now(),
        seq: at,
        notifiedAt: Date.now(),
      }),
    ),
  )
}

/** How much the heap grows in a round of lives. */
export async function growth(lives: number, checkout: string): Promise<Subject> {
  const { AsyncTaskManager } = await importEntry(checkout, '.')
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1 })
  let count = 0
  let before = 0
  const run = (times: number): void => {
    for (let n = 0; n < times; n += 1) {
      const id = `task-${(count += 1)}`
      manager.registerTask(taskOf(id))
      manager.completeTask(id, { final_message: OUTPUT_TEXT })
      manager.lease({ owner: 'main' })?.acknowledge()
    }
  }
  // The code that V8 compiles for the first lives is no growth.
  run(300_000)
  return {
    prepare: () => {
      before = heapUsed()
    },
    run: () => {
      run(lives)
      return (heapUsed() - before) / lives
    },
    close: () => manager.dispose(),
  }
}
