/** Processes that a program has started end with its run, and a run does not wait for a process that has left the group. */
import { spawn } from 'node:child_process'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { leadGroup } from '../../../src/engine/process-group.js'
import { DRAIN_MS } from '../../../src/runners/supervision.js'
import { isAlive, isReaped, until, type TreeProgram } from '../../support/lifelines.js'
import { GRACE_MS, stagePrograms } from '../../support/program-stage.js'

const stubborn: TreeProgram = { name: 'leader', ignoresSigterm: true }
const stage = stagePrograms()
const hex = (text: string): string => Buffer.from(text).toString('hex')

describe('a process that a program has started', () => {
  it('is signalled with the program, and killed with it when it ignores SIGTERM', async () => {
    const child = { name: 'child', ignoresSigterm: true, output: 'inherit' } as const
    const { outcome, abort, isSettled } = stage.start({ name: 'leader', child })
    const [leader, grandchild] = await stage.programs('leader', 'child')
    abort()
    await leader.gone
    await grandchild.heard('SIGTERM')
    expect(isSettled()).toBe(false)
    stage.clock.advance(GRACE_MS)
    await grandchild.gone
    expect(await outcome).toMatchObject({ name: 'AbortError', signal: 'SIGTERM' })
    expect([leader.pid, grandchild.pid].map(isAlive)).toEqual([false, false])
  })

  it('has the rest of the grace period after the program itself has ended', async () => {
    const child = { name: 'child', ignoresSigterm: true, output: 'inherit' } as const
    const { context, outcome, abort } = stage.start({ name: 'leader', child })
    const [leader, grandchild] = await stage.programs('leader', 'child')
    abort()
    await until(() => isReaped(leader.pid))
    await grandchild.heard('SIGTERM')
    stage.clock.advance(GRACE_MS - 1)
    grandchild.tell(`print ${hex('saved')}`)
    await context.printed('saved')
    grandchild.tell('exit 0')
    expect(await outcome).toMatchObject({ name: 'AbortError' })
  })

  it('is killed when it holds the output open too long after the program has exited', async () => {
    const child = { name: 'child', ignoresSigterm: true, output: 'inherit' } as const
    const { context, outcome, isSettled } = stage.start({ name: 'leader', child })
    const [leader, grandchild] = await stage.programs('leader', 'child')
    leader.tell('exit 0')
    await until(() => stage.clock.pending === 1)
    stage.clock.advance(DRAIN_MS - 1)
    grandchild.tell(`print ${hex('alive')}`)
    await context.printed('alive')
    expect(isSettled()).toBe(false)
    stage.clock.advance(1)
    await grandchild.gone
    expect(await outcome).toEqual({ final_message: 'alive' })
  })

  it('is read until it closes the output, if it does so soon', async () => {
    const { outcome } = stage.start({ name: 'leader', child: { name: 'child', output: 'inherit' } })
    const [leader, grandchild] = await stage.programs('leader', 'child')
    leader.tell('exit 0')
    await until(() => stage.clock.pending === 1)
    grandchild.tell(`print ${hex('late')}`)
    grandchild.tell('exit 0')
    expect(await outcome).toEqual({ final_message: 'late' })
  })

  it('is killed at the end of the program even if it does not hold the output', async () => {
    const { outcome } = stage.start({
      name: 'leader',
      child: { name: 'child', ignoresSigterm: true, output: 'ignore' },
    })
    const [leader, grandchild] = await stage.programs('leader', 'child')
    leader.tell('exit 0')
    expect(await outcome).toEqual({ final_message: '' })
    await grandchild.gone
  })

  it('does not hang the run when it has left the group and holds the output', async () => {
    const child = { name: 'child', output: 'inherit', detached: true } as const
    const { outcome, isSettled } = stage.start({ name: 'leader', child })
    const [leader, escaped] = await stage.programs('leader', 'child')
    leader.tell('exit 0')
    await until(() => stage.clock.pending === 1)
    stage.clock.advance(DRAIN_MS)
    expect(stage.clock.pending).toBe(1)
    expect(isSettled()).toBe(false)
    stage.clock.advance(DRAIN_MS)
    expect(await outcome).toEqual({ final_message: '', detached_processes: [`${escaped.pid} (node)`] })
    expect(isAlive(escaped.pid)).toBe(true)
  })

  it('does not hang an aborted run when it has no token and holds the output', async () => {
    const child = { name: 'child', output: 'inherit', detached: true, isHidden: true } as const
    const { outcome, abort } = stage.start({ ...stubborn, child })
    const [leader] = await stage.programs('leader', 'child')
    abort()
    await leader.heard('SIGTERM')
    stage.clock.advance(GRACE_MS)
    await leader.gone
    await until(() => stage.clock.pending === 1)
    stage.clock.advance(DRAIN_MS)
    expect(await outcome).toMatchObject({ name: 'AbortError', signal: 'SIGKILL' })
  })

  it('does not hang a run that is aborted after its group was killed', async () => {
    const child = { name: 'child', output: 'inherit', detached: true, isHidden: true } as const
    const { outcome, abort } = stage.start({ name: 'leader', child })
    const [leader] = await stage.programs('leader', 'child')
    leader.tell('exit 0')
    await until(() => stage.clock.pending === 1)
    stage.clock.advance(DRAIN_MS)
    abort()
    stage.clock.advance(DRAIN_MS)
    expect(await outcome).toMatchObject({ name: 'AbortError', exitCode: 0 })
  })

  it('F22: is asked to stop with the program when it has left the group, and killed after the grace period', async () => {
    const child = { name: 'child', ignoresSigterm: true, output: 'ignore', detached: true } as const
    const { outcome, abort, isSettled } = stage.start({ name: 'leader', child })
    const [leader, escaped] = await stage.programs('leader', 'child')
    abort()
    await escaped.heard('SIGTERM')
    await leader.gone
    stage.clock.advance(GRACE_MS - 1)
    expect([isSettled(), isAlive(escaped.pid)]).toEqual([false, true])
    stage.clock.advance(1)
    await escaped.gone
    expect(await outcome).toMatchObject({ name: 'AbortError', signal: 'SIGTERM' })
  })

  it('F22: is asked to stop at the same time as a program that does not stop, when it has left the group', async () => {
    const child = { name: 'child', ignoresSigterm: true, output: 'ignore', detached: true } as const
    const { outcome, abort } = stage.start({ ...stubborn, child })
    const [leader, escaped] = await stage.programs('leader', 'child')
    abort()
    await Promise.all([leader.heard('SIGTERM'), escaped.heard('SIGTERM')])
    stage.clock.advance(GRACE_MS)
    await Promise.all([leader.gone, escaped.gone])
    expect(await outcome).toMatchObject({ name: 'AbortError', signal: 'SIGKILL' })
  })

  it('F22: is ended after the program with endDetached, and counted', async () => {
    const child = { name: 'child', output: 'ignore', detached: true } as const
    const { context, outcome } = stage.start({ name: 'leader', child }, { endDetached: true })
    const ends: unknown[] = []
    context.setProgram = (facts) => ends.push(facts)
    const [leader, escaped] = await stage.programs('leader', 'child')
    leader.tell('exit 0')
    expect(await outcome).toEqual({ final_message: '' })
    await escaped.gone
    expect(ends.at(-1)).toEqual({ exitCode: 0, endedProcesses: 1 })
  })

  it('F22: is named in the error of a program that fails, and runs on', async () => {
    const child = { name: 'child', output: 'ignore', detached: true } as const
    const { outcome } = stage.start({ name: 'leader', child })
    const [leader, escaped] = await stage.programs('leader', 'child')
    leader.tell('exit 3')
    const error = (await outcome) as Error
    expect(error.message).toContain(`exited with code 3. Processes that it has detached run on: ${escaped.pid} (node).`)
    expect(isAlive(escaped.pid)).toBe(true)
  })

  it('is signalled when the abort comes after the program has exited', async () => {
    const child = { name: 'child', ignoresSigterm: true, output: 'inherit' } as const
    const { outcome, abort } = stage.start({ name: 'leader', child })
    const [leader, grandchild] = await stage.programs('leader', 'child')
    leader.tell('exit 0')
    await until(() => stage.clock.pending === 1)
    abort()
    await grandchild.heard('SIGTERM')
    expect(stage.clock.pending).toBe(1)
    stage.clock.advance(GRACE_MS)
    await grandchild.gone
    expect(await outcome).toMatchObject({ name: 'AbortError', exitCode: 0 })
  })
})

