/** The slots of background tasks: what frees them. */
import { AsyncTaskManager } from 'agent-tasks'
import { expect, it } from 'vitest'
import { ClientSlots, MAX_IN_PLACE, type CallSlots } from '../../../src/mcp/client-slots.js'
import { CommandSlots } from '../../../src/mcp/command-slots.js'
import type { ToolResult } from '../../../src/tools/tool.js'

const DONE: ToolResult = { llmContent: 'done', returnDisplay: '' }

function setUp() {
  const manager = new AsyncTaskManager(-1)
  const slots = new ClientSlots(manager, { maxAsyncTasks: 1, maxWaiting: 1 })
  let count = 0
  const launch = (owner: string) => {
    const call = (): Promise<ToolResult> => {
      const id = `t${(count += 1)}`
      manager.registerTask({ id, subagentName: 'slow', goalPrompt: 'g', owner })
      return Promise.resolve({ ...DONE, metadata: { agentId: id, async: true } })
    }
    return slots.launch(owner, call)
  }
  return { manager, slots, launch }
}

const idOf = ({ metadata }: ToolResult): string => String(metadata?.['agentId'])

const make: Record<string, (manager: AsyncTaskManager) => CallSlots> = {
  tasks: (manager) => new ClientSlots(manager, { maxAsyncTasks: 1, maxWaiting: 0 }),
  commands: (manager) => new CommandSlots(manager, 1),
}

it.each(['tasks', 'commands'])('F1: a call that throws leaves its slot to the next one, of %s', async (kind) => {
  const slots = make[kind]!(new AsyncTaskManager())
  for (let index = 0; index < 3; index += 1) {
    await expect(slots.launch('alice', () => Promise.reject(new Error('no program')))).rejects.toThrow('no program')
  }
  expect(await slots.launch('alice', () => Promise.resolve(DONE))).toBe(DONE)
  expect(await slots.launch('alice', () => Promise.resolve(DONE))).toBe(DONE)
})

it('each task has one slot until it ends, also one whose result is followed again', async () => {
  const { manager, slots, launch } = setUp()
  const first = await launch('alice')
  slots.follow('alice', first)
  const second = await launch('alice')
  expect(await launch('alice')).toMatchObject({
    error: { type: 'limit_reached' },
    metadata: { max: 2 },
    llmContent:
      'Max async tasks (1) reached, and the queue of this client is full (1). Wait until one has ended (wait_for_async_tasks), ' +
      'cancel one (cancel_async_task), or run this one synchronously (async: false).',
  })
  manager.completeTask(idOf(first), {})
  // It has ended: it takes no slot again.
  slots.follow('alice', first)
  const third = await launch('alice')
  expect((await launch('alice')).error).toBeDefined()
  manager.cancelTask(idOf(second))
  manager.failTask(idOf(third), 'no')
  for (const each of [await launch('alice'), await launch('alice')]) expect(each.error).toBeUndefined()
})

it('a result in place, and one of a task that is forgotten, take none', () => {
  const { manager, slots, launch } = setUp()
  const id = 'in-place'
  manager.registerTask({ id, subagentName: 'slow', goalPrompt: 'g', owner: 'alice' })
  for (let index = 0; index < 3; index += 1) {
    slots.follow('alice', { ...DONE, metadata: { agentId: id, async: false } })
    slots.follow('alice', { ...DONE, metadata: { agentId: `gone-${index}`, async: true } })
    slots.follow('alice', DONE)
  }
  return expect(launch('alice')).resolves.not.toHaveProperty('error')
})

it('what an earlier process left counts for its owner until it ends', async () => {
  const manager = new AsyncTaskManager(-1)
  manager.registerTask({ id: 'left', subagentName: 'slow', goalPrompt: 'g', owner: 'alice' })
  manager.registerTask({ id: 'own', subagentName: 'slow', goalPrompt: 'g', owner: 'alice' })
  const slots = new ClientSlots(manager, { maxAsyncTasks: 1, maxWaiting: 0 }, new Set(['left']))
  const call = async (owner: string) => (await slots.launch(owner, () => Promise.resolve(DONE))).error?.type
  expect([await call('alice'), await call('bob')]).toEqual(['limit_reached', undefined])
  manager.cancelTask('left')
  expect(await call('alice')).toBeUndefined()
})

