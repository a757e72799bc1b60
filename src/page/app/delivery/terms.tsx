/** What the terms of the deliveries mean. */
import { DELIVERY_MEANINGS } from '../text/deliveries.js'

const TERMS = ['owed', 'leased', 'delivered'] as const

export function Terms() {
  return (
    <dl class="terms">
      {TERMS.map((term) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{DELIVERY_MEANINGS[term]}</dd>
        </div>
      ))}
    </dl>
  )
}
