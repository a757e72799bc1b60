import { expect, it } from 'vitest'
import { accountOf, hasEnded, holdsSlot, STATUSES, TERMINAL_STATUSES } from '../../../machines/task-status.js'

it('each status is active, counted in an account of its owner, or an end that holds no slot', () => {
  expect(TERMINAL_STATUSES).toEqual(['completed', 'failed', 'cancelled'])
  expect(STATUSES.filter(holdsSlot)).toEqual(['running'])
  for (const status of STATUSES) {
    if (hasEnded(status)) expect(holdsSlot(status)).toBe(false)
    else expect(accountOf(status)).toBe(holdsSlot(status) ? 'running' : 'queued')
  }
})
