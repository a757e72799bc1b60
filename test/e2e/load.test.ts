// 2,000 tasks of 50 clients over 20 instances, with random cancels and disconnects on every side. FC_SEED replays the choices of a run.
import { expect, it } from 'vitest'
import { seed } from '../support/property.js'
import { runLoad } from './load/run.js'

it(
  'S1, S2, S3, S7, S8, S9: every task ends once, and each subscriber receives each event once and in order',
  { timeout: 180_000 },
  async () => {
    const { faults, leftovers, figures, byStatus } = await runLoad({ seed, tasks: 2000, clients: 50, instances: 20 })
    console.info(figures)
    expect([seed, faults.slice(0, 20)]).toEqual([seed, []])
    expect([seed, leftovers]).toEqual([seed, []])
    // A run in which nothing goes wrong shows nothing.
    const total = Object.values(byStatus).reduce((sum, count) => sum + count, 0)
    expect(total).toBeGreaterThanOrEqual(2000)
    for (const status of ['completed', 'failed', 'cancelled']) expect(byStatus[status]).toBeGreaterThan(100)
  },
)
