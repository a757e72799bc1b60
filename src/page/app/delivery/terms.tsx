/** Explains the terms of deliveries. */
import { DELIVERY_MEANINGS } from '../text/deliveries.js'

const TERMS = [
  ['owed', 'Owed'],
  ['leased', 'Leased'],
  ['delivered', 'Delivered'],
] as const

export function Terms() {
  return (
    <dl class="terms">
      {TERMS.map(([term, name]) => (
        <div key={term}>
          <dt>{name}</dt>
          <dd>{DELIVERY_MEANINGS[term]}</dd>
        </div>
      ))}
    </dl>
  )
}
