/** The tool monitor over MCP: F17. */
import { appendFileSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../support/lifelines.js'
import { overStdio, textOf } from './clients.js'
import { waitFor } from '../../support/wait-for.js'

function folder() {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'monitored-')))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

async function setUp(config: object) {
  const { ask, initialize, clock } = overStdio(config)
  await initialize()
  let last = 0
  const call = (name: string, args: object = {}) => ask((last += 1), 'tools/call', { name, arguments: args })
  /** Waits for tasks while time passes. */
  const wait = async (): Promise<string> => {
    let text: string | undefined
    void call('wait_for_async_tasks').then((answer) => (text = textOf(answer)))
    await until(() => {
      clock.advance(100)
      return text !== undefined
    })
    return text ?? ''
  }
  return { ask, call, wait }
}

describe('monitor over MCP', () => {
  it('F17: is listed where the configuration has monitors', async () => {
    const names = async (config: object): Promise<string[]> => {
      const { ask } = await setUp(config)
      return ((await ask(1, 'tools/list', {})) as unknown as { tools: { name: string }[] }).tools.map(
        ({ name }) => name,
      )
    }
    expect(await names({})).not.toContain('monitor')
    expect(await names({ monitors: {} })).toContain('monitor')
  })

  it('F17: reports the lines of a file within the folders of the configuration with the next answer, and ends a wait', async () => {
    const logs = folder()
    writeFileSync(join(logs, 'app.log'), '')
    const { call, wait } = await setUp({ monitors: { files: [logs] }, commands: { allow: ['sleep'] } })
    await call('run_command', { command: 'sleep', args: ['60'], async: true })
    const started = await call('monitor', { file: 'app.log', match: 'error' })
    expect(started.structuredContent).toMatchObject({ monitor_id: expect.stringMatching(/^mon-/) as string })
    expect(textOf(await call('monitor', { file: '/etc/passwd', match: 'root' }))).toContain(
      'expected a file within monitors.files',
    )
    appendFileSync(join(logs, 'app.log'), 'an error\n')
    const text = await wait()
    expect(text).toContain('1 matching line(s)')
    expect(text).toContain('an error')
  })

  it("F17: starts a program within the policy and the client's slots, and ends it with the monitor", async () => {
    const cwd = folder()
    const commands = { allow: ['sh'], cwd, maxCommands: 1 }
    const { call, wait } = await setUp({ monitors: {}, commands })
    const program = { command: 'sh', args: ['-c', 'pwd -P; exec sleep 60'], match: '/' }
    const id = (await call('monitor', program)).structuredContent?.['monitor_id']
    expect(textOf(await call('monitor', program))).toContain('Max commands (1) reached.')
    // The program takes a time of its own, in which the clock of the server stands still.
    const peek = { task_id: 'sh', action: 'peek' }
    await waitFor(async () => expect(textOf(await call('check_async_tasks', peek))).toContain(cwd))
    expect(await wait()).toContain(cwd)
    expect(textOf(await call('monitor', { command: 'rm', match: 'x' }))).toMatch(/Max commands|expected one of "sh"/)
    await call('monitor', { action: 'cancel', monitor_id: id })
    expect(textOf(await call('check_async_tasks'))).toContain('cancelled')
  })
})
