/** The state of the deliveries to one owner. */
import type { OwnerDelivery } from '../../wire.js'
import { usePage } from '../page-state.js'
import { count, growing, timeOfDay } from '../text/format.js'
import { ownerName, taskOfRun } from '../text/owners.js'
import { visible } from '../text/visible.js'
import { Messages } from './messages.js'
import { WaitingResults } from './waiting-results.js'

const WORDS: Readonly<Record<OwnerDelivery['state'], string>> = {
  none: 'Nobody subscribed',
  idle: 'Idle',
  gathering: 'Gathering',
  busy: 'Agent busy',
  'backing-off': 'Backing off',
  delivering: 'Delivering',
}

export function OwnerCard({ delivery }: { readonly delivery: OwnerDelivery }) {
  const { owner, owed, leased, delivered, state, reason, messages, waiting } = delivery
  const waits = owed + leased > 0
  const run = taskOfRun(owner)
  const { taskOf } = usePage().view.value
  const name = ownerName(owner, run === undefined ? undefined : taskOf(run))
  return (
    <article class="card" aria-label={`Owner ${visible(name)}`} data-owner={owner}>
      <header>
        <h2>{visible(name)}</h2>
        <span class={`tag delivery-${state}${waits ? ' waits' : ''}`}>
          {run === undefined ? WORDS[state] : 'A run'}
        </span>
      </header>
      <dl class="figures">
        <Figure name="Owed" value={owed} />
        <Figure name="Leased" value={leased} />
        <Figure name="Delivered" value={delivered} />
      </dl>
      <p class={waits ? 'reason' : 'hint'}>
        {visible(reason)}
        <Until delivery={delivery} />
      </p>
      {waiting.length > 0 && <WaitingResults delivery={delivery} />}
      {messages.length > 0 && <Messages messages={messages} />}
    </article>
  )
}

function Figure({ name, value }: { readonly name: string; readonly value: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="number">{count(value)}</dd>
    </div>
  )
}

function Until({ delivery: { until } }: { readonly delivery: OwnerDelivery }) {
  const { second } = usePage()
  if (until === undefined) return null
  const left = until - second.value
  return (
    <span class="number">
      {' '}
      Next attempt at {timeOfDay(until)}
      {left > 0 && `, in ${growing(left)}`}.
    </span>
  )
}
