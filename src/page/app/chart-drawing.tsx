/** The drawing of one machine. */
import type { VNode } from 'preact'
import { isIn, isState } from './chart-counts.js'
import { arrowPath, linePath } from './chart-lines.js'
import type { ChartEdge, ChartLabel, ChartNode, MachineChart } from './chart.js'
import { takenEdges, type TaskPath } from './task-path.js'

export interface ChartDrawingProps {
  readonly chart: MachineChart
  readonly label: string
  /** The number of actors by the path of their state. Undefined if the drawing shows no numbers. */
  readonly counts: ReadonlyMap<string, number> | undefined
  /** The path of a task, in which each state is a path of the chart. */
  readonly path: TaskPath | undefined
  readonly linkOf?: (node: ChartNode) => StateLink | undefined
  readonly chosenId: string | undefined
}

export interface StateLink {
  readonly id: string
  readonly href: string
}

export function ChartDrawing({ chart, label, counts, path, linkOf, chosenId }: ChartDrawingProps): VNode {
  const { width, height, states, edges } = chart
  // An element with the role `img` must not contain links.
  const role = states.some((node) => linkOf?.(node)) ? 'group' : 'img'
  const state = (node: ChartNode): VNode => {
    const link = linkOf?.(node)
    const drawn = <State key={node.path} node={node} counts={counts} path={path} />
    if (link === undefined || !isState(node)) return drawn
    const { id, href } = link
    // Without this label, screen readers would read the `<title>` inside, which does not have the count.
    const name = `${node.name} ${counts?.get(node.path) ?? 0}`
    return (
      <a key={node.path} id={id} href={href} aria-label={name} aria-current={id === chosenId}>
        {drawn}
      </a>
    )
  }
  const taken = path && takenEdges(path, edges)
  const lines = edges.map((edge) => ({ edge, isTaken: taken?.has(edge) === true }))
  // Lines that the task has followed are drawn last, so that they are on top where lines cross.
  lines.sort((one, other) => Number(one.isTaken) - Number(other.isTaken))
  return (
    <svg class="chart" role={role} aria-label={label} width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
      {states.filter(isFrame).map(state)}
      <g aria-hidden="true">
        {lines.map(({ edge, isTaken }) => (
          <Line edge={edge} isTaken={isTaken} />
        ))}
      </g>
      {states.filter((node) => !isFrame(node)).map(state)}
      <g aria-hidden="true">
        {lines.map(({ edge, isTaken }) => edge.labels.map((one) => <Label label={one} isTaken={isTaken} />))}
      </g>
    </svg>
  )
}

/** Whether a node is drawn behind the lines. */
function isFrame({ kind }: ChartNode): boolean {
  return kind === 'compound' || kind === 'group'
}

function Line({ edge, isTaken }: { readonly edge: ChartEdge; readonly isTaken: boolean }): VNode {
  return (
    <g class={isTaken ? 'chart-line chart-taken' : 'chart-line'}>
      <path class="chart-stroke" d={linePath(edge.points)} />
      <path class="chart-arrow" d={arrowPath(edge.points)} />
    </g>
  )
}

function Label({ label, isTaken }: { readonly label: ChartLabel; readonly isTaken: boolean }): VNode {
  const { x, y, width, height, text, description } = label
  return (
    <g class={isTaken ? 'chart-label chart-taken' : 'chart-label'}>
      <title>{description}</title>
      <rect x={x} y={y} width={width} height={height} rx={3} />
      <text x={x + width / 2} y={y + height / 2}>
        {text}
      </text>
    </g>
  )
}

interface StateProps {
  readonly node: ChartNode
  readonly counts: ReadonlyMap<string, number> | undefined
  readonly path: TaskPath | undefined
}

function State({ node, counts, path }: StateProps): VNode {
  const { x, y, width, height, kind, name, description } = node
  const middle = x + width / 2
  if (kind === 'start') return <circle class="chart-start" cx={middle} cy={y + height / 2} r={width / 2 - 2} />
  if (kind === 'group') {
    return <rect class="chart-group" x={x + 1} y={y + 1} width={width - 2} height={height - 2} rx={12} />
  }
  if (kind === 'any') {
    return (
      <g class="chart-any">
        <rect x={x} y={y} width={width} height={height} rx={height / 2} />
        <text x={middle} y={y + height / 2}>
          {name}
        </text>
      </g>
    )
  }
  const count = counts?.get(node.path) ?? 0
  const isCurrent = path !== undefined && isIn(path.state, node.path)
  const wasThere = path?.visited.some((state) => isIn(state, node.path)) === true
  const marks = [kind, count > 0 && 'live', wasThere && 'visited', isCurrent && 'current']
  return (
    <g
      class={`chart-state ${marks
        .filter((mark) => mark !== false)
        .map((mark) => `chart-${mark}`)
        .join(' ')}`}
    >
      <title>{`${name}: ${description}`}</title>
      <rect x={x + 1} y={y + 1} width={width - 2} height={height - 2} rx={10} />
      {kind === 'final' ? (
        <rect class="chart-inner" x={x + 4} y={y + 4} width={width - 8} height={height - 8} rx={7} />
      ) : null}
      <StateText
        node={node}
        note={[
          ...(counts === undefined ? [] : [String(count)]),
          ...(isCurrent && kind !== 'compound' ? ['here'] : []),
        ].join(' · ')}
      />
    </g>
  )
}

function StateText({ node, note }: { readonly node: ChartNode; readonly note: string }): VNode {
  const { x, y, width, height, kind, name } = node
  const middle = x + width / 2
  if (kind === 'compound') {
    return (
      <>
        <text class="chart-name" x={x + 14} y={y + 20}>
          {name}
        </text>{' '}
        <text class="chart-count chart-end" x={x + width - 14} y={y + 20}>
          {note}
        </text>
      </>
    )
  }
  return (
    <>
      <text class="chart-name chart-middle" x={middle} y={note === '' ? y + height / 2 : y + 19}>
        {name}
      </text>{' '}
      <text class="chart-count chart-middle" x={middle} y={y + 35}>
        {note}
      </text>
    </>
  )
}
