/** Programs that are sent messages over stdin, and that ask questions over the socket of their run. The programs are real. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, processRunner, type Runner } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { until } from '../../support/lifelines.js'
import { shell } from '../../support/run-process.js'
import { InvalidInputError } from '../../../src/errors.js'

function setUp(runner: Runner, options: ConstructorParameters<typeof AsyncTaskManager>[0] = {}) {
  const manager = new AsyncTaskManager(options)
  onTestFinished(() => manager.dispose())
  const { id } = manager.launch({ subagentName: 's', goalPrompt: 'g' }, runner)
  const ended = manager.waitFor([id]).then(({ settled: [task] }) => task)
  const written = () => manager.readOutput(id)?.text ?? ''
  return { manager, id, ended, written, send: (message: string) => manager.sendToTask(id, message) }
}

const reader = shell('echo ready; while read -r line; do echo "got $line"; [ "$line" = stop ] && exit 0; done')

describe('a program that is sent messages', () => {
  it.each([
    ['without a store', {}],
    ['behind the gate of a store', { store: memoryStore() }],
  ])('F7: gets each as a line of its stdin, once, in order, %s', async (_how, options) => {
    const { ended, written, send } = setUp(processRunner({ ...reader, stdin: 'messages' }), options)
    await until(() => written() !== '')
    for (const message of ['one', 'two\n', 'stop']) expect(send(message)).toEqual({ sent: true })
    expect(await ended).toMatchObject({
      status: 'completed',
      messagesSent: 3,
      output: { final_message: 'ready\ngot one\ngot two\ngot stop' },
    })
    expect(send('late').sent).toBe(false)
  })

  it('F7: that closes its stdin, or was not started with one, gets none', async () => {
    const closing = setUp(processRunner({ ...shell('exec <&-; echo closed; sleep 60'), stdin: 'messages' }))
    await until(() => closing.written() !== '')
    await until(() => !closing.send('m').sent)
    closing.manager.cancelTask(closing.id)
    const deaf = setUp(processRunner(shell('sleep 60')))
    expect(deaf.send('m')).toMatchObject({
      sent: false,
      reason: expect.stringContaining('takes no messages') as string,
    })
    deaf.manager.cancelTask(deaf.id)
    await Promise.all([closing.ended, deaf.ended])
  })

  it('F7: cannot survive its host', () => {
    expect(() => processRunner({ command: 'cat', stdin: 'messages', survivesHost: true })).toThrow(InvalidInputError)
    expect(() => processRunner({ command: 'cat', stdin: 'lines' as 'none' })).toThrow('options.stdin')
  })
})

const main = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url))

/** A shell script in which `ask` is the command of the package. */
const asking = (script: string) => ({
  ...shell(`ask() { "$NODE" --import tsx "$MAIN" ask "$@"; }; ${script}`),
  env: { NODE: process.execPath, MAIN: main },
})

describe('a program that asks', () => {
  it('F6: gets the answer over its socket, as text or as an exit code', async () => {
    const script =
      'branch=$(ask "Which branch?" --choices main,dev) && ask "Sure?"; echo "$branch $? $AGENT_TASK_SOCKET"'
    const { manager, id, ended } = setUp(processRunner({ ...asking(script), questions: true }))
    const question = () => manager.getTask(id)?.questions?.[0]
    await until(() => question()?.message === 'Which branch?')
    expect(question()?.schema).toMatchObject({ properties: { answer: { enum: ['main', 'dev'] } } })
    expect(() => manager.answerTask(id, 'question-1', { action: 'accept', content: { answer: 'other' } })).toThrow()
    expect(manager.answerTask(id, 'question-1', { action: 'accept', content: { answer: 'dev' } })).toBe(true)
    await until(() => question()?.message === 'Sure?')
    manager.answerTask(id, 'question-2', { action: 'decline' })
    const task = await ended
    const [branch, code, socket] = task?.output?.final_message?.split(' ') ?? []
    expect([branch, code]).toEqual(['dev', '7'])
    expect(existsSync(socket!)).toBe(false)
  })

  it('finds the installed command at the end of its PATH', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-bin-'))
    const { execPath } = process
    onTestFinished(() => {
      process.execPath = execPath
      rmSync(folder, { recursive: true })
    })
    writeFileSync(join(folder, 'agent-tasks'), '#!/bin/sh\necho "ran $1"\n', { mode: 0o755 })
    process.execPath = join(folder, 'node')
    const pathOf = async (options: object) => {
      const { ended } = setUp(processRunner({ ...shell('echo "$PATH"'), ...options }))
      return (await ended)?.output?.final_message
    }
    const asks = { ...shell('agent-tasks ask'), questions: true, env: { PATH: '/bin' } }
    expect((await setUp(processRunner(asks)).ended)?.output?.final_message).toBe('ran ask')
    expect(await pathOf({ questions: true })).toBe(`${process.env['PATH']}${delimiter}${folder}`)
    expect(await pathOf({ questions: true, env: { PATH: '/bin' } })).toBe(`/bin${delimiter}${folder}`)
    expect(await pathOf({})).toBe(process.env['PATH'])
    rmSync(join(folder, 'agent-tasks'))
    expect(await pathOf({ questions: true })).toBe(process.env['PATH'])
  })

  it('F6: has no socket unless it may ask, and never asks by its stdout', async () => {
    const { manager, id, ended } = setUp(
      processRunner(shell('echo "{\\"message\\":\\"Which?\\"}"; echo "[$AGENT_TASK_SOCKET]"')),
    )
    const task = await ended
    expect(task?.output?.final_message).toContain('[]')
    expect(manager.getTask(id)?.questions).toBeUndefined()
  })
})
