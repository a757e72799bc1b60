/** Results and outputs of programs reach the model as a terminal shows them. The programs are real. */
import { expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, processRunner, type SubagentDefinition } from '../../../src/index.js'

const bar = Array.from({ length: 300 }, (_, at) => `\\033[2K\\r\\033[32mstep ${at}\\033[0m`).join('')
const script = `printf '${bar}\\033[2K\\r17 visible chars\\n'`
const shell = (text: string) => ({ command: 'sh', args: ['-c', text] })

function hostOf(it: SubagentDefinition) {
  const tasks = createAgentTasks({ subagents: { it }, commands: { allow: ['sh'] } })
  onTestFinished(() => tasks.dispose())
  return tasks
}
const call = { subagent_name: 'it', goal_prompt: 'goal' }
const clean = (text: unknown): void => {
  expect(text).toContain('17 visible chars')
  expect(text).not.toContain('\u001b')
  expect(text).not.toMatch(/u001b|step 298/)
}

it('in the result of a call, and in that of a command', async () => {
  const tasks = hostOf(processRunner(shell(script)))
  clean((await tasks.tools.task.execute(call)).llmContent)
  clean((await tasks.tools.run_command.execute(shell(script))).llmContent)
  expect((await tasks.launch('it', 'goal').result).final_message).toBe('17 visible chars')
})

it('in the error of a program', async () => {
  const tasks = hostOf(processRunner(shell(`${script} >&2; exit 1`)))
  clean((await tasks.tools.task.execute(call)).llmContent)
})

it('in the result of a function that passes on what a program has printed', async () => {
  const printed = 'step 298\u001b[2K\r\u001b[32m17 visible chars\u001b[0m'
  const tasks = hostOf({ run: () => printed })
  clean((await tasks.tools.task.execute(call)).llmContent)
  expect((await tasks.launch('it', 'goal').result).final_message).toBe(printed)
})

it('in JSON that follows a progress bar', async () => {
  const json = `${script}; printf 'wait\\r\\033[K{"final_message":"\\033[1m17 visible chars"}\\n'`
  clean(
    (await hostOf(processRunner({ ...shell(json), parse: 'json-last-line' })).launch('it', 'g').result).final_message,
  )
})

it('in the output of a task; raw: true reads all of it', async () => {
  const tasks = hostOf(processRunner(shell(`${script}; sleep 600`)))
  const task = tasks.launch('it', 'goal')
  const { id } = task
  await expect.poll(() => tasks.manager.readOutput(id)?.text).toContain('17 visible')
  const read = { task_id: id, action: 'output' as const }
  const { check_async_tasks: check } = tasks.tools
  clean((await check.execute(read)).llmContent)
  const raw = await check.execute({ ...read, raw: true, max_bytes: 100 })
  expect(raw.llmContent).toContain('\u001b[32mstep 1\u001b[0m')
  expect(raw.llmContent).toContain('"raw":true')
  task.cancel()
  const { settled } = await tasks.manager.waitFor([id])
  expect(settled[0]?.outputTail).toBe('17 visible chars')
})

it('in parts that do not end within an escape sequence', async () => {
  const tasks = hostOf(processRunner(shell(script)))
  const { id, result } = tasks.launch('it', 'goal')
  await result
  let text = ''
  for (let cursor = 0, remaining = 1; remaining > 0;) {
    const part = await tasks.tools.check_async_tasks.execute({ task_id: id, action: 'output', cursor, max_bytes: 7 })
    text += part.llmContent
    ;({ nextCursor: cursor, remainingBytes: remaining } = part.metadata as {
      nextCursor: number
      remainingBytes: number
    })
  }
  expect(text).not.toContain('\u001b')
  expect(text).not.toMatch(/\[2K|\[32m|\[0m/)
})
