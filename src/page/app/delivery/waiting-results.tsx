/** The results that wait for delivery to an owner, grouped by the reason why they wait. */
import type { OwnerDelivery } from '../../wire.js'
import { usePage } from '../page-state.js'
import { TaskLink } from '../task/task-facts.js'
import { waitingGroups } from '../text/deliveries.js'
import { counted, growing, timeOfDay } from '../text/format.js'

/** A list with more results than this is closed at first. */
const MANY = 5

export function WaitingResults({ delivery }: { readonly delivery: OwnerDelivery }) {
  const { view, second } = usePage()
  const { waiting } = delivery
  return (
    <details open={waiting.length <= MANY}>
      <summary>{counted(waiting.length, 'result')} waiting</summary>
      <ul class="waiting">
        {waitingGroups(delivery, view.value.taskOf).map(({ why, tasks }) => (
          <li key={why}>
            <p>{why}</p>
            <ul class="links">
              {tasks.map(({ key, endedAt }) => (
                <li key={key}>
                  <TaskLink taskKey={key} />
                  {endedAt !== undefined && (
                    <span class="hint number" title={`Ended at ${timeOfDay(endedAt)}`}>
                      {' '}
                      for {growing(second.value - endedAt)}
                    </span>
                  )}
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </details>
  )
}
