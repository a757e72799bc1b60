/** The machine of a task, with the way that the task took. */
import { useMemo } from 'preact/hooks'
import type { PageTask, TaskEvent } from '../../wire.js'
import { Charts } from '../charts.js'
import { taskPath } from '../task-path.js'

interface Props {
  readonly task: PageTask
  readonly events: readonly TaskEvent[]
}

export function TaskMachine({ task, events }: Props) {
  const path = useMemo(() => taskPath(task, events), [task.kind, task.state, events])
  return <Charts path={path} level={4} />
}
