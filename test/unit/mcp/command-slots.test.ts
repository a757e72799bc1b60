/** The slots of commands, which their programs hold. */
import { AsyncTaskManager } from 'agent-tasks'
import { expect, it } from 'vitest'
import { CommandSlots } from '../../../src/mcp/command-slots.js'
import type { ToolResult } from '../../../src/tools/tool.js'

const DONE: ToolResult = { llmContent: 'done', returnDisplay: '' }

function setUp() {
  const manager = new AsyncTaskManager()
  const slots = new CommandSlots(manager, 1)
  const call = async (owner: string): Promise<string> =>
    (await slots.launch(owner, () => Promise.resolve(DONE))).llmContent
  return { manager, slots, call }
}

const REFUSED = expect.stringContaining('Max commands (1) reached') as string

it('F1: a call takes a slot of its client before it has launched its command', async () => {
  const { slots, call } = setUp()
  let launched = (): void => undefined
  let end = (): void => undefined
  const first = slots.launch('alice', (onLaunched) => {
    launched = onLaunched
    return new Promise((resolve) => (end = () => resolve(DONE)))
  })
  expect(await Promise.all(['alice', 'bob'].map(call))).toEqual([REFUSED, 'done'])
  launched()
  expect(await call('alice')).toBe('done')
  end()
  await first
  expect(await call('alice')).toBe('done')
})

it('F1: a command holds the slot of its client until its run has settled', async () => {
  const { manager, call } = setUp()
  let settle = (): void => undefined
  const { id } = manager.launch(
    { subagentName: 'sh', goalPrompt: 'sh', kind: 'command', command: ['sh'], owner: 'alice' },
    () => new Promise((_resolve, reject) => (settle = () => reject(new DOMException('', 'AbortError')))),
  )
  expect(await Promise.all(['alice', 'bob'].map(call))).toEqual([REFUSED, 'done'])
  await manager.waitFor([id], { timeoutMs: 0 })
  manager.cancelTask(id)
  expect(await call('alice')).toEqual(REFUSED)
  settle()
  await new Promise(setImmediate)
  expect(await call('alice')).toBe('done')
})
