/** `agent-tasks mcp` with invalid arguments, files and ports. test/e2e/mcp-server.test.ts tests the process. */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { howToConfigure } from '../../../src/mcp/starter-config.js'
import { run, signal } from './command-line.js'
import { waitFor } from '../../support/wait-for.js'

describe('agent-tasks mcp', () => {
  it.each([
    [
      ['--config', '/no/such/file'],
      'agent-tasks: /no/such/file: cannot be read (ENOENT). To write a working example, run `npx --no-install agent-tasks mcp --init --config',
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
      /^To write a working example, run `npx --no-install agent-tasks mcp --init --config ".*agent-tasks\.config\.json"`.* with \{"subagents":/,
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

describe('agent-tasks mcp over HTTP', () => {
  /** Starts it without subagents; `urlIn` finds what it says on standard error. */
  async function start(...args: readonly string[]) {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-cli-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const config = join(folder, 'config.json')
    writeFileSync(config, '{}')
    const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never)
    const said = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => [exit, said].forEach((spy) => spy.mockRestore()))
    const ran = await run(['mcp', '--http', '--port', '0', '--config', config, ...args])
    const [, url = ''] = /MCP at (\S+)/.exec(said.mock.calls.flat().join('\n')) ?? []
    return { ...ran, exit, url }
  }

  it('serves until a signal ends it, with exit code 0', async () => {
    const { exitCode, exit, url } = await start()
    const stop = process.listeners('SIGTERM').at(-1)
    onTestFinished(() => {
      for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) if (stop) process.off(name, stop)
    })
    expect(exitCode).toBe(0)
    expect((await fetch(url)).status).toBeLessThan(500)
    signal('SIGTERM')
    await waitFor(() => expect(exit).toHaveBeenCalledExactlyOnceWith(0))
    await expect(fetch(url)).rejects.toThrow()
  })

  it('serves nothing when the port of its page is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    onTestFinished(() => void other.close())
    const before = process.listenerCount('SIGTERM')
    const { port } = other.address() as AddressInfo
    const { exitCode, stderr, url } = await start('--page', String(port))
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringContaining(`Setting port: got ${port}, expected a port that is free`),
    ])
    await expect(fetch(url)).rejects.toThrow()
    expect(process.listenerCount('SIGTERM')).toBe(before)
  })
})
