/** Shows the tasks: on a terminal as a live table with progress bars, otherwise as lines. */
import type { AsyncTaskInfo, AsyncTaskManager } from 'agent-tasks'
import logUpdate from 'log-update'

export interface Display {
  /** Prints what the agent or its user does. */
  say(line: string): void
  close(): void
}

const BAR_WIDTH = 24

export function createDisplay(manager: AsyncTaskManager, startedAt: number): Display {
  return process.stdout.isTTY ? createTable(manager, startedAt) : createLines(manager, startedAt)
}

const seconds = (from: number, to: number): string => `${((to - from) / 1000).toFixed(1).padStart(5)}s`

function createLines(manager: AsyncTaskManager, startedAt: number): Display {
  const say = (line: string): void => console.log(`${seconds(startedAt, Date.now())}  ${line}`)
  const subscription = manager.transitions$.subscribe((transition) => {
    if (transition.kind === 'status') say(`${transition.taskId.padEnd(32)} ${transition.to}`)
  })
  return { say, close: () => subscription.unsubscribe() }
}

function createTable(manager: AsyncTaskManager, startedAt: number): Display {
  const seen = new Map<string, AsyncTaskInfo>()
  const draw = (): void => {
    for (const task of manager.getAllTasks()) seen.set(task.id, task)
    const width = process.stdout.columns || 80
    logUpdate([...seen.values()].map((task) => row(task, Date.now()).slice(0, width)).join('\n'))
  }
  const timer = setInterval(draw, 100)
  return {
    say: (line) => {
      logUpdate.clear()
      console.log(`${seconds(startedAt, Date.now())}  ${line}`)
      draw()
    },
    close: () => {
      clearInterval(timer)
      draw()
      logUpdate.done()
    },
  }
}

function row(task: AsyncTaskInfo, now: number): string {
  const { progress, total = 1 } = task.progress ?? { progress: 0 }
  const share = task.status === 'running' ? Math.min(1, progress / total) : 1
  const filled = Math.round(share * BAR_WIDTH)
  const bar = `${(task.status === 'running' ? '=' : '#').repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}`
  const time = seconds(task.launchedAt, task.completedAt ?? now)
  return `${task.subagentName.padEnd(14)} [${bar}] ${task.status.padEnd(9)} ${time}  ${task.delivery}`
}
