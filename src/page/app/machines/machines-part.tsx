/**
 * The part Machines: the charts of the machines with the number of actors in each state. A click on a state of a task machine lists the tasks in that
 * state.
 */
import { machineCharts } from 'virtual:machine-charts'
import { useEffect, useRef } from 'preact/hooks'
import { addressOf, type Address } from '../addresses.js'
import { Charts } from '../charts.js'
import { statesOf } from '../chart-counts.js'
import type { ChartNode, MachineChart } from '../chart.js'
import { replaceAddress } from '../current-address.js'
import { usePage } from '../page-state.js'
import type { PartProps } from '../shell/part-props.js'
import { kindOfMachine } from '../task-path.js'
import { StateTasks } from './state-tasks.js'
import { tasksInState } from './tasks-in-state.js'

const HEADING = 'state-tasks-heading'

export function MachinesPart({ address }: PartProps) {
  const { machines, tasks } = usePage().view.value
  const chosen = chosenIn(address)
  const link = chosen && stateLink(chosen.chart.id, chosen.node.path)
  const before = useRef(link)
  useEffect(() => {
    if (link?.id !== before.current?.id) document.getElementById(link ? HEADING : (before.current?.id ?? ''))?.focus()
    before.current = link
  }, [link?.id])
  const close = (): void => replaceAddress(addressOf('machines'))
  return (
    <div
      class={chosen ? 'split machines has-side' : 'split machines'}
      onKeyDown={({ key }) => {
        if (key === 'Escape' && chosen) close()
      }}
    >
      <div class="split-main">
        <section class="part" aria-labelledby="machines-heading">
          <div class="part-head">
            <h1 id="machines-heading">Machines</h1>
            <p class="hint">
              The numbers count the actors in each state. A line from a dotted box leaves every state in the box. Click
              a state of a task to list the tasks in it.
            </p>
          </div>
          <Charts counts={machines} level={2} linkOf={linkOf} chosenId={link?.id} />
        </section>
      </div>
      {chosen && (
        <aside class="split-side" aria-labelledby={HEADING}>
          <StateTasks
            key={link?.id}
            headingId={HEADING}
            state={chosen.node.name}
            description={chosen.node.description}
            tasks={tasksInState(chosen.chart, chosen.node.path, tasks)}
            onClose={close}
          />
        </aside>
      )}
    </div>
  )
}

function linkOf({ id }: MachineChart, { path }: ChartNode) {
  return kindOfMachine(id) && stateLink(id, path)
}

function stateLink(machine: string, path: string) {
  const query = new URLSearchParams({ machine, state: path })
  return { id: `state-${machine}-${path}`, href: addressOf('machines', undefined, query) }
}

/** Returns the state in the address; undefined if the address has none that exists. */
function chosenIn({ query }: Address): { readonly chart: MachineChart; readonly node: ChartNode } | undefined {
  const chart = machineCharts.find(({ id }) => id === query.get('machine') && kindOfMachine(id) !== undefined)
  const node = chart && statesOf(chart).find(({ path }) => path === query.get('state'))
  return chart && node && { chart, node }
}
