/** `agent-tasks mcp` with invalid arguments, files and ports. test/e2e/mcp-server.test.ts tests the process. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { howToConfigure } from '../../../src/mcp/starter-config.js'
import { run } from './command-line.js'

describe('agent-tasks mcp', () => {
  it.each([
    [
      ['--config', '/no/such/file'],
      'agent-tasks: /no/such/file: cannot be read (ENOENT). To write a working example, run `npx agent-tasks mcp --init --config',
    ],
    [['--http', '--port', 'x'], '--port'],
    [['--http', '--host', '0.0.0.0'], 'agent-tasks: Setting http.host: got "0.0.0.0", expected a loopback address'],
    [
      ['--store', '/dev/null'],
      'agent-tasks: /dev/null: it is not a folder. The folder was not changed. Use another one.',
    ],
    [['--http', '--port', '0', '--store', '/dev/null/x'], 'agent-tasks: /dev/null/x: it failed (ENOTDIR'],
    [['--session', 'x'], 'Setting session: got "x", expected no value without a store'],
    [['--store', '/dev/null', '--session', ''], 'options.session: got "", expected a string of 1 to 1000 characters'],
    [['--page=x'], '--page: got "x", expected an integer from 0'],
    [['--https'], "unknown option '--https'"],
  ])('%j starts nothing, with exit code 2', async (args, problem) => {
    const said = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => said.mockRestore())
    const { exitCode, stdout, stderr } = await run(['mcp', ...args])
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr.split(problem)).toHaveLength(2)
  })

  it('says which file is missing, and what to write there, before it serves no subagents', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-cli-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const cwd = vi.spyOn(process, 'cwd').mockReturnValue(folder)
    const said = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => [cwd, said].forEach((spy) => spy.mockRestore()))
    // The address is refused after that.
    expect((await run(['mcp', '--http', '--host', '0.0.0.0'])).exitCode).toBe(2)
    const file = join(folder, 'agent-tasks.config.json')
    expect(said.mock.calls.flat()).toEqual([
      'agent-tasks info: configuration: none, 0 subagent(s), 0 instance(s)',
      `agent-tasks warn: there is no file ${file}, so there are no subagents. ${howToConfigure(file)}`,
    ])
    expect(howToConfigure(file)).toMatch(
      /^To write a working example, run `npx agent-tasks mcp --init --config ".*agent-tasks\.config\.json"`.* with \{"subagents":/,
    )
  })

  it('refuses --port without --http', async () => {
    expect(await run(['mcp', '--port', '4000'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('--port: got 4000, expected nothing without --http') as string,
    })
  })

  it('--init writes an example that is valid, and never changes a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-cli-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'config.json')
    expect(await run(['mcp', '--init', '--config', file])).toEqual({
      exitCode: 0,
      stdout: `Wrote ${file}. \`agent-tasks doctor\` checks it.\n`,
      stderr: '',
    })
    expect((await run(['config', 'check', file])).stdout).toContain('Subagents: shout.')
    const before = readFileSync(file, 'utf8')
    expect(await run(['mcp', '--init', '--config', file])).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: `agent-tasks: ${file}: exists already, and was not changed.\n`,
    })
    expect(readFileSync(file, 'utf8')).toBe(before)
    const lost = join(folder, 'none', 'config.json')
    expect((await run(['mcp', '--init', '--config', lost])).stderr).toBe(
      `agent-tasks: ${lost}: cannot be written (ENOENT).\n`,
    )
  })

  it('names the invalid field of the file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-cli-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'config.json')
    writeFileSync(file, JSON.stringify({ instances: [{ id: 'a' }] }))
    const { exitCode, stderr } = await run(['mcp', '--config', file])
    expect([exitCode, stderr]).toEqual([
      2,
      `agent-tasks: ${file}: instances[0]: got {"id":"a"}, expected either a command or a url.\n`,
    ])
  })
})
