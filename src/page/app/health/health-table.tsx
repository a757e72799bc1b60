/** The values of the charts as a table, for screen readers and for people who prefer numbers. */
import type { HealthPoint } from '../../wire.js'
import { count, duration, timeOfDay } from '../text/format.js'

const MOST_ROWS = 30

export function HealthTable({ points }: { readonly points: readonly HealthPoint[] }) {
  const latest = points.slice(-MOST_ROWS).toReversed()
  const length = (ms: number | undefined): string => (ms === undefined ? '–' : duration(ms))
  return (
    <details class="health-table">
      <summary>The figures as a table</summary>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Figures">
        <table>
          <thead>
            <tr>
              {['From', 'Started', 'Completed', 'Failed', 'Cancelled', 'p50', 'p99', 'Running', 'Queued', 'Owed'].map(
                (name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {latest.map(({ at, started, completed, failed, cancelled, p50, p99, running, queued, owed }) => (
              <tr key={at}>
                <th scope="row">{timeOfDay(at)}</th>
                {[started, completed, failed, cancelled].map((value, index) => (
                  <td key={index}>{count(value)}</td>
                ))}
                <td>{length(p50)}</td>
                <td>{length(p99)}</td>
                {[running, queued, owed].map((value, index) => (
                  <td key={index}>{count(value)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}
