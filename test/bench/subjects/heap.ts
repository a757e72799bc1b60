/**
 * How much of the heap things take: a program of its own, since a heap can be read only when nothing else lives in it.
 * `node --expose-gc heap.js <what> <count>` prints bytes for each of them, or for `growth` the points of the curve.
 */
import { createActor } from 'xstate'
import { asyncTaskMachine } from '../../../machines/async-task.js'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'

const OUTPUT_TEXT = 'done'

/** What is in the heap when everything that can go has gone. */
function heapUsed(): number {
  for (let n = 0; n < 4; n += 1) globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const taskOf = (id: string) => ({ id, subagentName: 'agent', goalPrompt: 'look into it' })

/** Fills something, and says how many bytes each element took. The first filling compiles what has to be compiled. */
function bytesEach(count: number, fill: (count: number) => unknown): number {
  const warm = fill(100)
  const before = heapUsed()
  const filled = fill(count)
  const bytes = (heapUsed() - before) / count
  // Both are held until here.
  return warm === filled ? NaN : bytes
}

const measures: Readonly<Record<string, (count: number) => unknown>> = {
  live: (count) =>
    bytesEach(count, (n) => {
      const manager = new AsyncTaskManager({ maxAsyncTasks: -1 })
      for (let at = 0; at < n; at += 1) manager.registerTask(taskOf(`task-${at}`))
      return manager
    }),
  actors: (count) => {
    const machine = asyncTaskMachine.provide({ actions: { requestAbort: () => undefined } })
    return bytesEach(count, (n) =>
      Array.from({ length: n }, (_, at) => {
        const id = `task-${at}`
        const actor = createActor(machine, { id, input: { id, subagentName: 'agent', graceMs: 5000 } })
        actor.start()
        return actor
      }),
    )
  },
  retained: (count) =>
    bytesEach(count, (n) => {
      const manager = new AsyncTaskManager({ maxAsyncTasks: n })
      for (let at = 0; at < n; at += 1) {
        const id = `task-${at}`
        manager.registerTask(taskOf(id))
        manager.completeTask(id, { final_message: OUTPUT_TEXT })
        manager.markNotified(id)
      }
      return manager
    }),
  objects: (count) =>
    bytesEach(count, (n) =>
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
    ),
  growth: (count) => {
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1 })
    let lived = 0
    const live = (lives: number): void => {
      for (let n = 0; n < lives; n += 1) {
        const id = `task-${(lived += 1)}`
        manager.registerTask(taskOf(id))
        manager.completeTask(id, { final_message: OUTPUT_TEXT })
        manager.lease({ owner: 'main' })?.acknowledge()
      }
    }
    live(Math.min(20_000, count))
    const points: [number, number][] = []
    for (let step = 0; step < 20; step += 1) {
      live(count / 20)
      points.push([lived, heapUsed()])
    }
    return points
  },
}

const [what = '', count = ''] = process.argv.slice(2)
const measure = measures[what]
if (measure === undefined) throw new RangeError(`got ${what}, expected one of ${Object.keys(measures).join(', ')}`)
console.log(JSON.stringify(measure(Number(count))))
