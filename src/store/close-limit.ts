/** Limits how long a store may hold the end of its manager. */
import type { Clock } from '../system/clock.js'
import { StoreError } from './store-errors.js'

/** How long a store may take for its last write, and how long for its end, in ms. */
const LIMIT_MS = 30_000

export interface ClosedStore {
  readonly name: string
  readonly clock: Clock
  readonly report: (error: unknown) => void
}

/**
 * Waits for a step of the end of a store, but not for ever: a store on a server may never answer, and one of the host may never settle. When the limit
 * has passed, that is reported, and the end continues.
 * @param what the step in words, for the report
 */
export async function withinLimit(
  step: () => void | Promise<void>,
  what: string,
  { name, clock, report }: ClosedStore,
): Promise<void> {
  let timer: unknown
  const expired = new Promise<void>((resolve) => {
    const expire = (): void => {
      report(new StoreError('STORE_UNAVAILABLE', `${name}: ${what} has not ended within ${LIMIT_MS} ms. It is left.`))
      resolve()
    }
    timer = clock.setTimeout(expire, LIMIT_MS, { name: `time limit of ${what} of a store`, kind: 'deadline' })
  })
  try {
    await Promise.race([step(), expired])
  } finally {
    clock.clearTimeout(timer)
  }
}
