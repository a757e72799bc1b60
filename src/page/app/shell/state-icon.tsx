/** The icon of a state. Each state has its own shape and colour. */
import type { PageTaskState } from '../../wire.js'
import { colorOf, LOOKS, type Look } from '../text/states.js'

export function StateIcon({ state }: { readonly state: PageTaskState }) {
  const { shape, isFilled = false }: Look = LOOKS[state]
  return (
    <svg
      class={`state-icon state-${state}${isFilled ? ' filled' : ''}`}
      style={{ color: colorOf(state) }}
      viewBox="0 0 12 12"
      aria-hidden="true"
    >
      <path d={shape} />
    </svg>
  )
}
