/** The charts of the machines, with the number of actors in each state. */
import { machineCharts } from 'virtual:machine-charts'
import { useSignal } from '@preact/signals'
import type { RefObject, VNode } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { MachineCounts } from '../wire.js'
import { countStates, isIn, statesOf, summaryOf } from './chart-counts.js'
import { ChartDrawing, type StateLink } from './chart-drawing.js'
import { READABLE, type ChartNode, type MachineChart } from './chart.js'
import { onChart, pathText, type TaskPath } from './task-path.js'
import './charts.css'

export interface ChartsProps {
  /** The number of actors in each state. Absent if the charts show no numbers. */
  readonly counts?: MachineCounts
  /** The path of a task. If it is set, only the machine of the task is drawn, with the states that the task has been in. */
  readonly path?: TaskPath | undefined
  /** The level of a machine's heading. Default: 3. */
  readonly level?: 2 | 3 | 4
  /** Returns the link of a state; undefined for a state without a link. */
  readonly linkOf?: (chart: MachineChart, node: ChartNode) => StateLink | undefined
  /** The id of the link of the selected state. */
  readonly chosenId?: string | undefined
}

export function Charts({ counts, path, level = 3, linkOf, chosenId }: ChartsProps): VNode {
  const shown = path === undefined ? machineCharts : machineCharts.filter(({ id }) => id === path.machine)
  return (
    <div class="charts">
      {shown.map((chart) => (
        <Machine
          key={chart.id}
          chart={chart}
          counts={counts}
          path={path}
          level={level}
          linkOf={linkOf}
          chosenId={chosenId}
        />
      ))}
    </div>
  )
}

interface MachineProps {
  readonly chart: MachineChart
  readonly counts: MachineCounts | undefined
  readonly path: TaskPath | undefined
  readonly level: 2 | 3 | 4
  readonly linkOf: ChartsProps['linkOf']
  readonly chosenId: string | undefined
}

function Machine({ chart, counts, path: named, level, linkOf, chosenId }: MachineProps): VNode {
  const path = named && onChart(chart, named)
  const counted = counts && countStates(chart, counts)
  const Heading = `h${level}` as const
  const headingId = `machine-${chart.id}`
  const box = useRef<HTMLDivElement | null>(null)
  const state = path?.state
  const share = useShare(box, chart.width)
  const isWide = share < 1
  const chosen = useSignal<boolean | undefined>(undefined)
  const isFitted = isWide && (chosen.value ?? share >= READABLE)
  useLayoutEffect(() => showState(box.current, chart, state), [chart, state, isFitted])
  return (
    <section class="chart-machine" aria-labelledby={headingId}>
      <Heading id={headingId}>{chart.id}</Heading>
      <p>{chart.description}</p>
      {isWide && (
        <p class="chart-hint">
          {isFitted ? 'The drawing is scaled down to fit.' : 'The drawing is wider than this box. Scroll it sideways.'}{' '}
          <button type="button" onClick={() => (chosen.value = !isFitted)}>
            {isFitted ? 'Full size' : 'Fit'}
          </button>
        </p>
      )}
      {/* The focus lets a person scroll the box with the keyboard. */}
      <div
        ref={box}
        class={isFitted ? 'chart-box fitted' : isWide ? 'chart-box wide' : 'chart-box'}
        tabIndex={0}
        role="group"
        aria-label={`Drawing of ${chart.id}`}
      >
        <ChartDrawing
          chart={chart}
          label={labelOf(chart, counted, named)}
          counts={counted}
          path={path}
          {...(linkOf && { linkOf: (node) => linkOf(chart, node) })}
          chosenId={chosenId}
        />
      </div>
      <details>
        <summary>As a table</summary>
        <StateTable chart={chart} counted={counted} path={path} />
      </details>
    </section>
  )
}

function labelOf(
  chart: MachineChart,
  counted: ReadonlyMap<string, number> | undefined,
  path: TaskPath | undefined,
): string {
  const counts = counted === undefined ? [] : [summaryOf(chart, counted)]
  const way = path === undefined ? [] : [`this task: ${pathText(path)}`]
  return `${chart.id}: ${[...counts, ...way].join('; ')}`
}

/** Returns the width of the box divided by the width of the drawing. Below 1, the drawing does not fit at full size. */
function useShare(box: RefObject<HTMLElement | null>, width: number): number {
  const share = useSignal(1)
  useLayoutEffect(() => {
    const element = box.current
    if (element === null) return undefined
    const observer = new ResizeObserver(() => (share.value = element.clientWidth / width))
    observer.observe(element)
    return () => observer.disconnect()
  }, [box, width, share])
  return share.value
}

/** Scrolls the box to the current state of the task, or to the initial state if there is no task. */
function showState(box: HTMLElement | null, chart: MachineChart, state: string | undefined): void {
  const shown = chart.states.find(({ kind, path }) => (state === undefined ? kind === 'start' : path === state))
  if (box !== null && shown !== undefined) box.scrollLeft = shown.x + shown.width / 2 - box.clientWidth / 2
}

function placeOf(node: ChartNode, { state, visited }: TaskPath): string {
  if (isIn(state, node.path)) return 'is here'
  return visited.some((past) => isIn(past, node.path)) ? 'was here' : ''
}

interface StateTableProps {
  readonly chart: MachineChart
  readonly counted: ReadonlyMap<string, number> | undefined
  readonly path: TaskPath | undefined
}

function StateTable({ chart, counted, path }: StateTableProps): VNode {
  return (
    <table class="chart-table">
      <thead>
        <tr>
          <th scope="col">State</th>
          {counted && <th scope="col">Now</th>}
          {path === undefined ? null : <th scope="col">This task</th>}
          <th scope="col">Meaning</th>
        </tr>
      </thead>
      <tbody>
        {statesOf(chart).map((node) => (
          <tr key={node.path}>
            <th scope="row">{node.path}</th>
            {counted && <td>{counted.get(node.path) ?? 0}</td>}
            {path === undefined ? null : <td>{placeOf(node, path)}</td>}
            <td>{node.description}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
