/** A foldable tree of a JSON value. Closed parts are not in the document, so a deep or long value takes no time until a person opens it. */
import { useSignal } from '@preact/signals'
import { entriesOf, folded } from './json-values.js'
import { visible, visibleLines } from './visible.js'

/** How many entries are shown at first. The button below the entries adds as many. */
const STEP = 100

interface Props {
  readonly value: unknown
  readonly label: string
  readonly isOpen: boolean
}

export function JsonTree({ value, label, isOpen }: Props) {
  const entries = entriesOf(value)
  return (
    <div class="json" role="group" aria-label={label}>
      {entries ? <Entries entries={entries} isOpen={isOpen} /> : <Plain value={value} />}
    </div>
  )
}

interface EntriesProps {
  readonly entries: readonly (readonly [string, unknown])[]
  readonly isOpen: boolean
}

function Entries({ entries, isOpen }: EntriesProps) {
  const shown = useSignal(STEP)
  const left = entries.length - shown.value
  if (entries.length === 0) return <p class="hint">empty</p>
  return (
    <ul>
      {entries.slice(0, shown.value).map(([name, value]) => (
        <li key={name}>
          <Entry name={name} value={value} isAlone={entries.length === 1} isOpen={isOpen} />
        </li>
      ))}
      {left > 0 && (
        <li>
          <button type="button" onClick={() => (shown.value += STEP)}>
            {left} more
          </button>
        </li>
      )}
    </ul>
  )
}

interface EntryProps {
  readonly name: string
  readonly value: unknown
  readonly isAlone: boolean
  readonly isOpen: boolean
}

function Entry({ name, value, isAlone, isOpen: isOpenAtFirst }: EntryProps) {
  const inside = entriesOf(value)
  const isOpen = useSignal(isOpenAtFirst)
  const isText = typeof value === 'string' && value.includes('\n')
  if (!inside || inside.length === 0) {
    return (
      <div class={isText || (isAlone && typeof value === 'string') ? 'entry long' : 'entry'}>
        <span class="name">{visible(name)}</span> <Plain value={value} />
      </div>
    )
  }
  return (
    <details open={isOpen.value} onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary>
        <span class="name">{visible(name)}</span> <span class="hint">{folded(value as object)}</span>
      </summary>
      {isOpen.value && <Entries entries={inside} isOpen={isOpenAtFirst} />}
    </details>
  )
}

function Plain({ value }: { readonly value: unknown }) {
  if (typeof value === 'string') return <span class="json-text">{value === '' ? '""' : visibleLines(value)}</span>
  return <span class="json-plain">{JSON.stringify(value)}</span>
}
