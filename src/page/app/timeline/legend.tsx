/** Explains the icons, bars and marks of the timeline, and its keys. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { TaskMark } from '../../wire.js'
import { StateIcon } from '../shell/state-icon.js'
import { STATES, LOOKS } from '../text/states.js'
import { BarSample } from './bar-sample.js'
import { legendMemory } from './legend-memory.js'
import { drawMark, MARKS } from './mark-painter.js'
import { readPalette } from './palette.js'

const memory = legendMemory(() => localStorage)

export function Legend() {
  const isOpen = useSignal(!memory.wasClosed())
  return (
    <details
      class="legend"
      open={isOpen.value}
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open
        if (!currentTarget.open) memory.keepClosed()
      }}
    >
      <summary>Legend and keys</summary>
      <ul>
        {STATES.map((state) => (
          <li key={state}>
            <StateIcon state={state} /> <BarSample state={state} /> {LOOKS[state].word}
          </li>
        ))}
        {MARKS.map(([kind, words]) => (
          <li key={kind}>
            <Mark kind={kind} /> {words}
          </li>
        ))}
      </ul>
      <p class="hint">
        / filters · Arrows move · Enter opens · + and − or Ctrl and the wheel zoom · [ and ] or dragging move in time ·
        0 fits · f follows · p pauses
      </p>
    </details>
  )
}

function Mark({ kind }: { readonly kind: TaskMark['kind'] }) {
  const ref = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    const context = ref.current?.getContext('2d')
    if (!ref.current || !context) return
    context.clearRect(0, 0, 14, 14)
    drawMark(context, readPalette(ref.current, context), kind, 7, 7)
  })
  return <canvas ref={ref} class="mark" width={14} height={14} aria-hidden="true" />
}
