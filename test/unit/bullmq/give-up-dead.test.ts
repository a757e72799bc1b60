import type { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { giveUpDead } from '../../../src/bullmq/give-up-dead.js'

/** A Redis with two active jobs without locks; calls `onLook` when it is asked for a lock. */
function redisWithDead(onLook: () => void) {
  const given: string[] = []
  const redis = {
    set: () => Promise.resolve('OK'),
    lrange: () => Promise.resolve(['first', 'second']),
    exists: () => {
      onLook()
      return Promise.resolve(0)
    },
    evalsha: (...args: unknown[]) => {
      given.push(String(args.at(-2)))
      return Promise.resolve(1)
    },
  }
  return { redis: redis as unknown as Redis, given }
}

const options = { name: { prefix: 'bull', queue: 'task' }, everyMs: 100 }

it('W4: jobs without a lock are given up', async () => {
  const { redis, given } = redisWithDead(() => undefined)
  await giveUpDead({ redis, seesDead: () => true, ...options })
  expect(given).toEqual(['first', 'second'])
})

it('W6: nothing is given up when Redis was away while it was asked', async () => {
  let looks = 0
  const { redis, given } = redisWithDead(() => (looks += 1))
  await giveUpDead({ redis, seesDead: () => looks < 2, ...options })
  expect(given).toEqual(['first'])
  await giveUpDead({ redis, seesDead: () => false, ...options })
  expect(given).toEqual(['first'])
})
