/** Machines: the charts with how many actors are in each state. */
import { Charts } from './charts.js'
import { usePage } from './page-state.js'

export function MachinesPart() {
  const { view } = usePage()
  return (
    <section class="part" aria-labelledby="machines-heading">
      <div class="part-head">
        <h1 id="machines-heading">Machines</h1>
        <p class="hint">How many are in each state now</p>
      </div>
      <Charts counts={view.value.machines} level={2} />
    </section>
  )
}
