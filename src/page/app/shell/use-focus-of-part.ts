/** Keeps the focus on the page. If the element that had it is gone with its part, such as a form that was sent, the heading of the new part gets it. */
import { useEffect, useRef } from 'preact/hooks'
import { addressOf, type Address } from '../addresses.js'

export function useFocusOfPart({ part, subject }: Address): void {
  const shown = addressOf(part, subject)
  const before = useRef(shown)
  useEffect(() => {
    if (before.current === shown) return
    before.current = shown
    if (document.activeElement !== document.body) return
    const heading = document.querySelector<HTMLElement>('#main h1[tabindex]')
    const target = heading ?? document.getElementById('main')
    target?.focus({ preventScroll: true })
  }, [shown])
}
