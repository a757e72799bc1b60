/** A worker whose subagent is a program that never ends by itself, and that writes its pid. Each line of its output is JSON. */
import { startWorker } from 'agent-tasks/bullmq'
import { processRunner } from 'agent-tasks'

const [url = '', lockMs = ''] = process.argv.slice(2)
const program = 'console.log(process.pid); setInterval(() => undefined, 1000)'
await startWorker({
  connection: url,
  subagents: { research: processRunner({ command: process.execPath, args: ['-e', program] }) },
  lockMs: Number(lockMs),
})
console.log(JSON.stringify({ ready: true }))
