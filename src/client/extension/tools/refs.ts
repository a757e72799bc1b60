/**
 * The refs of a tab's elements, such as `e12`, by which a snapshot names them. A ref is unique across all tabs. It is valid as long as the frame shows
 * the document of its element.
 */
import { BrowserError } from '../debuggee.js'

export interface ElementKey {
  readonly frameId: string
  readonly backendNodeId: number
}

/** Counts the refs of all tabs. `last` is the number of the last ref. */
export interface RefCounter {
  last: number
  /** Stores the number, so that a restarted service worker continues after it. */
  keep?(): Promise<void>
}

/** The maximum number of refs of a tab. The oldest are dropped first. */
const MAX_REFS = 50_000

const PATTERN = /^e([1-9]\d*)$/

export const isRef = (target: string): boolean => PATTERN.test(target)

export function createRefs(counter: RefCounter) {
  const elements = new Map<string, ElementKey>()
  const refs = new Map<string, string>()
  const keyOf = ({ frameId, backendNodeId }: ElementKey): string => `${frameId} ${backendNodeId}`

  function remove(ref: string, element: ElementKey): void {
    elements.delete(ref)
    refs.delete(keyOf(element))
  }

  return {
    refOf: (element: ElementKey): string => {
      const known = refs.get(keyOf(element))
      if (known !== undefined) return known
      const ref = `e${(counter.last += 1)}`
      elements.set(ref, element)
      refs.set(keyOf(element), ref)
      for (const [oldest, of] of elements) {
        if (elements.size <= MAX_REFS) break
        remove(oldest, of)
      }
      return ref
    },
    /** @throws BrowserError `REF_GONE`, or `ELEMENT_NOT_FOUND` for a ref that was never used */
    elementOf: (ref: string): ElementKey => {
      const element = elements.get(ref)
      if (element !== undefined) return element
      if (Number(PATTERN.exec(ref)?.[1]) <= counter.last) throw goneError(ref)
      throw new BrowserError(
        'ELEMENT_NOT_FOUND',
        `No snapshot has an element ${ref}. Take a snapshot with browser_snapshot.`,
      )
    },
    /** Drops the refs of a frame that shows another document or was removed. */
    forget: (frameId: string): void => {
      for (const [ref, element] of elements) if (element.frameId === frameId) remove(ref, element)
    },
  }
}

export function goneError(ref: string): BrowserError {
  return new BrowserError(
    'REF_GONE',
    `The page no longer has ${ref}: it has changed since the snapshot, or another tab is current. Take a new snapshot with browser_snapshot.`,
  )
}
