/** Steps that a run has left open, and what their log keeps: F20. */
import { describe, expect, it } from 'vitest'
import type { RunContext } from '../../../../src/index.js'
import { StepLog } from '../../../../src/features/steps/step-log.js'
import { createManualClock } from '../../../../src/testing/index.js'
import { durableProcess, settle } from './durable-host.js'

const never = (): Promise<never> => new Promise(() => undefined)
const busy = (): Error => Object.assign(new Error('busy'), { code: 'RATE_LIMITED' })
const definition = { retry: { attempts: 3, on: ['rate-limited' as const], backoff: { initialMs: 0 } } }

describe('a wait that a failed run has left open', () => {
  it('F20: does not keep the task waiting when the process dies before the next run has asked for it', async () => {
    let runs = 0
    const first = durableProcess(
      async ({ waitFor }) => {
        runs += 1
        if (runs > 1) await never()
        waitFor('never').catch(() => undefined)
        throw busy()
      },
      { definition },
    )
    await first.launch()
    first.clock.advance(1)
    await settle()
    expect(runs).toBe(2)
    const next = await first.next()
    expect(next.task()).toMatchObject({ status: 'running' })
    expect(runs).toBe(3)
  })

  it('F20: keeps it waiting once the next run has asked for it', async () => {
    let runs = 0
    const first = durableProcess(
      async ({ waitFor }) => {
        runs += 1
        const waited = waitFor('go')
        waited.catch(() => undefined)
        if (runs === 1) throw busy()
        await waited
      },
      { definition },
    )
    await first.launch()
    first.clock.advance(1)
    await settle()
    const next = await first.next()
    expect(next.task()).toMatchObject({ status: 'queued' })
    expect(runs).toBe(2)
  })
})

it('F20: a step of a run that has failed does not end that of the next one', async () => {
  const ends: ((value: string) => void)[] = []
  const first = durableProcess(
    async ({ step }) => {
      const slow = step('slow', () => new Promise<string>((resolve) => ends.push(resolve)))
      slow.catch(() => undefined)
      if (ends.length < 2) await settle()
      if (ends.length === 1) throw busy()
      return { got: await slow }
    },
    { definition },
  )
  await first.launch()
  await settle()
  first.clock.advance(1)
  await settle()
  await settle()
  expect(ends).toHaveLength(2)
  ends[0]?.('first')
  await settle()
  ends[1]?.('second')
  await settle()
  expect(first.task()).toMatchObject({ status: 'completed', output: { got: 'second' } })
})

it('F20: a run that works beside a wait keeps its slot, and its time counts', async () => {
  const first = durableProcess(({ sleep, step }) => Promise.all([step('a', never), sleep(60_000)]), {
    definition: { releasesSlot: true },
  })
  await first.launch({ timeoutMs: 1000 })
  expect(first.manager.actor.getSnapshot()).toMatchObject({ slots: 1 })
  first.clock.advance(1000)
  await settle()
  first.clock.advance(1)
  await settle()
  expect(first.task()).toMatchObject({ status: 'failed', errorCode: 'TASK_TIMEOUT' })
})

it('F20: an event that comes after a wait for its name has ended is kept for the next one', async () => {
  let go: () => void = () => undefined
  const first = durableProcess(async ({ step, waitFor }) => {
    const one = await waitFor('go')
    await step('a', () => new Promise<void>((resolve) => (go = resolve)))
    return { got: [one, await waitFor('go')] }
  })
  await first.launch()
  for (const value of [1, 2]) {
    await first.manager.emit('go', value, { taskId: 'task' })
    await settle()
  }
  go()
  await settle()
  expect(first.task()).toMatchObject({ status: 'completed', output: { got: [1, 2] } })
})

it('F20: a run with an open step beside a wait starts again at once', async () => {
  const run = async ({ sleep, step }: RunContext): Promise<unknown> => Promise.all([sleep(60_000), step('a', never)])
  const first = durableProcess(run)
  await first.launch()
  expect(first.rows().map(({ data }) => data['overlaps'])).toEqual([true, true])
  const next = await first.next()
  expect(next.task()).toMatchObject({ status: 'running' })
})

it('F20: the time that a task has worked is the most that one of its steps has stored', async () => {
  let end: () => void = () => undefined
  const run = async ({ step }: RunContext): Promise<unknown> => {
    const late = step('late', () => new Promise<void>((resolve) => (end = resolve)))
    await step('early', () => 1)
    await late
    return step('hang', never)
  }
  const first = durableProcess(async (context) => {
    await run({
      ...context,
      step: ((name: string, work: () => unknown) => (name === 'hang' ? never() : context.step(name, work))) as never,
    })
  })
  await first.launch({ timeoutMs: 1000 })
  first.clock.advance(600)
  end()
  await settle()
  const next = await first.next(run)
  next.clock.advance(400)
  await settle()
  next.clock.advance(1)
  await settle()
  expect(next.task()).toMatchObject({ status: 'failed', errorCode: 'TASK_TIMEOUT' })
})

