/** The links to the parts of the page. */
import { useEffect, useRef } from 'preact/hooks'
import type { Hello } from '../../wire.js'
import { PARTS, PART_NAMES, addressOf, type Part } from '../addresses.js'
import { usePage } from '../page-state.js'

/** Whether the navigation offers a part. A server that has only command tasks has no host, and no results to deliver to agents. */
function isOffered(part: Part, hello: Hello | undefined): boolean {
  if (part === 'launch') return hello?.canLaunch === true
  return (part !== 'host' && part !== 'delivery') || hello?.hasAsync !== false
}

export function Navigation({ current }: { readonly current: Part }) {
  const { host, hello } = usePage().view.value
  const list = useRef<HTMLUListElement>(null)
  // On a narrow screen the list scrolls sideways, so the current link may be out of view.
  useEffect(() => list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' }), [current])
  return (
    <nav aria-label="Parts">
      <ul ref={list}>
        {PARTS.filter((part) => isOffered(part, hello)).map((part) => (
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
