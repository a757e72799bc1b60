/** The part Health: the last hour in four charts. */
import { usePage } from '../page-state.js'
import { EmptyState } from '../shell/empty-state.js'
import { chartsOf } from './figures.js'
import { HealthTable } from './health-table.js'
import { LineChart } from './line-chart.js'

const LONGEST_MS = 3600_000
/** The shortest time axis, in ms. With a shorter one, the lines of a new server would be hard to read. */
const SHORTEST_MS = 300_000

export function HealthPart() {
  const { view, second } = usePage()
  const { health } = view.value
  const last = health.at(-1)
  const to = Math.max(second.value, last === undefined ? 0 : last.at + 10_000)
  const from = Math.max(to - LONGEST_MS, Math.min(to - SHORTEST_MS, health[0]?.at ?? to))
  return (
    <section class="part" aria-labelledby="health-heading">
      <div class="part-head">
        <h1 id="health-heading">Health</h1>
        <p class="hint">The last hour, with one point for every ten seconds</p>
      </div>
      {health.length === 0 ? (
        <EmptyState title="Nothing is measured yet">
          The first point appears ten seconds after the first task. The lines then grow to the right for an hour.
        </EmptyState>
      ) : (
        <>
          <div class="line-charts">
            {chartsOf(health).map((chart) => (
              <LineChart key={chart.title} chart={chart} from={from} to={to} />
            ))}
          </div>
          <HealthTable points={health} />
        </>
      )}
    </section>
  )
}
