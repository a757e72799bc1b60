/** What a program is started with, and the errors of one that cannot be started. The programs are real. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createRunContext, runInput } from '../../support/run-context.js'
import { failure, run, shell } from '../../support/run-process.js'

describe('a program gets', () => {
  it('a goal as one argument, unchanged', async () => {
    const goal = `it's "quoted" \${HOME} $(id) \`id\` $& $1 {name} {id} {goal} %s\\n; rm -rf *\n--flag\t😀`
    const output = await run(
      {
        command: process.execPath,
        args: ['-e', 'console.log(JSON.stringify(process.argv.slice(1)))', '--', '{goal}', '{name}:{id}={other}', '{'],
        parse: 'json',
      },
      createRunContext(),
      runInput(goal),
    )
    expect(JSON.parse(output.final_message!)).toEqual([goal, 'agent:agent-1={other}', '{'])
  })

  it('an empty stdin', async () => {
    expect(await run(shell('cat; echo read'))).toEqual({ final_message: 'read' })
  })

  it('an environment that adds to, replaces and removes from that of this process', async () => {
    process.env['RUNNER_TEST_GONE'] = 'here'
    process.env['RUNNER_TEST_KEPT'] = 'kept'
    onTestFinished(() => {
      delete process.env['RUNNER_TEST_GONE']
      delete process.env['RUNNER_TEST_KEPT']
    })
    const script = 'echo "$RUNNER_TEST_KEPT,${RUNNER_TEST_GONE-gone},$ADDED,$AGENT_TASK_ID,$AGENT_TASK_NAME"'
    const env = { RUNNER_TEST_GONE: undefined, ADDED: 'added', AGENT_TASK_NAME: 'own' }
    expect(await run({ ...shell(script), env })).toEqual({ final_message: 'kept,gone,added,agent-1,own' })
  })

  it('a working directory', async () => {
    expect(await run({ ...shell('pwd'), cwd: '/' })).toEqual({ final_message: '/' })
    const inEnvironment = { command: process.execPath, args: ['-p', 'process.env.PWD'], cwd: '/usr/..' }
    expect(await run(inEnvironment)).toEqual({ final_message: '/' })
  })
})

describe('a program that cannot be started', () => {
  let directory: string
  beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), 'process-runner-'))))
  afterAll(() => rmSync(directory, { recursive: true }))

  function file(name: string, content: string, mode: number): string {
    const path = join(directory, name)
    writeFileSync(path, content)
    chmodSync(path, mode)
    return path
  }

  it('fails with its name and where it was searched', async () => {
    const error = await failure({ command: 'no-such-agent' })
    expect(error.code).toBe('PROCESS_NOT_STARTED')
    expect(error.message).toBe(
      'Command "no-such-agent" did not start: it was not found (ENOENT): no directory in PATH has it. Install it, or give its full path.',
    )
    expect((await failure({ command: 'no-such-agent', env: { PATH: '' } })).message).toContain('PATH is empty')
  })

  it('fails with different errors for a missing file, a missing interpreter and a file that may not be executed', async () => {
    const missing = await failure({ command: './missing', cwd: directory })
    expect(missing.message).toContain('there is no such file (ENOENT)')
    expect((await failure({ command: './no-such-agent' })).message).toContain('there is no such file (ENOENT)')
    file('script', '#!/no/such/interpreter\n', 0o755)
    const script = await failure({ command: './script', cwd: directory })
    expect(script.message).toContain('the interpreter that its first line names is not (ENOENT)')
    const plain = await failure({ command: file('plain', 'text', 0o644) })
    expect(plain.message).toContain('it may not be executed (EACCES)')
  })

  it('fails with different errors for a missing working directory and a missing program', async () => {
    const missing = await failure({ ...shell('true'), cwd: join(directory, 'nowhere') })
    expect(missing.message).toContain(`its working directory "${join(directory, 'nowhere')}" does not exist (ENOENT)`)
    const notOne = await failure({ ...shell('true'), cwd: file('a-file', '', 0o644) })
    expect(notOne.message).toContain('is not a directory (ENOTDIR)')
  })

  it('fails with a reason when the goal is too long for an argument or contains a null character', async () => {
    const options = { ...shell('true'), args: ['-c', 'true', '{goal}'] }
    const long = await failure(options, runInput('x'.repeat(3_000_000)))
    expect(long.message).toContain('its arguments and environment are too long (E2BIG)')
    const nul = await failure(options, runInput('a\0b'))
    expect(nul.message).toContain('without null bytes')
  })
})
