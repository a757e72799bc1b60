/** Moves the focus to the heading of a new part, if the element that had the focus was removed with the previous part. */
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
