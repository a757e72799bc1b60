/** A worker, for tests that kill it. The goal of a run says what the run does. Each line of its output is JSON. SIGTERM drains the worker. */
import { startWorker } from 'agent-tasks/bullmq'
import type { OutputObject } from '../../../machines/records.js'
import type { RunContext } from '../../../src/engine/runner.js'
import type { SubagentRequest } from '../../../src/tools/subagents.js'

const [url = '', lockMs = '3000', concurrency = '4', drainMs = 'Infinity'] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

/**
 * `hold MS`: works for this time. `again`: works for ever in its first attempt, and ends the next one at once. `deaf MS`: like `hold`, but ignores an
 * abort. `ask`: asks a question, and returns the answer.
 */
async function run({ id, goal }: SubagentRequest, context: RunContext): Promise<OutputObject> {
  const { attempt, signal } = context
  const [what, time] = goal.split(' ')
  const ms = what === 'again' ? (attempt === 1 ? 100_000 : 0) : Number(time)
  say({ started: id, attempt })
  context.append(`attempt ${attempt} on a worker\n`)
  if (what === 'ask') return { answer: await context.ask('Which?') }
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    if (what === 'deaf') return
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      say({ aborted: id, attempt })
      reject(signal.reason as Error)
    })
  })
  context.append('the end')
  say({ ended: id, attempt })
  return { final_message: `attempt ${attempt}` }
}

const worker = await startWorker({
  connection: url,
  subagents: { research: run },
  lockMs: Number(lockMs),
  concurrency: Number(concurrency),
  drainMs: Number(drainMs),
  log: (log) => say({ log }),
})
process.on('SIGTERM', () => {
  const drained = worker.drain()
  say({ draining: worker.running })
  void drained.then(() => say({ drained: true }))
})
say({ ready: true })
