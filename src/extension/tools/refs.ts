/** The refs of elements in snapshots. A ref is unique across all tabs, and belongs to its element while its document is shown. */
import { BrowserError } from '../debuggee.js'

export interface ElementKey {
  readonly frameId: string
  readonly backendNodeId: number
}

/** The last ref number, for all tabs. */
export interface RefCounter {
  last: number
  /** Resolves when the number is stored, so that a restarted worker continues after it. */
  keep?(): Promise<void>
}

/** The maximum number of elements of a tab with refs. */
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
      throw new BrowserError('ELEMENT_NOT_FOUND', `No snapshot has an element ${ref}. Take one with browser_snapshot.`)
    },
    /** Drops the elements of a frame that shows another document, or is gone. */
    forget: (frameId: string): void => {
      for (const [ref, element] of elements) if (element.frameId === frameId) remove(ref, element)
    },
  }
}

export function goneError(ref: string): BrowserError {
  return new BrowserError(
    'REF_GONE',
    `The page has no ${ref} any more: it has changed since that snapshot, or it is another tab. Take a new one with browser_snapshot.`,
  )
}
