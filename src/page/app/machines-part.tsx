/** Machines: the charts with how many actors are in each state. */
import { Charts } from './charts.js'
import { usePage } from './page-state.js'

export function MachinesPart() {
  const { view } = usePage()
  return (
    <>
      <h1>Machines</h1>
      <Charts counts={view.value.machines} level={2} />
    </>
  )
}
