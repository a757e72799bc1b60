/** Pauses: F19. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskAutoTrigger, AsyncTaskReminderService } from '../../../src/index.js'
import { limitedTasks, tick } from '../../support/limited-tasks.js'
import { DisposedError, InvalidInputError, PausedError, TaskLimitError } from '../../../src/errors.js'
import { ownerOfRun } from '../../../src/parts.js'

const roomy = { maxAsyncTasks: 4 } as const

/** A manager whose tasks a test ends one by one, and what nothing may be left of. */
function pausedTasks(options: Parameters<typeof limitedTasks>[0] = roomy) {
  const tasks = limitedTasks(options)
  const { registry } = tasks.manager
  const { queue } = registry.pools.task
  const run = (id: string) => {
    const found = tasks.runs.findLast((started) => started.id === id)
    if (found === undefined) throw new Error(`${id} has not started.`)
    return found
  }
  return {
    ...tasks,
    run,
    status: (id: string) => tasks.manager.getTask(id)?.status,
    left: () => ({
      slots: registry.snapshot.slots,
      queued: queue.size,
      bytes: queue.bytes,
      deadline: registry.snapshot.nextDeadlineAt,
      pauses: tasks.manager.pauses().length,
    }),
  }
}

const NOTHING_LEFT = { slots: 0, queued: 0, bytes: 0, deadline: undefined, pauses: 0 }

