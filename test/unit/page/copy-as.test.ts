/** What Copy as writes is what the task was given, or says that it is too long. */
import { runInNewContext } from 'node:vm'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, type AsyncTaskInfo } from 'agent-tasks'
import { InstanceManager, localInstance, TaskManager } from 'agent-tasks/server'
import { copySubagent } from '../../../src/page/copy-as.js'
import type { PageTaskDetail } from '../../../src/page/wire.js'
import { startPage } from './test-page.js'

const KIB = 1024

const record = (fields: object): AsyncTaskInfo =>
  ({ id: 'a', subagentName: 'helper', goalPrompt: 'x', ...fields }) as never

/** What the tools of a host are called with. */
function inputOf(code: string): unknown {
  const calls: unknown[] = []
  const execute = (input: unknown): void => void calls.push(input)
  runInNewContext(code.replace('await ', ''), { tasks: { tools: { task: { execute }, run_command: { execute } } } })
  return structuredClone(calls[0])
}

describe('an async task', () => {
  it.each(['x', `it's "quoted"\n\u2028\u0085\u202e\u200e\u061c 😀`, 'x'.repeat(64 * KIB - 2)])(
    'is written whole: %.20j',
    (goal) => {
      const { typescript } = copySubagent(record({ goalPrompt: goal, timeoutMs: 1500 }))
      expect(inputOf(typescript)).toEqual({
        subagent_name: 'helper',
        goal_prompt: goal,
        async: true,
        timeout_seconds: 2,
      })
      expect(typescript).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u)
    },
  )

  it('of a program is a call of run_command', () => {
    expect(inputOf(copySubagent(record({ kind: 'command', command: ['ls', '-l', "it's"] })).typescript)).toEqual({
      command: 'ls',
      args: ['-l', "it's"],
      async: true,
    })
    expect(inputOf(copySubagent(record({ kind: 'command' })).typescript)).toMatchObject({ command: '', args: [] })
  })

  it.each([
    ['goal', { goalPrompt: 'x'.repeat(64 * KIB) }],
    ['goal', { goalPrompt: '漢'.repeat(30 * KIB) }],
    ['command', { kind: 'command', command: Array.from({ length: 100_000 }, () => 'word') }],
  ])('with a %s that is too long to copy says so', (what, fields) => {
    expect(copySubagent(record(fields))).toEqual({
      typescript: `// The ${what} is too long to copy.`,
    })
  })
})

describe('the words of a program', () => {
  it('are shown as far as there is room, and too long to copy then', async () => {
    const manager = new AsyncTaskManager()
    const { get } = await startPage({ tasks: manager })
    const words = ['node', 'y'.repeat(30_000), ...Array.from({ length: 100_000 }, (_, index) => `word-${index}`)]
    const { registry } = manager
    manager.registerTask({ id: 'a', subagentName: 'node', goalPrompt: 'x' })
    const entry = registry.history.get('a')!
    entry.record = { ...entry.record, kind: 'command', command: words }
    const text = JSON.stringify((await get('tasks/async:a')).body)
    const { program, copyAs } = JSON.parse(text) as PageTaskDetail
    expect(text.length).toBeLessThan(100 * KIB)
    expect(program?.command[0]).toBe('node')
    expect(program?.command.at(-1)).toBe('…')
    expect(copyAs.typescript).toContain('too long to copy')
    entry.record = { ...entry.record, command: ['ls'] }
    expect((await get('tasks/async:a')).body['program']).toEqual({ command: ['ls'] })
  })
})

describe('a command task', () => {
  it('is written by its input, whatever its results are, and is too long only by its input', async () => {
    const instances = new InstanceManager()
    instances.connect(
      localInstance({ id: 'big', tools: [{ name: 'grow', execute: () => ({ text: 'x'.repeat(200 * KIB) }) }] }),
    )
    const taskManager = new TaskManager({ instances, maxRetained: 2 })
    onTestFinished(async () => {
      await taskManager.dispose()
      await instances.dispose()
    })
    const { get, read } = await startPage({ taskManager })
    const reader = await read()
    const run = async (args: Record<string, unknown>): Promise<string> => {
      const commands = [{ tool_name: 'grow', intention: 'why', args, timeout: 5000 }]
      const submitted = taskManager.submitTask({
        type: 'task_submit',
        task_name: 'Grow',
        task_intention: 'more',
        commands,
      })
      const key = `command:${'taskId' in submitted ? submitted.taskId : submitted.error}`
      await reader.until(({ tasks }) => tasks.get(key)?.state === 'completed')
      return key
    }
    const copy = async (key: string) => ((await get(`tasks/${key}`)).body as unknown as PageTaskDetail).copyAs
    const first = await run({ a: 1 })
    const body =
      '{"task_name":"Grow","task_intention":"more","instanceId":"big","commands":[{"tool_name":"grow","intention":"why","args":{"a":1},"timeout":5000}]}'
    expect(await copy(first)).toEqual({ typescript: `taskManager.submitTask({ type: 'task_submit', ...${body} })` })
    const second = await run({ text: 'x'.repeat(64 * KIB) })
    expect(await copy(second)).toEqual({
      typescript: '// The list of commands is too long to copy.',
    })
    await run({})
    expect(taskManager.getTask(first.slice('command:'.length))).toBeUndefined()
    expect((await copy(first)).typescript).toMatch(/^\/\/ Task ".*" and its arguments are no longer kept/)
  })
})
