/** The duration of a task. It grows while the task runs and the server is connected. */
import type { PageTask } from '../../wire.js'
import { usePage } from '../page-state.js'
import { duration, growing } from '../text/format.js'
import { lengthOf } from '../text/states.js'

export function Length({ task }: { readonly task: PageTask }) {
  return task.endedAt === undefined ? <Growing task={task} /> : <>{duration(lengthOf(task, task.endedAt))}</>
}

function Growing({ task }: { readonly task: PageTask }) {
  return <>{growing(lengthOf(task, usePage().second.value))}</>
}