describe('a pause', () => {
  it('F19: queues what is launched, also where launches at the limit are refused, and lets what runs go on', async () => {
    const { manager, launch, run, status, started, left } = pausedTasks()
    await launch('a')
    expect(manager.pause()).toEqual({ deliveries: 'send', since: 1_000 })
    expect(await launch('b', { whenFull: 'refuse' })).toMatchObject({ status: 'queued' })
    expect(manager.queuePosition('b')).toBe(1)
    await run('a').end()
    expect(status('a')).toBe('completed')
    expect(started()).toEqual(['a'])
    expect(manager.resume()).toBe(true)
    await tick()
    expect(started()).toEqual(['a', 'b'])
    await run('b').end()
    expect(left()).toEqual(NOTHING_LEFT)
  })

  it('F19: concerns the tasks of its owner alone', async () => {
    const { manager, launch, started } = pausedTasks()
    manager.pause('mine')
    await launch('a', { owner: 'mine' })
    await launch('b', { owner: 'theirs' })
    expect(started()).toEqual(['b'])
    expect(manager.pauses()).toEqual([{ owner: 'mine', deliveries: 'send', since: 1_000 }])
    expect(manager.resume('theirs')).toBe(false)
    expect(manager.resume()).toBe(false)
    manager.resume('mine')
    await tick()
    expect(started()).toEqual(['b', 'a'])
  })

  it('F19: is not ended by the end of another one', async () => {
    const { manager, launch, started } = pausedTasks()
    manager.pause()
    manager.pause('main')
    await launch('a')
    manager.resume('main')
    await tick()
    expect(started()).toEqual([])
    manager.pause('main')
    manager.resume()
    await tick()
    expect(started()).toEqual([])
    manager.resume('main')
    await tick()
    expect(started()).toEqual(['a'])
  })

  it('F19: holds what waits for a slot, which passes by others, and starts in its order when it ends', async () => {
    const { manager, launch, run, started } = pausedTasks({ maxAsyncTasks: 1, whenFull: 'queue' })
    await launch('a')
    await launch('b')
    await launch('c', { owner: 'other' })
    await launch('d')
    manager.pause('main')
    await run('a').end()
    expect(started()).toEqual(['a', 'c'])
    manager.resume('main')
    await run('c').end()
    expect(started()).toEqual(['a', 'c', 'b'])
    await run('b').end()
    expect(started()).toEqual(['a', 'c', 'b', 'd'])
  })

  it('F19: refuses a launch in the foreground with a code, with nothing changed', async () => {
    const { manager, launch, left } = pausedTasks()
    manager.pause('main')
    const refused = launch('a', { isForeground: true })
    await expect(refused).rejects.toThrow(PausedError)
    await expect(refused).rejects.toMatchObject({ code: 'PAUSED', owner: 'main' })
    await expect(launch('b', { isForeground: true, kind: 'command', command: ['ls'] })).rejects.toThrow(PausedError)
    expect(manager.getAllTasks()).toEqual([])
    expect(left()).toEqual({ ...NOTHING_LEFT, pauses: 1 })
  })

  it('F19: keeps what waits within the limits of the queue', async () => {
    const { manager, launch } = pausedTasks({ maxAsyncTasks: 4, queue: { max: 1 } })
    manager.pause()
    await launch('a')
    await expect(launch('b')).rejects.toThrow(TaskLimitError)
    expect(manager.getAllTasks()).toHaveLength(1)
  })

  it('F19: gives a reservation up that its task does not use', async () => {
    const { manager, runner, left } = pausedTasks({ maxAsyncTasks: 1 })
    const reservation = manager.tryReserveAsyncSlot() ?? undefined
    manager.pause()
    manager.launch({ id: 'a', subagentName: 'agent', goalPrompt: 'goal' }, runner, reservation)
    expect(manager.tryReserveAsyncSlot()).not.toBeNull()
    expect(left()).toMatchObject({ queued: 1, slots: 0 })
  })

  it('F19: lets the caller register what it runs itself', () => {
    const { manager } = pausedTasks()
    manager.pause()
    expect(manager.registerTask({ id: 'a', subagentName: 'agent', goalPrompt: 'goal' }).status).toBe('running')
  })

  it('F19: stops the longest wait for a slot, which goes on where it had stopped', async () => {
    const { manager, launch, pass, status, run } = pausedTasks({
      maxAsyncTasks: 1,
      whenFull: 'queue',
      queue: { maxWaitMs: 1_000 },
    })
    await launch('a')
    await launch('b')
    await pass(600)
    manager.pause()
    await pass(5_000)
    expect(status('b')).toBe('queued')
    manager.resume()
    await pass(399)
    manager.pause()
    await pass(5_000)
    manager.resume()
    expect(status('b')).toBe('queued')
    await pass(1)
    expect(manager.getTask('b')).toMatchObject({ status: 'failed', errorCode: 'QUEUE_TIMEOUT' })
    await run('a').end()
  })

  it('F19: does not begin the longest wait of what is launched meanwhile', async () => {
    const { manager, launch, pass, status } = pausedTasks({ maxAsyncTasks: 0, queue: { maxWaitMs: 1_000 } })
    manager.pause()
    await launch('a')
    await pass(5_000)
    manager.resume()
    await pass(999)
    expect(status('a')).toBe('queued')
    await pass(1)
    expect(status('a')).toBe('failed')
  })

  it('F19: holds the next run of a task back, also when its back-off has ended', async () => {
    const { manager, launch, run, pass, started, status } = pausedTasks()
    const retry = { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 100, jitter: false } } as const
    await launch('a', { retry })
    await launch('b', { retry })
    const limited = Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' })
    await run('a').fail(limited)
    manager.pause()
    await run('b').fail(limited)
    await pass(1_000)
    expect([status('a'), status('b')]).toEqual(['queued', 'queued'])
    expect(started()).toEqual(['a', 'b'])
    manager.resume()
    await tick()
    expect(started()).toEqual(['a', 'b', 'a', 'b'])
  })

  it('F19: does not shorten the back-off when it ends', async () => {
    const { manager, launch, run, pass, started } = pausedTasks()
    await launch('a', { retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 100, jitter: false } } })
    manager.pause()
    await run('a').fail(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' }))
    manager.resume()
    await pass(99)
    expect(started()).toEqual(['a'])
    await pass(1)
    expect(started()).toEqual(['a', 'a'])
  })

  it('F19: holds what waits for other tasks back when these have ended', async () => {
    const { manager, launch, run, started, left } = pausedTasks({ ...roomy, queue: { maxWaitMs: 1_000 } })
    await launch('a')
    await launch('b', { after: ['a'] })
    manager.pause()
    await launch('c', { after: ['a'] })
    await run('a').end()
    expect(started()).toEqual(['a'])
    expect(left()).toMatchObject({ queued: 2, deadline: undefined })
    manager.resume()
    await tick()
    expect(started()).toEqual(['a', 'b', 'c'])
  })

  it('F19: does not hold the children of running runs back, but what they leave when these have ended', async () => {
    const { manager, launch, run, started, runner, status } = pausedTasks({ maxAsyncTasks: 4, maxChildTasks: 1 })
    await launch('a')
    manager.pause()
    run('a').context.launch({ id: 'a1', subagentName: 'agent', goalPrompt: 'goal' }, runner)
    run('a').context.launch({ id: 'a2', subagentName: 'agent', goalPrompt: 'goal', whenFull: 'queue' }, runner)
    await tick()
    expect(started()).toEqual(['a', 'a1'])
    manager.launch({ id: 'a3', parentId: 'a', subagentName: 'agent', goalPrompt: 'goal', whenFull: 'queue' }, runner)
    await run('a').end()
    await run('a1').end()
    expect([status('a2'), status('a3')]).toEqual(['queued', 'queued'])
    manager.resume()
    await tick()
    expect(started()).toEqual(['a', 'a1', 'a2'])
  })

  it('F19: does not hold questions and their answers back', async () => {
    const { manager, launch, run, status } = pausedTasks()
    await launch('a')
    manager.pause(undefined, { deliveries: 'hold' })
    const answer = run('a').context.ask({ message: 'Which?' })
    await tick()
    const reminder = new AsyncTaskReminderService(manager).leaseReminder()
    expect(reminder?.text).toContain('Which?')
    reminder?.acknowledge()
    const [question] = manager.getTask('a')?.questions ?? []
    manager.answerTask('a', question?.id ?? '', { action: 'accept', content: { answer: 'this' } })
    await expect(answer).resolves.toMatchObject({ action: 'accept' })
    expect(status('a')).toBe('running')
  })

  it('F19: passes with no task that is handed to another owner', async () => {
    const { manager, launch, started, left } = pausedTasks()
    manager.pause('mine')
    manager.pause('paused')
    await launch('a', { owner: 'mine' })
    await launch('b', { owner: 'mine' })
    manager.releaseOwner('mine', { to: 'mine' })
    expect(manager.pauses()).toHaveLength(2)
    manager.releaseOwner('mine', { to: 'free' })
    await tick()
    expect(started()).toEqual(['a', 'b'])
    expect(manager.pauses().map(({ owner }) => owner)).toEqual(['paused'])
    manager.pause('free')
    await launch('c', { owner: 'free' })
    manager.releaseOwner('free', { to: 'paused' })
    await tick()
    expect(started()).toEqual(['a', 'b'])
    manager.releaseOwner('paused')
    await tick()
    expect(started()).toEqual(['a', 'b', 'c'])
    expect(left()).toMatchObject({ pauses: 0, queued: 0 })
  })

  it('F19: leaves nothing behind when what it holds is cancelled or disposed', async () => {
    const { manager, launch, left } = pausedTasks({ ...roomy, queue: { maxWaitMs: 1_000 } })
    manager.pause()
    await launch('a')
    await launch('b')
    manager.cancelTask('a')
    expect(left()).toMatchObject({ queued: 1, deadline: undefined })
    await manager.dispose()
    expect(left()).toMatchObject({ queued: 0, slots: 0 })
    expect(() => manager.pause()).toThrow(DisposedError)
    expect(manager.resume()).toBe(false)
  })

  it('F19: keeps its beginning when it is changed, and its deliveries when these are not named', async () => {
    const { manager, pass } = pausedTasks()
    manager.pause('main', { deliveries: 'hold' })
    await pass(100)
    expect(manager.pause('main')).toEqual({ owner: 'main', deliveries: 'hold', since: 1_000 })
    expect(manager.pause('main', { deliveries: 'send' })).toEqual({ owner: 'main', deliveries: 'send', since: 1_000 })
    expect(manager.pauses()).toHaveLength(1)
    expect(Object.isFrozen(manager.pauses()[0])).toBe(true)
  })

  it('F19: says who has begun it, as long as it lasts', () => {
    const { manager } = pausedTasks()
    const by = 'x'.repeat(100)
    expect(manager.pause('main', { by })).toEqual({ owner: 'main', deliveries: 'send', since: 1_000, by })
    expect(manager.pause('main', { by: 'another', deliveries: 'hold' })).toMatchObject({ by, deliveries: 'hold' })
    expect(manager.pause()).not.toHaveProperty('by')
    expect(manager.pause(undefined, { by, deliveries: 'hold' })).not.toHaveProperty('by')
    expect(() => manager.pause('other', { by: `${by}x` })).toThrow(/options\.by/)
    expect(manager.pauses()).toHaveLength(2)
  })

  it('F19: refuses bad input by name, with nothing changed', () => {
    const { manager } = pausedTasks()
    const refused: [unknown, unknown, RegExp][] = [
      ['', {}, /owner: got "", expected/],
      [7, {}, /owner: got 7/],
      ['x'.repeat(521), {}, /owner: got "x/],
      [ownerOfRun('a'), {}, /owner: got "run:a", expected an owner other than a run/],
      ['main', { deliveries: 'drop' }, /options.deliveries: got "drop"/],
      ['main', { delivery: 'hold' }, /delivery/],
    ]
    for (const [owner, options, message] of refused) {
      expect(() => manager.pause(owner as string, options as object)).toThrow(InvalidInputError)
      expect(() => manager.pause(owner as string, options as object)).toThrow(message)
    }
    expect(() => manager.resume(7 as never)).toThrow(/owner: got 7/)
    expect(manager.pauses()).toEqual([])
  })

  it('F19: is bounded in bytes, and 10,000 owners may be paused', () => {
    const { manager } = pausedTasks()
    const nameOf = (n: number): string => `owner ${n} `.padEnd(520, 'x')
    const by = 'x'.repeat(100)
    let count = 0
    expect(() => {
      for (; count < 30_000; count += 1) manager.pause(nameOf(count), { by })
    }).toThrow(/expected an owner that is already paused, because \d+ owners are paused, and no more can be/)
    expect(count).toBeGreaterThan(10_000)
    expect(() => manager.pause('one more')).toThrow('owner: got "one more"')
    expect(manager.pause(nameOf(7), { deliveries: 'hold' })).toMatchObject({ deliveries: 'hold' })
    expect(manager.pause()).toMatchObject({ deliveries: 'send' })
    manager.resume()
    manager.resume(nameOf(7))
    expect(manager.pause('one more')).toMatchObject({ owner: 'one more' })
  })
})

