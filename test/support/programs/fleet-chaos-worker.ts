/**
 * A worker that the chaos test kills and pauses. It prints when each run starts and ends, and when the worker itself did not run for a while. Each line
 * of its output is JSON.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { startWorker } from 'agent-tasks/bullmq'
import { watchSilence } from '../chaos/silence.js'

const [url = '', lockMs = ''] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify({ ...line, at: Date.now() })}\n`)
watchSilence(say)

await startWorker({
  connection: url,
  subagents: {
    /** The goal of a run: how many lines it writes, and how long it takes, in ms. */
    chaos: async ({ id, goal }, context) => {
      const { attempt, signal } = context
      const [lines = 0, ms = 0] = goal.split(' ').map(Number)
      say({ start: id, attempt })
      try {
        for (let n = 0; n < lines; n += 1) {
          context.append(`${attempt}.${n}\n`)
          await pause(ms / lines, undefined, { signal })
        }
        return { attempt }
      } finally {
        say({ end: id, attempt })
      }
    },
  },
  lockMs: Number(lockMs),
  concurrency: 2,
  log: (log) => console.error(log),
})
