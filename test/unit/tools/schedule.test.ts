/** The tool schedule, and the slash commands /schedules and /schedule: F16. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { completeCommandLine, createAgentTasks, runCommandLine } from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { tick } from '../../support/limited-tasks.js'
import { breakableStore } from '../../support/breakable-store.js'
import { ALICE, BOB, setUpApp } from '../mcp/wire.js'
import { ANONYMOUS } from '../../../src/mcp/callers.js'

function setUp(options: Parameters<typeof createAgentTasks>[0] = {}) {
  const clock = createManualClock(Date.UTC(2027, 0, 4, 12))
  let last = 0
  const launched: string[] = []
  const tasks = createAgentTasks({
    clock,
    createId: (prefix) => `${prefix}-${(last += 1)}`,
    subagents: {
      scout: ({ goal }) => {
        launched.push(goal)
        return 'done'
      },
    },
    owner: 'ada',
    ...options,
    schedules: {},
  })
  onTestFinished(() => tasks.dispose())
  const { schedule } = tasks.tools
  const pass = async (ms: number) => {
    clock.advance(ms)
    await tick()
  }
  const run = (line: string) => runCommandLine(tasks.commands, line)
  return { tasks, clock, schedule, pass, run, launched }
}

describe('schedule', () => {
  it('F16: is there only in a host with schedules', () => {
    expect(Object.keys(createAgentTasks().tools)).not.toContain('schedule')
    const { tasks } = setUp()
    expect(Object.keys(tasks.tools)).toContain('schedule')
    expect(Object.keys(tasks.toolsOfRun('x'))).not.toContain('schedule')
  })

  it('F16: wakes the agent, and says when, in local time', async () => {
    const { schedule, pass, tasks } = setUp()
    const text =
      'Scheduled schedule-1 (once), next 2027-01-04 13:01:00 GMT+01:00 (Europe/Berlin) - message: look at the build'
    expect(
      await schedule.execute({ in_seconds: 60, time_zone: 'Europe/Berlin', message: 'look at the build' }),
    ).toEqual({
      llmContent: text,
      returnDisplay: text,
      metadata: { id: 'schedule-1', next: Date.UTC(2027, 0, 4, 12, 1) },
    })
    await pass(60_000)
    expect(tasks.beforeTurn().reminder?.text).toContain('look at the build')
  })

  it('F16: launches a subagent, with the deadline of the host', async () => {
    const { schedule, pass, tasks, launched } = setUp({ settings: { 'task-default-timeout-seconds': 77 } })
    await schedule.execute({ every_seconds: 60, subagent_name: 'scout', goal_prompt: 'look' })
    expect(tasks.schedules()).toMatchObject([{ owner: 'ada', launch: { timeoutMs: 77_000 }, every: 60_000 }])
    await pass(60_000)
    expect(launched).toEqual(['look'])
    expect(tasks.manager.getAllTasks()).toMatchObject([{ owner: 'ada', timeoutMs: 77_000 }])
    const endless = setUp({ settings: { 'task-default-timeout-seconds': -1, 'task-max-timeout-seconds': -1 } })
    await endless.schedule.execute({ every_seconds: 60, subagent_name: 'scout', goal_prompt: 'look' })
    expect(endless.tasks.schedules()[0]?.launch).toEqual({ subagent: 'scout', goal: 'look' })
  })

  it('F16: lists and cancels its own, by an id or a unique beginning of one', async () => {
    const { schedule, tasks, clock } = setUp()
    expect(await schedule.execute({ action: 'list' })).toMatchObject({ llmContent: 'Nothing is scheduled.' })
    await schedule.execute({ cron: '0 9 * * *', time_zone: 'UTC', message: 'a\nb' })
    await schedule.execute({ every_seconds: 90, subagent_name: 'scout', goal_prompt: 'g', time_zone: 'UTC' })
    const foreign = tasks.manager.schedule({ in: 1000, owner: 'eve', message: 'x' })
    expect((await schedule.execute({ action: 'list' })).llmContent).toBe(
      'schedule-2 (every 90 s), next 2027-01-04 12:01:30 GMT+00:00 (UTC) - scout: g\n' +
        'schedule-1 (cron 0 9 * * *), next 2027-01-05 09:00:00 GMT+00:00 (UTC) - message: a b',
    )
    for (const schedule_id of ['schedule', 'no', foreign.id]) {
      expect(await schedule.execute({ action: 'cancel', schedule_id })).toMatchObject({
        error: {
          type: 'parameter_validation',
          message: `Expected the ID of one schedule. No schedule, or more than one, has an ID that begins with '${schedule_id}'.`,
        },
      })
    }
    expect(await schedule.execute({ action: 'cancel' })).toHaveProperty('error')
    expect(await schedule.execute({ action: 'cancel', schedule_id: 'schedule-2' })).toMatchObject({
      llmContent: 'Cancelled schedule-2.',
      metadata: { id: 'schedule-2', cancelled: true },
    })
    foreign.cancel()
    expect(await schedule.execute({ action: 'cancel', schedule_id: 's' })).not.toHaveProperty('error')
    expect([tasks.schedules(), clock.pending]).toEqual([[], 0])
  })

  it.each<[object, string]>([
    [{ message: 'x' }, expect.stringMatching(/^params: expected one of in_seconds, at/) as string],
    [{ in_seconds: 1 }, expect.stringMatching(/^params: expected one of in_seconds, at/) as string],
    [
      { every_seconds: 1, message: 'x' },
      'params.every_seconds: got 1 s, expected at least 10 s, the minimum period of schedules.',
    ],
    [{ in_seconds: -1, message: 'x' }, 'params.in_seconds: got -1, expected at least 0.'],
    [
      { in_seconds: 1, message: 'x', time_zone: 'no' },
      'params.time_zone: got "no", expected a time zone such as Europe/Berlin.',
    ],
    [
      { in_seconds: 1, subagent_name: 'poet', goal_prompt: 'g' },
      'params.subagent_name: got "poet", expected a subagent that this host can start.',
    ],
    [{ in_seconds: 1, subagent_name: 'scout' }, 'params.goal_prompt: got "", expected at least 1 character(s).'],
    [{ in_seconds: 1, goal_prompt: 'g' }, 'params.subagent_name: got "", expected at least 1 character(s).'],
    [{ cron: 'x', message: 'x' }, 'params.cron: got "x", expected a cron expression of five fields.'],
    [{ at: 'x', message: 'x' }, 'params.at: got "x", expected an ISO time such as 2027-03-28T09:00:00+02:00.'],
    [
      { in: 1, message: 'x' },
      expect.stringMatching(
        /^params[.]in: got 1, expected a known field; the fields are action, .*in_seconds/,
      ) as string,
    ],
  ])('F16: refuses %j, with nothing changed', async (input, message) => {
    const { schedule, tasks } = setUp()
    const { error } = await schedule.execute(input)
    expect(error).toEqual({ type: 'parameter_validation', message })
    expect(tasks.schedules()).toEqual([])
  })

  it('F16: fails, and schedules nothing, at its limit and when it cannot be stored', async () => {
    const { store, state } = breakableStore()
    const { schedule, tasks } = setUp({ store, onError: () => undefined })
    state.isBroken = true
    expect(await schedule.execute({ in_seconds: 1, message: 'x' })).toMatchObject({
      error: { type: 'execution_failed', message: expect.stringContaining('the disk is full') as string },
    })
    expect(tasks.schedules()).toEqual([])
    state.isBroken = false
    for (let n = 0; n < 100; n += 1) tasks.schedule({ in: 1000, message: 'x' })
    expect((await schedule.execute({ in_seconds: 1, message: 'x' })).error?.message).toMatch(
      /Max schedules of an owner \(100/,
    )
  })
})

describe('/schedules and /schedule', () => {
  it('F16: list and cancel', async () => {
    const { run, schedule, tasks } = setUp()
    expect(run('/schedules')).toEqual({ type: 'info', text: 'Nothing is scheduled.' })
    await schedule.execute({ in_seconds: 90, message: '\u001b[2Jx', time_zone: 'UTC' })
    tasks.schedule({ in: 1000, owner: 'bob', timeZone: 'UTC', message: 'y' })
    expect(run('/schedules')).toEqual({
      type: 'info',
      text: 'schedule-1 (once), next 2027-01-04 12:01:30 GMT+00:00 (UTC) - message:  [2Jx',
    })
    const usage = { type: 'error', text: 'Usage: /schedule cancel <schedule_id>' }
    expect([run('/schedule'), run('/schedule cancel')]).toEqual([usage, usage])
    expect(run('/schedule cancel x')).toEqual({
      type: 'error',
      text: "Expected the ID of one schedule. No schedule, or more than one, has an ID that begins with 'x'.",
    })
    expect(completeCommandLine(tasks.commands, '/schedule cancel schedule-1')).toEqual(['schedule-1'])
    // It belongs to bob.
    expect(run('/schedule cancel schedule-2')).toMatchObject({ type: 'error' })
    expect(run('/schedule cancel schedule-1')).toEqual({ type: 'info', text: 'Cancelled schedule-1.' })
    expect(tasks.schedules().map(({ id }) => id)).toEqual(['schedule-2'])
  })
})

describe('schedule over MCP', () => {
  const config = { schedules: { maxPerOwner: 2 }, maxAsyncTasks: 1 }
  const textOf = (reply: { result: Readonly<Record<string, unknown>> }) =>
    (reply.result['structuredContent'] as { text: string } | undefined)?.text ?? JSON.stringify(reply.result['content'])

  it('F16: is listed only where the configuration has schedules', async () => {
    const names = async (app: ReturnType<typeof setUpApp>) =>
      ((await app.send('tools/list')).result['tools'] as { name: string }[]).map(({ name }) => name)
    expect(await names(setUpApp())).not.toContain('schedule')
    expect(await names(setUpApp({}, config))).toContain('schedule')
  })

  it('F16: shows and cancels the schedules of its client alone, and the message comes with an answer', async () => {
    const { call, clock, manager } = setUpApp({}, config)
    const made = await call('schedule', { in_seconds: 60, message: 'look' }, {}, ALICE)
    const id = (made.result['structuredContent'] as { schedule_id: string }).schedule_id
    expect(textOf(await call('schedule', { action: 'list' }, {}, BOB))).toBe('Nothing is scheduled.')
    expect(textOf(await call('schedule', { action: 'cancel', schedule_id: id }, {}, BOB))).toContain('No schedule')
    await call('schedule', { in_seconds: 60, message: 'look' }, {}, ALICE)
    expect(textOf(await call('schedule', { in_seconds: 60, message: 'look' }, {}, ALICE))).toContain('(2, schedules.')
    expect(textOf(await call('schedule', { action: 'cancel', schedule_id: id }, {}, ALICE))).toBe(`Cancelled ${id}.`)
    clock.advance(60_000)
    expect(textOf(await call('wait_for_async_tasks', {}, {}, BOB))).not.toContain('look')
    expect(textOf(await call('wait_for_async_tasks', {}, {}, ALICE))).toContain('look')
    expect(manager.schedules()).toEqual([])
  })

  it('F16: refuses a client that cannot be distinguished from others', async () => {
    const { call, manager } = setUpApp({}, config)
    expect(textOf(await call('schedule', { in_seconds: 60, message: 'x' }, {}, ANONYMOUS))).toContain('anonymous')
    expect(manager.schedules()).toEqual([])
  })

  it('F16: launches within the limits of its client', async () => {
    const { call, clock, manager } = setUpApp({ slow: () => new Promise(() => undefined) }, config)
    for (const owner of [ALICE, ALICE, BOB]) {
      await call('schedule', { in_seconds: 60, subagent_name: 'slow', goal_prompt: 'g' }, {}, owner)
    }
    clock.advance(60_000)
    await tick()
    expect(manager.getRunningTasks().map(({ owner }) => owner)).toEqual(['alice', 'bob'])
    expect(manager.getRunningTasks('bob')).toMatchObject([{ timeoutMs: 900_000 }])
    expect(manager.getPendingNotifications('alice')).toMatchObject([
      {
        output: {
          final_message: 'The scheduled task was not launched (slow: g): Max async tasks (1) reached',
        },
      },
    ])
    expect(
      (await call('task', { subagent_name: 'slow', goal_prompt: 'g', async: true }, {}, BOB)).result,
    ).toMatchObject({
      isError: true,
    })
  })
})
