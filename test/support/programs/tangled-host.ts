/**
 * A host whose task runs a shell script. Its argument is JSON: the script, the file of a store if it has one, and the grace period. It prints `ready` when
 * the script is running, and the end of its task.
 */
import { createAgentTasks, disposeOnSignals, processRunner } from 'agent-tasks'
import { sqliteStore } from 'agent-tasks/store'

const { script, file, graceMs } = JSON.parse(process.argv[2] ?? '') as {
  script: string
  file?: string
  graceMs: number
}
const tasks = createAgentTasks({
  ...(file !== undefined && { store: sqliteStore(file) }),
  subagents: { program: processRunner({ command: '/bin/sh', args: ['-c', script], graceMs }) },
})
disposeOnSignals(tasks, { input: process.stdin.resume() })
await tasks.recovered
console.log('ready')
if (script !== '') void tasks.launch('program', 'run').result.catch(() => undefined)
