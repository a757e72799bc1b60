import { describe, expect, it } from 'vitest'
import { hostChannel, jobKeys, workersChannel } from '../../../src/bullmq/job-keys.js'
import { accepts } from '../../../src/protocol/option-checks.js'
import { aQueueName, lockTimes } from '../../../src/bullmq/queue-settings.js'

describe('what hosts and workers agree on', () => {
  it('W4: a lock that nobody renews ends, and is found, before lockMs has passed', () => {
    for (const lockMs of [100, 1000, 15_000, 60_001]) {
      const { lockDuration, stalledInterval, pollMs } = lockTimes(lockMs)
      expect(lockDuration + stalledInterval).toBeLessThan(lockMs)
      expect(pollMs).toBe(Math.ceil(lockDuration / 2))
    }
    expect(lockTimes(15_000)).toEqual({ lockDuration: 10_000, stalledInterval: 2500, pollMs: 5000 })
  })

  it('are three keys for each job, beside those of BullMQ', () => {
    const keys = jobKeys({ prefix: 'bull', queue: 'research' }, 'x-1')
    expect(keys).toEqual({
      id: 'x-1',
      queue: 'bull:research',
      agent: 'bull:research:x-1:agent',
      up: 'bull:research:x-1:up',
      down: 'bull:research:x-1:down',
    })
    expect(workersChannel({ prefix: 'bull', queue: 'research' })).toBe('bull:research:agent-workers')
    expect(hostChannel({ prefix: 'bull', queue: 'research' }, 'h')).toBe('bull:research:agent-host:h')
  })

  it('is a name without a colon, which separates keys', () => {
    expect(['research', 'a.b-c', ''].map((name) => accepts(aQueueName, name))).toEqual([true, true, false])
    expect(accepts(aQueueName, 'a:b')).toBe(false)
    expect(accepts(aQueueName, 1)).toBe(false)
  })
})
