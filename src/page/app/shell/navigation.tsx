/** The parts of the page. */
import { PARTS, PART_NAMES, addressOf, type Part } from '../addresses.js'

export function Navigation({ current }: { readonly current: Part }) {
  return (
    <nav aria-label="Parts">
      <ul>
        {PARTS.map((part) => (
          <li key={part}>
            <a href={addressOf(part)} aria-current={part === current ? 'page' : undefined}>
              {PART_NAMES[part]}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}
