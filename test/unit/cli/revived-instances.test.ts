/** `serve` starts an instance again when it was lost. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { reviveInstances } from '../../../src/cli/revived-instances.js'
import { InstanceManager } from '../../../src/command-tasks/instances/instance-manager.js'
import type { Instance } from '../../../src/command-tasks/instances/instance.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

/** A manager with an instance that `lose` loses, and that starts again unless `refuse` has made it fail. */
function setUp() {
  const clock = createManualClock()
  const instances = new InstanceManager({ clock })
  const lines: string[] = []
  let lost: (reason: string) => void = () => undefined
  let problem: Error | undefined
  const close = vi.fn(() => Promise.resolve())
  const create = (): Instance => ({
    id: 'files',
    kind: 'mcp',
    listTools: () => Promise.resolve([]),
    callTool: () => Promise.resolve({ content: [] }),
    onLost: (onLost) => void (lost = onLost),
    close,
  })
  const start = vi.fn(() => (problem === undefined ? Promise.resolve(create()) : Promise.reject(problem)))
  instances.connect(create())
  const stop = reviveInstances({
    instances,
    starts: new Map([['files', start]]),
    clock,
    log: (level, line) => lines.push(`${level}: ${line}`),
  })
  onTestFinished(async () => {
    stop()
    await instances.dispose()
  })
  const settle = () => new Promise((done) => setImmediate(done))
  return {
    clock,
    instances,
    lines,
    start,
    stop,
    settle,
    create,
    close,
    lose: (reason = 'MCP server "x" is gone: it exited with code 1.') => lost(reason),
    refuse: (error: Error | undefined) => (problem = error),
    advance: async (ms: number) => {
      clock.advance(ms)
      await settle()
    },
  }
}

describe('an instance that was lost', () => {
  it('is started again after a second, and both are logged', async () => {
    const { lose, advance, start, instances, lines } = setUp()
    lose()
    expect(instances.get('files')).toBeUndefined()
    await advance(999)
    expect(start).not.toHaveBeenCalled()
    await advance(1)
    expect(instances.get('files')?.isConnected).toBe(true)
    expect(lines).toEqual([
      'warn: instance files was lost: MCP server "x" is gone: it exited with code 1; it is started again in 1 s',
      'info: instance files is connected again',
    ])
  })

  it('is tried again with back-off, up to a minute, until it starts', async () => {
    const { lose, refuse, advance, start, clock, instances, lines } = setUp()
    refuse(new Error('no such file'))
    lose()
    const waits: number[] = []
    for (let attempt = 1; attempt <= 8; attempt += 1) {
      waits.push((clock.nextDue ?? 0) - clock.now())
      await advance((clock.nextDue ?? 0) - clock.now())
      expect(start).toHaveBeenCalledTimes(attempt)
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60].map((seconds) => seconds * 1000))
    expect(lines[1]).toBe('warn: instance files did not start; it is started again in 2 s')
    refuse(undefined)
    await advance(60_000)
    expect(instances.get('files')?.isConnected).toBe(true)
  })

  it('soon after its start waits longer, and after a minute starts over', async () => {
    const { lose, advance, clock } = setUp()
    lose()
    await advance(1000)
    lose()
    expect((clock.nextDue ?? 0) - clock.now()).toBe(2000)
    await advance(2000)
    await advance(60_000)
    lose()
    expect((clock.nextDue ?? 0) - clock.now()).toBe(1000)
  })

  it('soon after its start waits longer, however long it had run before', async () => {
    const { lose, advance, clock } = setUp()
    await advance(60_000)
    lose()
    expect((clock.nextDue ?? 0) - clock.now()).toBe(1000)
    await advance(1000)
    lose()
    expect((clock.nextDue ?? 0) - clock.now()).toBe(2000)
  })

  it('is not started while another has its id, and is closed then', async () => {
    const { lose, advance, instances, create, start, close, lines } = setUp()
    lose()
    instances.connect(create())
    await advance(1000)
    expect(start).toHaveBeenCalledOnce()
    // The lost one, and the one that was refused.
    expect(close).toHaveBeenCalledTimes(2)
    expect(lines.at(-1)).toBe('warn: instance files did not start; it is started again in 2 s')
  })
})

it('an instance that was refused, and cannot be closed either, is tried again', async () => {
  const { lose, advance, settle, instances, create, start, close, lines } = setUp()
  lose()
  instances.connect(create())
  await settle()
  close.mockRejectedValueOnce(new Error('it hangs'))
  await advance(1000)
  expect(lines.at(-1)).toBe('warn: instance files did not start; it is started again in 2 s')
  await advance(2000)
  expect(start).toHaveBeenCalledTimes(2)
})

describe('once stopped', () => {
  it('nothing is started, and no timer is left', async () => {
    const { lose, stop, advance, clock, start } = setUp()
    lose()
    stop()
    expect(clock.pending).toBe(0)
    await advance(60_000)
    expect(start).not.toHaveBeenCalled()
  })

  it('an instance that was just starting is closed', async () => {
    const { lose, stop, clock, settle, instances, start, close } = setUp()
    lose()
    clock.advance(1000)
    stop()
    await settle()
    expect(start).toHaveBeenCalledOnce()
    // The lost one, and the one that came late.
    expect(close).toHaveBeenCalledTimes(2)
    expect(instances.get('files')).toBeUndefined()
  })

  it('an instance that is disconnected stays so', async () => {
    const { stop, instances, clock } = setUp()
    stop()
    await instances.disconnect('files')
    expect(clock.pending).toBe(0)
  })
})

it('an instance that serve did not start is left alone', () => {
  const { instances, create, clock } = setUp()
  let lose: (reason: string) => void = () => undefined
  instances.connect({ ...create(), id: 'other', onLost: (onLost) => void (lose = onLost) })
  lose('gone')
  expect(clock.pending).toBe(0)
})
