/** A state with its icon and name. */
import type { PageTaskState } from '../../wire.js'
import { colorOf, LOOKS } from '../text/states.js'
import { StateIcon } from './state-icon.js'

export function StateBadge({ state }: { readonly state: PageTaskState }) {
  return (
    <span class="state-badge" style={{ color: colorOf(state) }}>
      <StateIcon state={state} />
      {LOOKS[state].word}
    </span>
  )
}