describe('the log of a task', () => {
  const rows = (count: number, result: string): object[] =>
    Array.from({ length: count }, (_, at) => ({
      taskId: 'task',
      key: `s${at}`,
      kind: 'work',
      beganAt: 2 * at + 1,
      endedAt: 2 * at + 2,
      overlaps: false,
      activeMs: 0,
      result,
    }))

  it('F20: counts the bytes of what an earlier process has stored', () => {
    const log = new StepLog('task')
    for (const row of rows(64, JSON.stringify('x'.repeat(1024 * 1024 - 2)))) expect(log.read(row as never)).toBe(true)
    log.order()
    log.begin({ key: 'more', kind: 'work' }, false)
    log.end('more', { result: '1' })
    expect(log.get('more')?.failure).toContain('STEP_LIMIT')
  })

  it('F20: keeps the first end of a step', () => {
    const log = new StepLog('task')
    log.begin({ key: 'a', kind: 'work' }, false)
    log.end('a', { result: '1' })
    log.end('a', { result: '2' })
    expect(log.get('a')).toMatchObject({ result: '1', endedAt: 2 })
  })
})

describe('a run that has given back its slot', () => {
  it('F20: and fails then is followed by the next one, which starts', async () => {
    let runs = 0
    let fail: (reason: Error) => void = () => undefined
    const first = durableProcess(
      async ({ sleep }) => {
        runs += 1
        if (runs === 1) await Promise.race([sleep(60_000), new Promise((_, reject) => (fail = reject))])
        return 'done'
      },
      { definition: { ...definition, releasesSlot: true } },
    )
    await first.launch()
    expect(first.manager.actor.getSnapshot()).toMatchObject({ slots: 0 })
    fail(busy())
    await settle()
    first.clock.advance(1)
    await settle()
    expect(runs).toBe(2)
    expect(first.task()).toMatchObject({ status: 'completed', attempt: 2 })
    expect(first.manager.actor.getSnapshot()).toMatchObject({ slots: 0 })
  })

  it('F20: takes one place in the queue when two of its waits are over', async () => {
    const first = durableProcess(({ sleep }) => Promise.all([sleep(1000, { name: 'a' }), sleep(1001, { name: 'b' })]), {
      definition: { releasesSlot: true },
      maxAsyncTasks: 1,
      whenFull: 'queue',
    })
    await first.launch()
    first.manager.launch({ id: 'other', subagentName: 'other', goalPrompt: 'x' }, never)
    for (const ms of [1000, 1]) {
      first.clock.advance(ms)
      await settle()
    }
    const { queue } = first.manager.registry.pools.task
    expect(queue.size).toBe(1)
    first.manager.cancelTask('task')
    await settle()
    expect(queue).toMatchObject({ size: 0, bytes: 0 })
  })
})

it('F20: a run that fails keeps the tasks that it has launched for the next one', async () => {
  let runs = 0
  const owners: unknown[] = []
  const first = durableProcess(
    async ({ launch, children }) => {
      runs += 1
      const { id } = launch({ subagentName: 'child', goalPrompt: 'x' }, never)
      if (runs === 1) throw busy()
      owners.push(first.manager.getTask(id)?.owner, children.ids().includes(id))
      return 'done'
    },
    { definition },
  )
  await first.launch()
  first.clock.advance(1)
  await settle()
  expect(owners).toEqual(['run:task', true])
})

it('F20: what a run has begun and not awaited never settles when it is over, and nothing derived from it ends the process', async () => {
  const settled: string[] = []
  const note = (name: string, promise: Promise<unknown>): void => {
    void promise.then(
      () => settled.push(`${name} resolved`),
      () => settled.push(`${name} rejected`),
    )
  }
  const first = durableProcess(async ({ sleep, waitFor, step }) => {
    note('sleep', sleep(1000))
    note('event', waitFor('never'))
    const failing = step('failing', () => Promise.reject(new Error('no')), {
      attempts: 2,
      backoff: { initialMs: 5000 },
    })
    note('step', failing)
    await settle()
    return 'over'
  })
  await first.launch()
  await settle()
  expect(first.task()).toMatchObject({ status: 'completed' })
  expect(settled).toEqual([])
  expect(first.clock.pending).toBe(0)
})

it('F20: a sleep of some ms takes no longer when the clock is set back meanwhile', async () => {
  let shift = 0
  const manual = createManualClock(1_000_000)
  const clock = { ...manual, now: () => manual.now() + shift, monotonic: () => manual.now() }
  const first = durableProcess(
    async ({ sleep, waitFor }) => {
      await sleep(500)
      return { event: (await waitFor('never', { timeoutMs: 500 })) === undefined }
    },
    { clock },
  )
  await first.launch()
  shift = -3_600_000
  manual.advance(500)
  await settle()
  shift = -7_200_000
  manual.advance(500)
  await settle()
  expect(first.task()).toMatchObject({ status: 'completed', output: { event: true } })
  expect(manual.pending).toBe(0)
})

it.each([true, false])(
  'F20: children.waitFor that is not awaited ends nothing, and names ids that are none (durable: %s)',
  async (durable) => {
    const caught: unknown[] = []
    const first = durableProcess(
      async ({ launch, children }) => {
        launch({ subagentName: 'child', goalPrompt: 'x' }, never)
        void children.waitFor()
        for (const ids of [5, 'x', null, [1]]) {
          await children
            .waitFor(ids as never)
            .catch((error: unknown) => caught.push((error as { field?: string }).field))
        }
        return 'over'
      },
      { definition: { durable } },
    )
    await first.launch()
    await settle()
    expect(first.task()).toMatchObject({ status: 'completed' })
    expect(caught).toEqual(['ids', 'ids', 'ids', 'ids'])
  },
)
