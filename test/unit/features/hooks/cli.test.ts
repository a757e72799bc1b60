/** The command line of hooks, with a HOME of its own. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runProgram } from '../../../../src/cli/program.js'
import { examineHooks } from '../../../../src/features/hooks/cli.js'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'hooks-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

async function run(...args: readonly string[]) {
  const printed = { stdout: '', stderr: '' }
  const stream = (name: keyof typeof printed) => ({ write: (text: string) => (printed[name] += text) }) as never
  const io = {
    stdout: stream('stdout'),
    stderr: stream('stderr'),
    env: { HOME: home },
    readStdin: () => Promise.resolve(''),
  }
  const code = await runProgram(['hooks', ...args], io, '1')
  return { code, ...printed }
}

const settings = () => join(home, '.claude/settings.json')

describe('agent-tasks hooks', () => {
  it('prints the hooks, the file and what to trust, and writes nothing', async () => {
    const { code, stdout } = await run('--client', 'codex')
    expect(code).toBe(0)
    expect(stdout).toContain(`Add this to ${home}/.codex/hooks.json:`)
    expect(stdout).toContain('agent_tasks_stop')
    expect(stdout).toContain('enter `/hooks`, and trust both')
    expect(existsSync(join(home, '.codex'))).toBe(false)
  })

  it('refuses a choice that the client does not have', async () => {
    const { code, stderr } = await run('--client', 'claude', '--wake-idle', '--write')
    expect(code).not.toBe(0)
    expect(stderr).toContain('--wake-idle')
    expect(stderr).toContain('with --client claude')
    expect((await run('--client', 'codex', '--wake-idle')).stdout).toContain('"wakes_idle": true')
  })

  it('writes, checks and removes them', async () => {
    expect((await run('--client', 'claude', '--check')).code).toBe(6)
    expect((await run('--client', 'claude', '--write')).stdout).toContain(
      `Wrote the hooks of Claude Code to ${settings()}.`,
    )
    expect((await run('--client', 'claude', '--write')).stdout).toContain('has the hooks already')
    const checked = await run('--client', 'claude', '--check')
    expect([checked.code, checked.stdout.split('\n')[0]]).toEqual([0, 'The hooks of Claude Code are there.'])
    expect(readFileSync(settings(), 'utf8')).toContain(process.execPath)
    expect((await run('--client', 'claude', '--remove')).stdout).toContain('Removed the hooks')
    expect((await run('--client', 'claude', '--remove')).stdout).toContain('has no such hooks')
    expect(JSON.parse(readFileSync(settings(), 'utf8'))).toEqual({})
  })

  it.each([
    [['--client', 'other'], '--client: got "other", expected claude, codex, gemini, opencode, qwen, copilot'],
    [['--client', 'claude', '--scope', 'all'], '--scope: got "all", expected user, project'],
    [['--client', 'claude', '--write', '--remove'], '--remove: got true, expected no value with --write'],
    [[], "required option '--client <name>' not specified"],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await run(...args)
    expect(code).toBe(2)
    expect(stderr).toContain(message)
  })
})

it('doctor names the clients that have the server, and lack its hooks', async () => {
  expect(examineHooks({ HOME: home }, home)).toEqual([])
  mkdirSync(join(home, '.claude'))
  const server = { command: 'agent-tasks', args: ['mcp'] }
  writeFileSync(join(home, '.claude.json'), JSON.stringify({ mcpServers: { 'agent-tasks': server } }))
  const [finding] = examineHooks({ HOME: home }, home)
  expect(finding).toMatchObject({ check: 'hooks of Claude Code', state: 'note' })
  expect(finding?.detail).toContain('run agent-tasks hooks --client claude --write')
  await run('--client', 'claude', '--write')
  expect(examineHooks({ HOME: home }, home)).toMatchObject([{ state: 'ok' }])
})
