// Jobs of workers that have died: which are given up, and how.
import { UnrecoverableError, type Job } from 'bullmq'
import type { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { giveUp, giveUpDead } from '../../../src/bullmq/give-up-dead.js'
import { FIND_SILENT, GIVE_UP } from '../../../src/bullmq/job-scripts.js'

const name = { prefix: 'bull', queue: 'task' }

/** A Redis with two active jobs without locks; calls `onLook` when they are looked for, and before each is given up. */
function openQueue({ onLook = (): void => undefined, isFirst = true, seized = 1 } = {}) {
  const sets: unknown[][] = []
  const scripts: unknown[][] = []
  const failed: { id: string; error: Error; token: string }[] = []
  const redis = {
    set: (...args: unknown[]) => {
      sets.push(args)
      return Promise.resolve(isFirst ? 'OK' : null)
    },
    evalsha: (...args: unknown[]) => {
      onLook()
      scripts.push(args)
      return Promise.resolve(args[0] === FIND_SILENT.sha ? ['first', 'second'] : seized)
    },
  }
  const findJob = (id: string) =>
    Promise.resolve({
      moveToFailed: (error: Error, token: string) => {
        failed.push({ id, error, token })
        return Promise.resolve()
      },
    } as unknown as Job)
  return { access: { redis: redis as unknown as Redis, name, findJob }, sets, scripts, failed }
}

describe('the jobs of workers that have died', () => {
  it('W4: jobs without a lock are given up', async () => {
    const { access, sets, failed } = openQueue()
    await giveUpDead({ ...access, everyMs: 100, seesDead: () => true })
    expect(failed.map(({ id }) => id)).toEqual(['first', 'second'])
    expect(sets).toEqual([['bull:task:agent-sweep', '1', 'PX', 100, 'NX']])
  })

  it('W4: are not looked for when another worker has just looked', async () => {
    const { access, scripts } = openQueue({ isFirst: false })
    await giveUpDead({ ...access, everyMs: 100, seesDead: () => true })
    expect(scripts).toEqual([])
  })

  it('W6: nothing is given up when Redis was away while it was asked', async () => {
    let looks = 0
    const { access, sets, failed } = openQueue({ onLook: () => (looks += 1) })
    await giveUpDead({ ...access, everyMs: 100, seesDead: () => looks < 2 })
    expect(failed.map(({ id }) => id)).toEqual(['first'])
    await giveUpDead({ ...access, everyMs: 100, seesDead: () => false })
    expect(failed).toHaveLength(1)
    expect(sets).toHaveLength(1)
  })
})

describe('a job that is given up', () => {
  it('W4: fails for good under a lock of its own, and its failure says that it was interrupted', async () => {
    const { access, scripts, failed } = openQueue()
    await giveUp(access, 'x')
    await giveUp(access, 'x')
    const [[sha, keys, agent, queue, id, token, lockMs, failure, keptSeconds] = []] = scripts
    expect([sha, keys, agent, queue, id]).toEqual([GIVE_UP.sha, 1, 'bull:task:x:agent', 'bull:task', 'x'])
    expect([lockMs, keptSeconds]).toEqual([5000, 86_400])
    expect(JSON.parse(String(failure))).toMatchObject({ code: 'INTERRUPTED' })
    expect(failed[0]).toMatchObject({ id: 'x', token })
    expect(failed[0]?.error).toBeInstanceOf(UnrecoverableError)
    expect(failed[0]?.token).not.toBe(failed[1]?.token)
  })

  it('W4: is left alone when its worker is back', async () => {
    const { access, failed } = openQueue({ seized: 0 })
    await giveUp(access, 'x')
    expect(failed).toEqual([])
  })

  it('W4: may be gone', async () => {
    const { access } = openQueue()
    await giveUp({ ...access, findJob: () => Promise.resolve(undefined) }, 'x')
  })
})
