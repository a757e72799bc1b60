/** Terminals: programs that an agent has the host start. */
import { describe, expect, it } from 'vitest'
import { openTerminals } from '../../../../src/runners/acp/terminals.js'
import { parseProcessOptions } from '../../../../src/runners/process-options.js'
import type { CommandPolicy } from '../../../../src/tools/command-policy.js'
import { results } from '../../../support/acp-stage.js'
import { createRunContext, runInput } from '../../../support/run-context.js'

const open = (policy: CommandPolicy) =>
  openTerminals(parseProcessOptions({ command: 'agent', graceMs: 100 }), policy, runInput(), createRunContext())
const request = (command: string, args: string[] = [], more: object = {}) => ({
  sessionId: 's',
  command,
  args,
  ...more,
})

describe('terminals', () => {
  it('run an allowed program, and keep its output and its exit', async () => {
    const terminals = open({ allow: ['sh'] })
    const id = terminals.create(request('sh', ['-c', 'echo out; echo err >&2; exit 4']))
    expect(await terminals.waitForExit(id)).toEqual({ exitCode: 4, signal: null })
    const { output, ...rest } = terminals.output(id)
    expect(output.split('\n').sort()).toEqual(['', 'err', 'out'])
    expect(rest).toEqual({ truncated: false, exitStatus: { exitCode: 4, signal: null } })
    terminals.release(id)
    expect(() => terminals.output(id)).toThrow('Resource not found')
    await terminals.close()
  })

  it('can be opened one after the other, more than may be open at once, also when their programs fail', async () => {
    const terminals = open({ allow: ['sh', '/missing/program'] })
    for (let count = 0; count < 20; count += 1) {
      expect(() => terminals.create(request('/missing/program'))).toThrow('did not start')
      const id = terminals.create(request('sh', ['-c', `exit ${count}`]))
      expect(await terminals.waitForExit(id)).toEqual({ exitCode: count, signal: null })
      terminals.release(id)
    }
    await terminals.close()
  })

  it('count while they are open, also when their programs have ended', async () => {
    const terminals = open({ allow: ['true'] })
    const ids = Array.from({ length: 16 }, () => terminals.create(request('true')))
    await Promise.all(ids.map((id) => terminals.waitForExit(id)))
    expect(() => terminals.create(request('true'))).toThrow('a run has at most 16 terminals')
    terminals.release(ids[0] ?? '')
    expect(await terminals.waitForExit(terminals.create(request('true')))).toEqual({ exitCode: 0, signal: null })
    await terminals.close()
  })

  it('refuse other programs, folders and variables', () => {
    const terminals = open({ allow: ['sh'], cwd: '/tmp' })
    expect(() => terminals.create(request('rm'))).toThrow('params.command: "rm", expected one of "sh"')
    expect(() => terminals.create(request('sh', [], { cwd: '/' }))).toThrow('params.cwd')
    expect(() => terminals.create(request('sh', [], { env: [{ name: 'PATH', value: '/' }] }))).toThrow('params.env')
  })

  it('do not take the place of the agent in the store', async () => {
    let saved = 0
    const durability = {
      folder: undefined,
      isResumed: false,
      key: undefined,
      startedAt: 0,
      saveProgram: () => Promise.resolve(void (saved += 1)),
    }
    const settings = parseProcessOptions({ command: 'agent' })
    const terminals = openTerminals(settings, { shell: true }, runInput(), { ...createRunContext(), durability })
    expect(await terminals.waitForExit(terminals.create(request('true')))).toEqual({ exitCode: 0, signal: null })
    expect(saved).toBe(0)
    await terminals.close()
  })

  it('keep the end of the output', async () => {
    const terminals = open({ shell: true })
    const id = terminals.create(request('printf 12345é', [], { outputByteLimit: 3 }))
    await terminals.waitForExit(id)
    expect(terminals.output(id)).toMatchObject({ output: '5é', truncated: true })
    await terminals.close()
  })

  it('run a command line, or a program with arguments, where a shell is allowed', async () => {
    const terminals = open({ shell: true })
    const ids = [terminals.create(request('echo $((1 + 1))')), terminals.create(request('printf', ['%s', '$x']))]
    const outputs = ids.map(async (id) => {
      await terminals.waitForExit(id)
      return terminals.output(id).output
    })
    expect(await Promise.all(outputs)).toEqual(['2\n', '$x'])
    await terminals.close()
  })

  it('are killed, released and closed with what runs in them', async () => {
    const terminals = open({ shell: true })
    const [killed, released, closed] = [1, 2, 3].map(() => terminals.create(request('sleep 60')))
    terminals.kill(killed ?? '')
    expect(await terminals.waitForExit(killed ?? '')).toEqual({ exitCode: null, signal: 'SIGTERM' })
    const gone = terminals.waitForExit(released ?? '')
    terminals.release(released ?? '')
    expect(await gone).toMatchObject({ signal: 'SIGTERM' })
    const last = terminals.waitForExit(closed ?? '')
    await terminals.close()
    expect(await last).toMatchObject({ signal: 'SIGTERM' })
  })

  it('are 16 at most, also when they were released and still run', async () => {
    const terminals = open({ shell: true })
    const ids = Array.from({ length: 16 }, () => terminals.create(request('trap "" TERM; sleep 60')))
    ids.forEach((id) => terminals.release(id))
    expect(() => terminals.create(request('true'))).toThrow('at most 16 terminals')
    await terminals.close()
  })
})

describe('over the protocol', () => {
  const acts = [
    ['request', 'terminal/create', { command: 'echo', args: ['hi'] }],
    ['request', 'terminal/wait_for_exit', { terminalId: 'terminal-1' }],
    ['request', 'terminal/output', { terminalId: 'terminal-1' }],
    ['request', 'terminal/kill', { terminalId: 'terminal-1' }],
    ['request', 'terminal/release', { terminalId: 'terminal-1' }],
    ['request', 'terminal/create', { command: 'sleep', args: ['60'] }],
    ['hello'],
  ] as const

  it('are off unless programs are allowed, and with execute denied', async () => {
    const off = { code: -32_601 }
    expect(await results({ acts: acts.slice(0, 2) })).toMatchObject([off, off])
    const denied = { permissions: { execute: 'deny' }, commands: { allow: ['echo'] } } as const
    expect(await results({ acts: acts.slice(0, 2) }, denied)).toMatchObject([off, off])
  })

  it('are offered with a policy, and end with the run', async () => {
    const started = Date.now()
    const seen = await results({ acts }, { commands: { allow: ['echo', 'sleep'] } })
    expect(seen).toMatchObject([
      { terminalId: 'terminal-1' },
      { exitCode: 0 },
      { output: 'hi\n', truncated: false },
      {},
      {},
      { terminalId: 'terminal-2' },
      { clientCapabilities: { terminal: true } },
    ])
    expect(Date.now() - started).toBeLessThan(30_000)
  })
})
