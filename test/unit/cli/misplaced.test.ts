// Command lines that people try.
import { describe, expect, it } from 'vitest'
import { run } from './command-line.js'

describe('a command line that is nearly right', () => {
  it.each([
    [['cancel', 't1'], 'There is no command cancel. Run: agent-tasks tasks cancel t1'],
    [['cancel'], 'There is no command cancel. Run: agent-tasks tasks cancel <id>'],
    [['watch', 't1', '--json'], 'There is no command watch. Run: agent-tasks tasks watch t1 --json'],
    [
      ['--url', 'http://x:1', 'instances'],
      '--url is an option of a command, and comes after it. Run: agent-tasks instances --url http://x:1',
    ],
    [
      ['--json', '--url=http://x:1', 'tasks', 'list'],
      '--json is an option of a command, and comes after it. Run: agent-tasks tasks list --json --url=http://x:1',
    ],
  ])('names the right one: %j', async (args, message) => {
    const { exitCode, stderr } = await run(args)
    expect(exitCode).toBe(2)
    expect(stderr).toContain(message)
  })

  it('does not concern the options of the program', async () => {
    expect(await run(['--version'])).toMatchObject({ exitCode: 0, stdout: '1.2.3\n' })
    expect((await run(['--url'])).stderr).not.toContain('comes after')
  })
})
