/** P9: how many orders of a race are explored in a second. */
import type { Figure } from '../figure.js'
import { interleave } from '../interleave.js'

/** Processes that explore side by side. */
const CORES = 2

export const races: Figure = {
  id: 'P9',
  title: 'Race orders a second',
  async measure({ effort }) {
    // Processes share nothing, so that two on two cores do twice what one does in its processor time.
    const { kit, delivery, lanes } = await interleave(
      {
        kit: { module: 'races', create: 'kitRaces' },
        delivery: { module: 'races', create: 'deliveryRaces' },
        lanes: { module: 'races', create: 'laneRaces' },
      },
      effort,
    )
    const unit = 'a second'
    return [
      {
        figure: 'P9',
        name: 'orders that the kit explores, on two cores',
        value: (CORES * 1e9) / kit.cpuNs.median,
        unit,
        goal: { atLeast: 2000 },
        note: 'a host, its auto-trigger, three actors',
      },
      {
        figure: 'P9',
        name: "orders of the package's delivery race",
        value: (CORES * 1e9) / delivery.cpuNs.median,
        unit,
        note: 'with several triggers, owners and waits, and a check of everything after each step',
      },
      { figure: 'P9', name: "orders of the package's lane race", value: (CORES * 1e9) / lanes.cpuNs.median, unit },
    ]
  },
}
