/** A host that starts programs in the background and disposes on signals. Its argument is JSON, with the arguments of each program and the options. */
import { createAgentTasks, disposeOnSignals, processRunner } from 'agent-tasks'

const [programs, { graceMs, ...options }] = JSON.parse(process.argv[2] ?? '') as [string[][], { graceMs: number }]
const tasks = createAgentTasks()
disposeOnSignals(tasks, { ...options, input: process.stdin.resume() })
for (const [index, args] of programs.entries()) {
  const run = processRunner({ command: process.execPath, args, graceMs })
  tasks.getAsyncTaskManager().launch({ subagentName: `program-${index}`, goalPrompt: 'run' }, run)
}