describe('the results of a paused owner', () => {
  it('F19: are delivered, unless it holds them until it ends', async () => {
    const { manager, launch, run } = pausedTasks()
    const reminders = new AsyncTaskReminderService(manager)
    await launch('a')
    await launch('b')
    await launch('other', { owner: 'other' })
    manager.pause('main')
    await run('a').end('the first')
    const sent = reminders.leaseReminder()
    expect(sent?.taskIds).toEqual(['a'])
    sent?.acknowledge()
    manager.pause('main', { deliveries: 'hold' })
    await run('b').end('the second')
    await run('other').end()
    expect(reminders.leaseReminder()).toBeUndefined()
    expect(reminders.hasPendingNotifications('main')).toBe(false)
    expect(reminders.generateReminder('main')).toBe('')
    reminders.markAllNotified()
    expect(manager.getTask('other')?.delivery).toBe('delivered')
    expect(manager.getTask('b')?.delivery).toBe('owed')
    manager.resume('main')
    expect(reminders.leaseReminder()?.taskIds).toEqual(['b'])
  })

  it('F19: are not marked as notified when they were held in the latest reminder', async () => {
    const { manager, launch, run } = pausedTasks()
    const reminders = new AsyncTaskReminderService(manager)
    await launch('a')
    manager.pause('main', { deliveries: 'hold' })
    await run('a').end()
    reminders.generateReminder('main')
    manager.resume('main')
    reminders.markAllNotified()
    expect(manager.getTask('a')?.delivery).toBe('owed')
  })

  it('F19: are returned to a call that waits for them', async () => {
    const { manager, launch, run } = pausedTasks()
    await launch('a')
    manager.pause(undefined, { deliveries: 'hold' })
    const waiting = manager.waitFor(['a'])
    await run('a').end('the end')
    expect((await waiting).settled.map(({ output }) => output?.final_message)).toEqual(['the end'])
  })

  it('F19: are delivered to the runs that have launched them', async () => {
    const { manager, launch, run, runner } = pausedTasks()
    await launch('a')
    manager.pause(undefined, { deliveries: 'hold' })
    run('a').context.launch({ id: 'a1', subagentName: 'agent', goalPrompt: 'goal' }, runner)
    await tick()
    await run('a1').end()
    expect(new AsyncTaskReminderService(manager).leaseReminder({ owner: ownerOfRun('a') })?.taskIds).toEqual(['a1'])
  })

  it('F19: wake an idle agent as soon as the pause ends or sends them, and not before', async () => {
    const { manager, launch, run, pass } = pausedTasks()
    const texts: string[] = []
    const trigger = new AsyncTaskAutoTrigger(
      manager,
      new AsyncTaskReminderService(manager),
      () => false,
      (text) => texts.push(text),
    )
    onTestFinished(trigger.subscribe())
    await launch('a')
    await launch('b')
    manager.pause(undefined, { deliveries: 'hold' })
    await run('a').end('the first')
    trigger.notifyIdle()
    await pass(0)
    expect(texts).toEqual([])
    manager.resume()
    await pass(0)
    expect(texts).toEqual([expect.stringContaining('the first')])
    manager.pause('main', { deliveries: 'hold' })
    await run('b').end('the second')
    await pass(0)
    expect(texts).toHaveLength(1)
    manager.pause('main', { deliveries: 'send' })
    await pass(0)
    expect(texts).toEqual([expect.anything(), expect.stringContaining('the second')])
  })

  it('F19: keep no question and no note from waking an idle agent while they are held', async () => {
    for (const paused of ['main', undefined]) {
      const { manager, launch, run, pass } = pausedTasks()
      const texts: string[] = []
      const service = new AsyncTaskReminderService(manager)
      const trigger = new AsyncTaskAutoTrigger(
        manager,
        service,
        () => false,
        (text) => texts.push(text),
      )
      onTestFinished(trigger.subscribe())
      await launch('a')
      await launch('b')
      manager.pause(paused, { deliveries: 'hold' })
      await run('a').end('the first')
      const answer = run('b').context.ask({ message: 'Which?' })
      await pass(0)
      expect(texts).toEqual([expect.stringContaining('Which?')])
      const [question] = manager.getTask('b')?.questions ?? []
      manager.answerTask('b', question?.id ?? '', { action: 'decline' })
      await answer
      manager.schedule({ in: 0, message: 'Look at the build.' })
      await pass(0)
      expect(texts).toEqual([expect.anything(), expect.stringContaining('Look at the build.')])
      expect(texts.join('\n')).not.toContain('the first')
      expect(manager.getTask('a')?.delivery).toBe('owed')
    }
  })

  it('F19: say that what waits waits for people', async () => {
    const { manager, launch, run } = pausedTasks()
    await launch('a')
    manager.pause('main')
    await launch('b')
    await run('a').end()
    expect(new AsyncTaskReminderService(manager).leaseReminder()?.text).toContain(
      '1 async task(s) waiting until background tasks are resumed.',
    )
  })
})