it('says what a client can do that may have none, or has no queue, and refuses nothing without a limit', async () => {
  const manager = new AsyncTaskManager(-1)
  const refusalOf = async (slots: CallSlots, max: number) => {
    const calls = Array.from({ length: max + 1 }, () => slots.launch('alice', () => new Promise(() => undefined)))
    return await calls.at(-1)
  }
  expect(await refusalOf(new ClientSlots(manager, { maxAsyncTasks: 0, maxWaiting: 0 }), 0)).toMatchObject({
    llmContent: 'Max async tasks (0) reached. Run the task synchronously (async: false).',
    error: { message: 'Max async tasks (0) reached', type: 'limit_reached' },
  })
  expect((await refusalOf(new ClientSlots(manager, { maxAsyncTasks: 1, maxWaiting: 0 }), 1))?.llmContent).toBe(
    'Max async tasks (1) reached. Wait until one has ended (wait_for_async_tasks), cancel one (cancel_async_task), or run ' +
      'this one synchronously (async: false).',
  )
  expect(await refusalOf(new CommandSlots(manager, 1), 1)).toEqual({
    llmContent:
      'Max commands (1) reached. Wait until one has ended (wait_for_async_tasks), or cancel one (cancel_async_task). ' +
      'One that was cancelled counts until its program has ended.',
    returnDisplay: 'Max commands (1) reached',
    metadata: { max: 1 },
    error: { message: 'Max commands (1) reached', type: 'limit_reached' },
  })
  const unlimited = [new ClientSlots(manager, { maxAsyncTasks: -1, maxWaiting: 0 }), new CommandSlots(manager, -1)]
  for (const slots of unlimited) {
    expect(await slots.launch('alice', () => slots.launch('alice', () => Promise.resolve(DONE)))).toBe(DONE)
    expect(slots.follow('alice', DONE)).toBe(DONE)
  }
})

/** Runs tasks in place that go on until they are stopped. */
function inPlace() {
  const manager = new AsyncTaskManager()
  const slots = new ClientSlots(manager, { maxAsyncTasks: 1, maxWaiting: 0 })
  const settle: (() => void)[] = []
  const launch = (owner: string): string =>
    manager.launch({ subagentName: 'slow', goalPrompt: 'g', owner, isForeground: true }, () => {
      return new Promise((resolve) => settle.push(() => resolve({ final_message: 'done' })))
    }).id
  const call = (owner: string): Promise<ToolResult> =>
    slots.runInPlace(owner, (onLaunched) => {
      launch(owner)
      onLaunched()
      return Promise.resolve(DONE)
    })
  return { manager, slots, settle, call }
}

const REFUSED = { error: { type: 'limit_reached' }, metadata: { max: MAX_IN_PLACE } }

it('a client runs at most 50 tasks in place, each until its run has ended', async () => {
  const { slots, settle, call } = inPlace()
  for (let index = 0; index < MAX_IN_PLACE; index += 1) expect(await call('alice')).toBe(DONE)
  expect(await call('alice')).toMatchObject(REFUSED)
  expect(await call('bob')).toBe(DONE)
  settle[0]?.()
  await new Promise(setImmediate)
  expect(await call('alice')).toBe(DONE)
  expect(await call('alice')).toMatchObject(REFUSED)
  expect(await slots.launch('alice', () => Promise.resolve(DONE))).toBe(DONE)
})

it('calls in place that have not launched their task yet count, until they fail', async () => {
  const { slots } = inPlace()
  const fail: (() => void)[] = []
  const calls = Array.from({ length: MAX_IN_PLACE }, () =>
    slots.runInPlace('alice', () => new Promise((_resolve, reject) => fail.push(() => reject(new Error('none'))))),
  )
  const one = (): Promise<ToolResult> => slots.runInPlace('alice', () => Promise.resolve(DONE))
  expect(await one()).toMatchObject(REFUSED)
  fail[0]?.()
  await expect(calls[0]).rejects.toThrow('none')
  expect(await one()).toBe(DONE)
  for (const each of fail) each()
  await Promise.allSettled(calls)
})
