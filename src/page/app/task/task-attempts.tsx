/** The earlier runs of a task, and why each run was retried. */
import type { PageTaskDetail } from '../../wire.js'
import { duration, timeOfDay } from '../text/format.js'
import { visible } from '../text/visible.js'

export function TaskAttempts({ attempts }: { readonly attempts: NonNullable<PageTaskDetail['attempts']> }) {
  return (
    <ol class="attempts">
      {attempts.map(({ number, startedAt, endedAt, error }) => (
        <li key={number} value={number}>
          <span class="number">
            {timeOfDay(startedAt)}
            {endedAt === undefined ? ' · its process died' : ` · ${duration(endedAt - startedAt)}`}
          </span>
          <span class="error-text">{visible(error)}</span>
        </li>
      ))}
    </ol>
  )
}
