/** The parts of the page. */
import { useEffect, useRef } from 'preact/hooks'
import { PARTS, PART_NAMES, addressOf, type Part } from '../addresses.js'
import { usePage } from '../page-state.js'

export function Navigation({ current }: { readonly current: Part }) {
  const { host, hello } = usePage().view.value
  const list = useRef<HTMLUListElement>(null)
  // On a narrow screen it scrolls.
  useEffect(() => list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' }), [current])
  return (
    <nav aria-label="Parts">
      <ul ref={list}>
        {PARTS.filter((part) => part !== 'launch' || hello?.canLaunch === true).map((part) => (
          <li key={part}>
            <a href={addressOf(part)} aria-current={part === current ? 'page' : undefined}>
              {PART_NAMES[part]}
              {part === 'host' && host.some(({ owner }) => owner === '') && ' (paused)'}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}