describe('this process', () => {
  it('has one exit listener while programs run, and none after that', async () => {
    const first = stage.start({ name: 'first' })
    const second = stage.start({ name: 'second' })
    const programs = await stage.programs('first', 'second')
    expect(process.listenerCount('exit')).toBe(stage.exitListeners + 1)
    programs[0].tell('exit 0')
    await first.outcome
    expect(process.listenerCount('exit')).toBe(stage.exitListeners + 1)
    programs[1].tell('exit 0')
    await second.outcome
    expect(process.listenerCount('exit')).toBe(stage.exitListeners)
  })

  it('kills the groups of its programs when it exits before them', async () => {
    const child = { name: 'child', ignoresSigterm: true, output: 'inherit' } as const
    const script = new URL('../../support/programs/exiting-host.ts', import.meta.url).pathname
    const args = ['--import', 'tsx', script, ...stage.argumentsOf({ ...stubborn, child })]
    const host = spawn(process.execPath, args, { stdio: ['pipe', 'inherit', 'inherit'] })
    const [leader, grandchild] = await stage.programs('leader', 'child')
    host.stdin.end()
    await Promise.all([leader.gone, grandchild.gone])
  })
})

describe('this process at its exit', () => {
  it('F22: kills what has left the group of its program, too', async () => {
    const child = { name: 'child', ignoresSigterm: true, output: 'ignore', detached: true } as const
    const { outcome } = stage.start({ ...stubborn, child })
    const [leader, escaped] = await stage.programs('leader', 'child')
    process.listeners('exit').at(-1)?.(0)
    await Promise.all([leader.gone, escaped.gone])
    expect(await outcome).toMatchObject({ code: 'PROCESS_FAILED', signal: 'SIGKILL' })
  })
})

