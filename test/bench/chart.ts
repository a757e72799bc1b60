/** Draws panels of lines on logarithmic axes as an SVG that reads in light and in dark. */
import type { Panel } from './growth.js'
import { formatNumber } from './report.js'

const WIDTH = 860
const HEIGHT = 620
const PANEL = { width: 330, height: 210 }
const ORIGINS = [
  [70, 60],
  [490, 60],
  [70, 370],
  [490, 370],
] as const
const COLOURS = ['#2f6fde', '#d9822b'] as const

const escape = (text: string): string => text.replace(/[&<>]/g, (char) => `&#${char.charCodeAt(0)};`)

const text = (x: number, y: number, content: string, more = ''): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escape(content)}</text>`

/** The powers of ten that hold all values. */
function decades(values: readonly number[]): readonly [number, number] {
  const low = Math.floor(Math.log10(Math.min(...values)))
  return [low, Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))))]
}

function drawPanel({ title, across, series }: Panel, [left, top]: readonly [number, number]): string {
  const all = series.flatMap(({ points }) => points)
  const [firstX, lastX] = decades(all.map(([x]) => x))
  const [firstY, lastY] = decades(all.map(([, y]) => y))
  const x = (value: number): number => left + ((Math.log10(value) - firstX) / (lastX - firstX)) * PANEL.width
  const y = (value: number): number =>
    top + PANEL.height - ((Math.log10(value) - firstY) / (lastY - firstY)) * PANEL.height
  const powers = (first: number, last: number): number[] =>
    Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at))
  const bottom = top + PANEL.height
  return [
    text(left, top - 16, title, 'font-weight="600"'),
    ...powers(firstY, lastY).flatMap((value) => [
      `<line x1="${left}" x2="${left + PANEL.width}" y1="${y(value).toFixed(1)}" y2="${y(value).toFixed(1)}" class="grid"/>`,
      text(left - 8, y(value) + 4, `${formatTick(value)} us`, 'text-anchor="end" class="tick"'),
    ]),
    ...powers(firstX, lastX).map((value) =>
      text(x(value), bottom + 18, formatTick(value), 'text-anchor="middle" class="tick"'),
    ),
    text(left + PANEL.width / 2, bottom + 38, across, 'text-anchor="middle" class="tick"'),
    ...series.flatMap(({ name, points }, at) => {
      const colour = COLOURS[at % COLOURS.length] ?? ''
      const [lastPoint] = points.slice(-1)
      return [
        `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${points.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join(' ')}"/>`,
        ...points.map(
          ([px, py]) =>
            `<circle cx="${x(px).toFixed(1)}" cy="${y(py).toFixed(1)}" r="3" fill="${colour}"><title>${escape(`${name}: ${formatNumber(py)} us at ${px}`)}</title></circle>`,
        ),
        lastPoint === undefined
          ? ''
          : text(x(lastPoint[0]), y(lastPoint[1]) - 8, name, `text-anchor="end" style="fill: ${colour}"`),
      ]
    }),
  ].join('\n')
}

const formatTick = (value: number): string => (value >= 1 ? value.toLocaleString('en-GB') : `${value}`)

/** The picture. @param caption says where and when it was measured */
export function drawChart(panels: readonly Panel[], caption: string): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT + 40}" font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="How cost grows">
<style>
text { fill: #1f2328 } .tick { fill: #59636e; font-size: 11px } .grid { stroke: #d1d9e0 }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .tick { fill: #9198a1 } .grid { stroke: #3d444d } }
</style>
${panels.map((panel, at) => drawPanel(panel, ORIGINS[at % ORIGINS.length] ?? ORIGINS[0])).join('\n')}
${text(WIDTH / 2, HEIGHT + 24, caption, 'text-anchor="middle" class="tick"')}
</svg>
`
}
