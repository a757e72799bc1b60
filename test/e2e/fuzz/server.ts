/**
 * The server of a fuzz run, a process of its own: nothing that the test keeps is in its heap. Over IPC it is asked to let time pass, so
 * that everything that is kept for a while is forgotten, and to weigh itself after that. Run with `--expose-gc`.
 */
import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import { systemClock, type Clock } from '../../../src/system/clock.js'
import { localInstance, startTaskServer } from '../../../src/server/index.js'
import { fuzzOptions } from '../../unit/server/fuzz-options.js'

/** What the process tells of itself. */
export interface Weight {
  /** Bytes of the heap and of buffers that are in use after a full collection. */
  readonly bytes: number
  /** Names that objects have inherited since the start; a prototype was polluted. */
  readonly inherited: readonly string[]
  /** Gauges of `/metrics` that are not 0. */
  readonly gauges: readonly string[]
}

/** Longer than anything is kept. */
const HOURS_MS = 5 * 3_600_000

/** The platform's time, which can be put forward: what is due by then runs at once. */
function createSkippingClock() {
  let skipped = 0
  const timers = new Map<object, { readonly run: () => void; readonly due: number; readonly timer: unknown }>()
  const clock: Clock = {
    now: () => systemClock.now() + skipped,
    setTimeout: (run, ms) => {
      const key = {}
      const fire = (): void => {
        timers.delete(key)
        run()
      }
      timers.set(key, { run: fire, due: clock.now() + ms, timer: systemClock.setTimeout(fire, ms) })
      return key
    },
    clearTimeout: (key) => {
      systemClock.clearTimeout(timers.get(key as object)?.timer)
      timers.delete(key as object)
    },
  }
  const skip = (ms: number): void => {
    skipped += ms
    for (const { run, due, timer } of [...timers.values()].sort((a, b) => a.due - b.due)) {
      if (due > clock.now()) continue
      systemClock.clearTimeout(timer)
      run()
    }
  }
  return { clock, skip }
}

const add = {
  name: 'add',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }: { readonly a: number; readonly b: number }) => a + b,
}
const { clock, skip } = createSkippingClock()
const server = await startTaskServer({
  port: 0,
  env: {},
  logLevel: 'silent',
  clock,
  ...fuzzOptions,
  tasks: { ...fuzzOptions.tasks, wsPort: 0 },
  instances: [localInstance({ id: 'calc', tools: [add] })],
})

async function weigh(): Promise<Weight> {
  skip(HOURS_MS)
  for (let round = 0; round < 5; round += 1) {
    await setImmediate()
    globalThis.gc?.()
  }
  const { heapUsed, external } = process.memoryUsage()
  const inherited: string[] = []
  // What a for-in of an empty object finds is what was put on its prototype.
  for (const name in {}) inherited.push(name)
  const metrics = await (await fetch(`${server.httpUrl}/metrics`)).text()
  const gauges = metrics
    .split('\n')
    .filter((line) => /^agent_tasks_(queued|running|lane_depth|subscribed|connections)\b.* [^0]\S*$/.test(line))
  return { bytes: heapUsed + external, inherited, gauges }
}

process.on('disconnect', () => process.exit(0))
process.on('message', () => void weigh().then((weight) => process.send?.(weight)))
process.send?.({ httpUrl: server.httpUrl, wsUrl: server.wsUrl })