describe('a process that exits', () => {
  it('kills the groups that are left', () => {
    const leads = ['left', 'ended'].map(() => {
      const kill = vi.fn()
      // Without a pid there is no group to kill: the program itself is.
      return { kill, group: leadGroup({ kill } as never) }
    })
    const exit = process.listeners('exit').at(-1)
    leads[1]?.group.end()
    exit?.(0)
    expect(leads.map(({ kill }) => kill.mock.calls)).toEqual([[['SIGKILL']], [['SIGKILL']]])
    leads[0]?.group.end()
    expect(process.listeners('exit')).not.toContain(exit)
  })
})

describe('on a platform without process groups', () => {
  it('only the program itself is signalled', async () => {
    const { platform } = process
    onTestFinished(() => {
      Object.defineProperty(process, 'platform', { value: platform })
      vi.resetModules()
    })
    Object.defineProperty(process, 'platform', { value: 'win32' })
    vi.resetModules()
    const { hasGroups, leadGroup } = await import('../../../src/engine/process-group.js')
    expect(hasGroups).toBe(false)
    const kill = vi.fn()
    const group = leadGroup({ kill } as never)
    group.signal('SIGTERM')
    group.end()
    expect(kill.mock.calls).toEqual([['SIGTERM'], ['SIGKILL']])
  })
})
