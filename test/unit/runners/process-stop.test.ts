/** How a program is stopped. It is real; its grace period is on the test's clock. */
import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { processRunner } from '../../../src/runners/process-runner.js'
import { isAlive, until, type TreeProgram } from '../../support/lifelines.js'
import { GRACE_MS, stagePrograms } from '../../support/program-stage.js'
import { createRunContext, runInput } from '../../support/run-context.js'

const stubborn: TreeProgram = { name: 'leader', ignoresSigterm: true }
const stage = stagePrograms()
const hex = (text: string): string => Buffer.from(text).toString('hex')

describe('an aborted run', () => {
  it('ends its program with SIGTERM, and rejects with an abort error that holds the reason', async () => {
    const { outcome, abort } = stage.start({ name: 'leader' })
    const leader = await stage.program('leader')
    abort('enough')
    expect(await outcome).toMatchObject({
      name: 'AbortError',
      code: 'PROCESS_ABORTED',
      message: `Command ${JSON.stringify(process.execPath)} was aborted: it ended after SIGTERM.`,
      signal: 'SIGTERM',
      cause: 'enough',
    })
    await leader.gone
  })

  it('kills a program that ignores SIGTERM when the grace period is over, and not before', async () => {
    const { context, outcome, abort, isSettled } = stage.start(stubborn)
    const leader = await stage.program('leader')
    abort()
    await leader.heard('SIGTERM')
    stage.clock.advance(GRACE_MS - 1)
    leader.tell(`print ${hex('alive')}`)
    await context.printed('alive')
    expect(isSettled()).toBe(false)
    stage.clock.advance(1)
    await leader.gone
    const error = await outcome
    expect(error).toMatchObject({ name: 'AbortError', signal: 'SIGKILL' })
    expect((error as Error).message).toContain('it was still running 2000 ms after SIGTERM and was killed')
  })

  it('sends the configured signal', async () => {
    const { outcome, abort } = stage.start(stubborn, { killSignal: 'SIGINT' })
    const leader = await stage.program('leader')
    abort()
    expect(await outcome).toMatchObject({ signal: 'SIGINT' })
    await leader.gone
  })

  it('rejects even if its program then exits with 0', async () => {
    const { outcome, abort } = stage.start(stubborn)
    const leader = await stage.program('leader')
    abort()
    await leader.heard('SIGTERM')
    leader.tell('exit 0')
    expect(await outcome).toMatchObject({ name: 'AbortError', exitCode: 0 })
  })

  it('ends a program that has just been started', async () => {
    const { outcome, abort } = stage.start({ name: 'leader' })
    abort()
    expect(await outcome).toMatchObject({ name: 'AbortError', signal: 'SIGTERM' })
  })

  it('fails with the reason of the first stop, within its grace period', async () => {
    const { context, outcome, abort } = stage.start(stubborn)
    const broken = new Error('log is full')
    context.append = () => {
      throw broken
    }
    const leader = await stage.program('leader')
    leader.tell('print 78')
    await leader.heard('SIGTERM')
    stage.clock.advance(1500)
    abort()
    stage.clock.advance(500)
    await leader.gone
    expect(await outcome).toBe(broken)
  })

  it('does nothing when its program has ended', async () => {
    const { context, outcome, abort } = stage.start({ name: 'leader' })
    const leader = await stage.program('leader')
    leader.tell('exit 3')
    expect(await outcome).toMatchObject({ code: 'PROCESS_FAILED', exitCode: 3 })
    abort()
    expect(stage.clock.pending).toBe(0)
    expect(getEventListeners(context.signal, 'abort')).toEqual([])
  })

  it('starts nothing when it was aborted before', async () => {
    const context = createRunContext()
    context.controller.abort('early')
    const run = processRunner({ command: 'no-such-agent' }).run(runInput(), context)
    await expect(run).rejects.toMatchObject({ name: 'AbortError', cause: 'early' })
    await expect(run).rejects.toThrow('was not started')
  })
})

describe('launched through the manager', () => {
  const input = { subagentName: 'node', goalPrompt: 'goal' }

  it('A1: a cancelled task ends at once; its program ends after the grace period, and nothing is reported late', async () => {
    const reports: unknown[] = []
    const manager = new AsyncTaskManager({ clock: stage.clock, onError: (error) => reports.push(error) })
    const { id } = manager.launch(input, stage.runnerOf(stubborn))
    const leader = await stage.program('leader')
    expect(manager.cancelTask(id)).toBe(true)
    expect(manager.getTask(id)?.status).toBe('cancelled')
    await leader.heard('SIGTERM')
    stage.clock.advance(GRACE_MS)
    await leader.gone
    await manager.dispose()
    expect(reports).toEqual([])
  })

  it('A3: the slot of a cancelled task is taken until its program has ended', async () => {
    const manager = new AsyncTaskManager({ maxAsyncTasks: 1, clock: stage.clock })
    const { id } = manager.launch(input, stage.runnerOf(stubborn))
    const leader = await stage.program('leader')
    manager.cancelTask(id)
    await leader.heard('SIGTERM')
    expect(manager.canLaunchAsync().allowed).toBe(false)
    stage.clock.advance(GRACE_MS)
    await until(() => manager.canLaunchAsync().allowed)
    expect(isAlive(leader.pid)).toBe(false)
    await manager.dispose()
  })

  it('a program that hangs fails its task at the deadline, with how it ended', async () => {
    const manager = new AsyncTaskManager({ clock: stage.clock })
    const { id } = manager.launch({ ...input, timeoutMs: 60_000 }, stage.runnerOf(stubborn))
    const leader = await stage.program('leader')
    stage.clock.advance(60_000)
    await leader.heard('SIGTERM')
    expect(manager.getTask(id)?.status).toBe('running')
    stage.clock.advance(GRACE_MS)
    const { settled } = await manager.waitFor([id])
    expect(settled[0]?.error).toBe(
      'Task timed out: it did not end within its limit of 60 s. It then reported: ' +
        `Command ${JSON.stringify(process.execPath)} was aborted: it was still running 2000 ms after SIGTERM and was killed.`,
    )
    expect(isAlive(leader.pid)).toBe(false)
    await manager.dispose()
  })

  it('a task that is cancelled before its run starts does not start a program', async () => {
    const reports: unknown[] = []
    const manager = new AsyncTaskManager({ clock: stage.clock, onError: (error) => reports.push(error) })
    // A program would fail, and that would be reported as late.
    const { id } = manager.launch(input, processRunner({ command: 'no-such-agent' }))
    manager.cancelTask(id)
    await manager.dispose()
    expect(reports).toEqual([])
  })

  it('A9: dispose ends every program and waits for their ends', async () => {
    const manager = new AsyncTaskManager({ clock: stage.clock })
    manager.launch(input, stage.runnerOf({ name: 'first' }))
    manager.launch(input, stage.runnerOf({ name: 'second', child: { name: 'child', output: 'inherit' } }))
    const programs = await stage.programs('first', 'second', 'child')
    await manager.dispose()
    await Promise.all(programs.map((program) => program.gone))
  })
})
