/** The part Host: what is paused, and the schedules and monitors that wake the host's agents. */
import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { HostRow } from '../../wire.js'
import { encoded } from '../addresses.js'
import { usePage } from '../page-state.js'
import { ActionButton } from '../shell/action-button.js'
import { EmptyState } from '../shell/empty-state.js'
import { useKeptFocus } from '../task/use-kept-focus.js'
import { growing, timeOfDay } from '../text/format.js'
import { visible } from '../text/visible.js'

const WORDS = {
  pauses: { word: 'Pause', when: 'Since', label: 'Resume', action: 'resume' },
  schedules: { word: 'Schedule', when: 'Fires in', label: 'Cancel', action: 'cancel' },
  monitors: { word: 'Monitor', when: 'Ends in', label: 'Cancel', action: 'cancel' },
} as const

/** How many rows are shown at first. The button "Show more" adds as many. */
const MANY = 100

export function HostPart() {
  const { host, hello } = usePage().view.value
  const [holds, shown] = [useSignal(false), useSignal(MANY)]
  const part = useRef<HTMLElement>(null)
  useKeptFocus(part, 'host-heading')
  const pause = host.find(({ owner }) => owner === '')
  const rows = host.filter((row) => row !== pause)
  return (
    <section ref={part} class="part" aria-labelledby="host-heading">
      <div class="part-head">
        <h1 id="host-heading" tabIndex={-1}>
          Host
        </h1>
        <p role="status">
          {pause && `All tasks have been paused since ${timeOfDay(pause.at)}, ${visible(pause.detail)}.`}
        </p>
        {hello?.hasAsync === true && (
          <div class="toolbar">
            <label hidden={pause !== undefined}>
              <input type="checkbox" checked={holds.value} onChange={() => (holds.value = !holds.value)} /> Hold results
            </label>
            <ActionButton
              path={`/api/pauses/all/${pause ? 'resume' : 'pause'}`}
              body={pause ? {} : { deliveries: holds.value ? 'hold' : 'send' }}
              label={pause ? 'Resume all tasks' : 'Pause all tasks'}
            />
          </div>
        )}
      </div>
      {rows.length === 0 && (
        <EmptyState
          title="Nothing is scheduled or monitored"
          command={hello?.hints === 'mcp' ? 'Remind me in an hour.' : "tasks.schedule({ in: 3_600_000, message: '…' })"}
        />
      )}
      <ol class="cards">
        {rows.slice(0, shown.value).map((row) => (
          <Row key={`${row.kind} ${row.id}`} row={row} />
        ))}
      </ol>
      {rows.length > shown.value && (
        <button type="button" onClick={() => (shown.value += MANY)}>
          Show more of {rows.length}
        </button>
      )}
    </section>
  )
}

function Row({ row: { kind, id, owner, detail, at } }: { readonly row: HostRow }) {
  const { second } = usePage()
  const { word, when, label, action } = WORDS[kind]
  return (
    <li class="card past-task">
      <header>
        <h2>{visible(`${word} of ${owner}`)}</h2>
        <span class="tag number">
          {when} {kind === 'pauses' ? timeOfDay(at) : growing(at - second.value)}
        </span>
      </header>
      <footer>
        <code>{visible(detail)}</code>
        <ActionButton
          path={`/api/${kind}/${encoded(id)}/${action}`}
          label={label}
          aria-label={`${label} ${word.toLowerCase()} ${visible(id)}`}
        />
      </footer>
    </li>
  )
}
