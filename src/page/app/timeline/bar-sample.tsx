/** A short bar for the legend. It must look like the bars that `bar-painter.ts` draws. */
import type { PageTaskState } from '../../wire.js'
import { colorOf, LOOKS, type Look } from '../text/states.js'

export function BarSample({ state }: { readonly state: PageTaskState }) {
  const { strokes = [] }: Look = LOOKS[state]
  const pattern = `bar-pattern-${state}`
  const shape = { x: 0.5, y: 0.5, width: 23, height: 11 }
  return (
    <svg class="bar-sample" style={{ color: colorOf(state) }} viewBox="0 0 24 12" aria-hidden="true">
      {state === 'queued' ? (
        <rect {...shape} fill="none" stroke="currentColor" stroke-dasharray="3 2" />
      ) : (
        <>
          <pattern id={pattern} width="8" height="8" patternUnits="userSpaceOnUse">
            {strokes.map(([x1, y1, x2, y2]) => (
              <line key={`${x1} ${y1}`} x1={x1} y1={y1} x2={x2} y2={y2} />
            ))}
          </pattern>
          <rect {...shape} rx="3" fill="currentColor" />
          <rect {...shape} rx="3" fill={`url(#${pattern})`} />
        </>
      )}
    </svg>
  )
}
