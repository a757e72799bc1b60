/** The sign of a state: each has its own shape, besides its colour. */
import type { PageTaskState } from '../../wire.js'

const SHAPES: Readonly<Record<PageTaskState, string>> = {
  queued: 'M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9',
  running: 'M3 1.5v9l7.5-4.5z',
  asking: 'M3.6 4.2a2.4 2.4 0 1 1 3.6 2.1c-.8.5-1.2.9-1.2 1.7M6 10.4v.1',
  wrapping: 'M6 1.5v9M6 1.5a4.5 4.5 0 0 1 0 9z',
  stopping: 'M2 2h8v8H2z',
  completed: 'M1.5 6.5l3 3 6-7',
  failed: 'M2 2l8 8M10 2l-8 8',
  cancelled: 'M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M3 9l6-6',
  'timed-out': 'M2.5 1.5h7M2.5 10.5h7M3.5 1.5c0 3 5 6 5 9M8.5 1.5c0 3-5 6-5 9',
}
const FILLED: readonly PageTaskState[] = ['running', 'stopping', 'wrapping']

export function StateIcon({ state }: { readonly state: PageTaskState }) {
  const isFilled = FILLED.includes(state)
  return (
    <svg class={`state-icon state-${state}${isFilled ? ' filled' : ''}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={SHAPES[state]} />
    </svg>
  )
}
