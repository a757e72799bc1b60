/** The result or the failure of a program. The programs are real. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { processRunner } from '../../../src/runners/process-runner.js'
import { createRunContext } from '../../support/run-context.js'
import { failure, run, shell } from '../../support/run-process.js'

describe('a program that exits with 0', () => {
  it('completes with its trimmed stdout as the final message', async () => {
    expect(await run(shell('echo; echo "  two words  "; echo noise >&2'))).toEqual({ final_message: 'two words' })
  })

  it('completes with an empty message when it prints nothing', async () => {
    expect(await run(shell('true'))).toEqual({ final_message: '' })
  })

  it('has both of its outputs appended to the task, unmarked', async () => {
    const context = createRunContext()
    await run(shell('echo out; echo err >&2'), context)
    expect(context.output().split('\n').sort()).toEqual(['', 'err', 'out'])
  })

  it('completes with the JSON it printed, or with the JSON of its last line', async () => {
    const json = `echo '{"final_message":"done",'; echo '"extra":1}'`
    expect(await run({ ...shell(json), parse: 'json' })).toEqual({ final_message: 'done', extra: 1 })
    const lines = `echo '{"step":1}'; echo '{"final_message":"last"}'; echo`
    expect(await run({ ...shell(lines), parse: 'json-last-line' })).toEqual({ final_message: 'last' })
  })

  it('completes with the result of a parse function, which gets the arguments and stderr', async () => {
    const seen: unknown[] = []
    const output = await run({
      command: '/bin/sh',
      args: ['-c', 'echo out; echo err >&2', '{name}'],
      parse: async (stdout, details) => {
        seen.push(stdout, details)
        return { terminate_reason: 'PARSED' }
      },
    })
    expect(output).toEqual({ terminate_reason: 'PARSED' })
    const args = ['-c', 'echo out; echo err >&2', 'agent']
    expect(seen).toEqual(['out\n', { command: '/bin/sh', args, stderr: 'err\n' }])
  })

  it('fails when its output is not what was expected, and shows a part of it', async () => {
    const error = await failure({ ...shell('echo hello; echo why >&2'), parse: 'json' })
    expect(error.code).toBe('PROCESS_OUTPUT')
    expect(error.message).toBe(
      'The output of command "/bin/sh" could not be read: expected its stdout to be one JSON value, got "hello\\n".' +
        ' The end of its stderr:\nwhy',
    )
  })

  it('fails with what a parse function throws or rejects with', async () => {
    const broken = new Error('no session id')
    const throwing = (): never => {
      throw broken
    }
    for (const parse of [throwing, async () => throwing()]) {
      const error = await failure({ ...shell('true'), parse })
      expect(error.message).toBe('The output of command "/bin/sh" could not be read: no session id.')
      expect(error.cause).toBe(broken)
    }
  })
})

describe('a program that does not succeed', () => {
  it('fails with its exit code and the end of its stderr', async () => {
    const error = await failure(shell('echo ignored; echo "no such model" >&2; exit 3'))
    expect(error.message).toBe('Command "/bin/sh" exited with code 3. The end of its stderr:\nno such model')
    expect(error).toMatchObject({
      code: 'PROCESS_FAILED',
      command: '/bin/sh',
      exitCode: 3,
      signal: undefined,
      stderr: 'no such model\n',
    })
  })

  it('fails with the end of its stdout when it wrote nothing to stderr', async () => {
    const error = await failure(shell('echo "error: quota"; exit 1'))
    expect(error.message).toBe('Command "/bin/sh" exited with code 1. The end of its stdout:\nerror: quota')
    expect((await failure(shell('exit 1'))).message).toBe('Command "/bin/sh" exited with code 1.')
  })

  it('keeps at most 2000 characters of stderr in the message, and splits none', async () => {
    // An odd number of units after the pairs: a cut at 2000 units would split one.
    const error = await failure({
      command: process.execPath,
      args: ['-e', `console.error('😀'.repeat(9000) + '!'); process.exit(1)`],
    })
    const tail = error.message.slice(error.message.indexOf('\n') + 1)
    expect(tail).toBe(`${'😀'.repeat(999)}!`)
  })

  it('fails with the signal that ended it', async () => {
    const error = await failure(shell('kill -KILL $$'))
    expect(error.message).toBe('Command "/bin/sh" was ended by SIGKILL.')
    expect(error).toMatchObject({ signal: 'SIGKILL', exitCode: undefined })
  })
})

describe('launched through the manager', () => {
  it('A1: a program completes its task with what it printed, and can be peeked at', async () => {
    const manager = new AsyncTaskManager()
    onTestFinished(() => manager.dispose())
    const runner = processRunner({ ...shell('echo 50; echo hi'), progress: (line) => Number(line) || undefined })
    const { id } = manager.launch({ subagentName: 'sh', goalPrompt: 'goal' }, runner)
    const { settled } = await manager.waitFor([id])
    expect(settled).toMatchObject([
      { status: 'completed', output: { final_message: '50\nhi' }, progress: { progress: 50 } },
    ])
    expect(manager.readOutput(id)?.text).toBe('50\nhi\n')
  })

  it('A1: a program that fails or cannot start fails its task, with the reason', async () => {
    const manager = new AsyncTaskManager()
    onTestFinished(() => manager.dispose())
    const input = { subagentName: 'sh', goalPrompt: 'goal' }
    const failing = manager.launch(input, processRunner(shell('echo "no key" >&2; exit 3')))
    const missing = manager.launch(input, processRunner({ command: 'no-such-agent' }))
    const { settled } = await manager.waitFor([failing.id, missing.id])
    const errors = new Map(settled.map((task) => [task.id, task.error]))
    expect(errors.get(failing.id)).toBe('Command "/bin/sh" exited with code 3. The end of its stderr:\nno key')
    expect(errors.get(missing.id)).toContain('"no-such-agent" did not start: it was not found (ENOENT)')
  })

  it('twenty at once each complete with their own output', async () => {
    const listeners = process.listenerCount('exit')
    const manager = new AsyncTaskManager(20)
    onTestFinished(() => manager.dispose())
    const runner = processRunner({ command: '/bin/sh', args: ['-c', 'echo "$0"', '{goal}'] })
    const goals = Array.from({ length: 20 }, (_, index) => `goal ${index}`)
    const ids = goals.map((goalPrompt) => manager.launch({ subagentName: 'sh', goalPrompt }, runner).id)
    const { settled } = await manager.waitFor(ids)
    const told = new Map(settled.map((task) => [task.id, task.output?.final_message]))
    expect(ids.map((id) => told.get(id))).toEqual(goals)
    expect(process.listenerCount('exit')).toBe(listeners)
  })
})
