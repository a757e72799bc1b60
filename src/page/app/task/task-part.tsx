/** The part Task: one task in full width. */
import { addressOf } from '../addresses.js'
import { usePage } from '../page-state.js'
import type { PartProps } from '../shell/part-props.js'
import { NoTasks } from '../shell/no-tasks.js'
import { StateIcon } from '../shell/state-icon.js'
import { visible } from '../text/visible.js'
import { TaskPanel } from './task-panel.js'

export function TaskPart({ address }: PartProps) {
  const { tasks } = usePage().view.value
  if (address.subject !== undefined) {
    return (
      <section class="part task-alone" aria-labelledby="task-heading">
        <TaskPanel name={address.subject} headingId="task-heading" isAlone />
      </section>
    )
  }
  return (
    <section class="part" aria-labelledby="task-heading">
      <div class="part-head">
        <h1 id="task-heading">Task</h1>
      </div>
      {tasks.length === 0 ? (
        <NoTasks />
      ) : (
        <div class="empty">
          <p class="empty-title">No task is chosen</p>
          <p>
            Choose one in <a href="#/timeline">Timeline</a> or <a href="#/tasks">Tasks</a>, or one of the latest:
          </p>
          <ul class="latest">
            {tasks.slice(0, 10).map(({ key, state, title }) => (
              <li key={key}>
                <a href={addressOf('task', key)}>
                  <StateIcon state={state} /> {visible(title)}
                </a>
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  )
}
