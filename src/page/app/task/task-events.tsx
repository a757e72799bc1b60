/** What has happened to a task, in order. */
import type { TaskEvent } from '../../wire.js'
import { StateBadge } from '../shell/state-badge.js'
import { duration, preciseTime } from '../text/format.js'
import { visible } from '../text/visible.js'

export function TaskEvents({ events }: { readonly events: readonly TaskEvent[] }) {
  const first = events[0]?.at ?? 0
  return (
    <table class="events">
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">After</th>
          <th scope="col">Event</th>
          <th scope="col">State</th>
        </tr>
      </thead>
      <tbody>
        {events.map(({ at, event, state, detail }, index) => (
          <tr key={index}>
            <td class="number">{preciseTime(at)}</td>
            <td class="number">{index === 0 ? '' : `+${duration(at - first)}`}</td>
            <td>
              {visible(event)}
              {detail !== undefined && <span class="event-detail">{visible(detail)}</span>}
            </td>
            <td>
              <StateBadge state={state} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
