/** P9: how many orderings of a race are explored in a second. */
import type { Figure } from '../figure.js'
import { interleave } from '../interleave.js'

/** Processes that explore side by side. */
const CORES = 2

export const races: Figure = {
  id: 'P9',
  title: 'Race orderings a second',
  async measure({ effort }) {
    // A process alone, in processor time: two of them on two cores do twice as much.
    const { delivery, lanes } = await interleave(
      { delivery: { module: 'races', create: 'deliveryRaces' }, lanes: { module: 'races', create: 'laneRaces' } },
      effort,
    )
    return [
      {
        figure: 'P9',
        name: 'orderings of the delivery race, on two cores',
        value: (CORES * 1e9) / delivery.cpuNs.median,
        unit: 'a second',
        goal: { atLeast: 2000 },
      },
      {
        figure: 'P9',
        name: 'orderings of the lane race, on two cores',
        value: (CORES * 1e9) / lanes.cpuNs.median,
        unit: 'a second',
        goal: { atLeast: 2000 },
      },
    ]
  },
}
