/** Keeps the focus in a panel. If the element with the focus is removed, such as a button of a task that has ended, the heading gets the focus. */
import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'

export function useKeptFocus(panel: RefObject<HTMLElement | null>, headingId: string): void {
  useEffect(() => {
    const box = panel.current
    if (!box) return undefined
    let last: EventTarget | null = null
    const onFocus = ({ target }: FocusEvent): void => {
      last = target
    }
    const observer = new MutationObserver(() => {
      const isGone = last instanceof Node && !box.contains(last)
      if (!isGone) return
      last = null
      if (document.activeElement === document.body) document.getElementById(headingId)?.focus({ preventScroll: true })
    })
    box.addEventListener('focusin', onFocus)
    observer.observe(box, { childList: true, subtree: true })
    return () => {
      box.removeEventListener('focusin', onFocus)
      observer.disconnect()
    }
  }, [panel, headingId])
}
