/** A list of the tasks in a state of their machine, each with a link. */
import { useSignal } from '@preact/signals'
import type { PageTask } from '../../wire.js'
import { Length } from '../shell/length.js'
import { StateIcon } from '../shell/state-icon.js'
import { TaskLink } from '../task/task-facts.js'
import { count } from '../text/format.js'

interface Props {
  readonly headingId: string
  readonly state: string
  readonly description: string
  readonly tasks: readonly PageTask[]
  readonly onClose: () => void
}

/** The number of tasks that are shown at first and added at each step. */
const MANY = 100

export function StateTasks({ headingId, state, description, tasks, onClose }: Props) {
  const shown = useSignal(MANY)
  return (
    <>
      <div class="part-head">
        <h2 id={headingId} tabIndex={-1}>
          {count(tasks.length)} in {state}
        </h2>
        <span class="grow" />
        <button type="button" class="quiet" onClick={onClose} title="Close (Escape)" aria-label="Close the list">
          ✕
        </button>
      </div>
      <p class="hint">{description}</p>
      {tasks.length === 0 ? (
        <p>No task is in this state now.</p>
      ) : (
        <ul class="links state-tasks">
          {tasks.slice(0, shown.value).map((task) => (
            <li key={task.key}>
              <StateIcon state={task.state} />
              <TaskLink taskKey={task.key} />
              <span class="hint number">
                <Length task={task} />
              </span>
            </li>
          ))}
        </ul>
      )}
      {tasks.length > shown.value && (
        <button type="button" onClick={() => (shown.value += MANY)}>
          Show more of {count(tasks.length)}
        </button>
      )}
    </>
  )
}
