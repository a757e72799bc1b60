/** The machines, drawn. */
import type { VNode } from 'preact'
import { machineCharts } from 'virtual:machine-charts'
import type { MachineCounts } from '../wire.js'

export interface ChartsProps {
  readonly counts: MachineCounts
}

export function Charts({ counts }: ChartsProps): VNode {
  return (
    <ul>
      {machineCharts.map(({ id }) => (
        <li key={id}>
          {id} {Object.keys(counts[id] ?? {}).length}
        </li>
      ))}
    </ul>
  )
}
