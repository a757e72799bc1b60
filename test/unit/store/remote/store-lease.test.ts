/** The lease of a store, without a server. */
import { expect, it, vi } from 'vitest'
import { elapsedMs } from '../../../../src/system/clock.js'
import type { StoreDatabase } from '../../../../src/store/remote/store-database.js'
import { keepStoreLease } from '../../../../src/store/remote/store-lease.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'

it('a lease counts from the latest statement that has extended it, also when an earlier one is answered later', () => {
  const clock = createManualClock()
  const onLost = vi.fn()
  // A server that never answers a renewal.
  const database = { renew: () => new Promise(() => undefined) } as unknown as StoreDatabase
  const options = { database, session: 's', leaseMs: 1000, clock, name: 'store' }
  const begun = elapsedMs(clock)
  const taken = { epoch: 1, batch: 0, since: begun }
  const lease = keepStoreLease({ ...options, whenLeaseExpires: 'stop' }, taken, onLost)
  lease.extended(begun + 400)
  lease.extended(begun + 100)
  clock.advance(899)
  expect(onLost).not.toHaveBeenCalled()
  clock.advance(1)
  expect(onLost).toHaveBeenCalledOnce()
  expect(clock.pending).toBe(0)
})
