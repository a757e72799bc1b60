/** Machines: the charts with how many actors are in each state. */
import { EmptyState } from './shell/empty-state.js'
import { usePage } from './page-state.js'

export function MachinesPart() {
  const { view } = usePage()
  void view.value.machines
  return (
    <>
      <h1>Machines</h1>
      <EmptyState title="The charts are not there yet" />
    </>
  )
}
