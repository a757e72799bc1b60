/** A state with its icon and name. */
import type { PageTaskState } from '../../wire.js'
import { LOOKS } from '../text/states.js'
import { StateIcon } from './state-icon.js'

export function StateBadge({ state }: { readonly state: PageTaskState }) {
  return (
    <span class={`state-badge state-${state}`}>
      <StateIcon state={state} />
      {LOOKS[state].word}
    </span>
  )
}
