/** A host that starts a program and exits while it runs: at the end of stdin. Arguments: those of the program. */
import { processRunner } from '../../../src/runners/process-runner.js'

const run = processRunner({ command: process.execPath, args: process.argv.slice(2) })
void run(
  { id: 'id', subagentName: 'name', goalPrompt: 'goal' },
  {
    signal: new AbortController().signal,
    taskId: 'id',
    owner: 'main',
    attempt: 1,
    append: () => undefined,
    ask: () => Promise.reject(new Error('nobody answers')),
    report: () => undefined,
    spend: () => undefined,
    wrapUp: new AbortController().signal,
  },
)
process.stdin.on('end', () => process.exit(0)).resume()
