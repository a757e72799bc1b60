/** A chart with up to three lines, which differ in colour and in their dashes. */
import { timeOfDay } from '../text/format.js'
import type { Chart } from './figures.js'
import { linePath, roundMax } from './line-path.js'

interface Props {
  readonly chart: Chart
  readonly from: number
  readonly to: number
}

const WIDTH = 480
const HEIGHT = 120
const DASHES = [undefined, '5 3', '1.5 3']

export function LineChart({ chart: { title, lines, write }, from, to }: Props) {
  const max = roundMax(Math.max(0, ...lines.flatMap(({ points }) => points.map(({ value = 0 }) => value))))
  const box = { from, to, max, width: WIDTH, height: HEIGHT }
  return (
    <figure class="card line-chart">
      <figcaption>
        <h2>{title}</h2>
        <ul class="chart-legend">
          {lines.map(({ name, look, points }, index) => {
            const latest = points.at(-1)?.value
            return (
              <li key={name} class={`line-${look}`}>
                <svg viewBox="0 0 20 4" aria-hidden="true">
                  <path d="M0 2h20" stroke-dasharray={DASHES[index]} />
                </svg>
                {name} <span class="number">{latest === undefined ? '–' : write(latest)}</span>
              </li>
            )
          })}
        </ul>
      </figcaption>
      <div class="plot">
        <span class="axis-max number">{write(max)}</span>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="grid" d={`M0 .5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`} />
          {lines.map(({ name, look, points }, index) => (
            <path
              key={name}
              class={`line line-${look}`}
              d={linePath(
                points.filter(({ at }) => at >= from),
                box,
              )}
              stroke-dasharray={DASHES[index]}
            />
          ))}
        </svg>
        <div class="axis-times hint number">
          <span>{timeOfDay(from).slice(0, 5)}</span>
          <span>{timeOfDay((from + to) / 2).slice(0, 5)}</span>
          <span>{timeOfDay(to).slice(0, 5)}</span>
        </div>
      </div>
    </figure>
  )
}
