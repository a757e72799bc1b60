/** What each client may have at once: what takes a slot, and what frees it. */
import { AsyncTaskManager } from 'agent-tasks'
import { expect, it } from 'vitest'
import { leaveInBackground } from '../../../src/features/foreground/detaching.js'
import { ClientSlots, MAX_IN_PLACE, type ClientLimits } from '../../../src/mcp/client-slots.js'
import type { ToolResult } from '../../../src/tools/tool.js'

const DONE: ToolResult = { llmContent: 'done', returnDisplay: '' }

const slotsOf = (manager: AsyncTaskManager, limits: Partial<ClientLimits> = {}, earlier?: ReadonlySet<string>) =>
  new ClientSlots(manager, { maxAsyncTasks: 1, maxWaiting: 0, maxCommands: 1, ...limits }, earlier)

function setUp() {
  const manager = new AsyncTaskManager(-1)
  const slots = slotsOf(manager, { maxWaiting: 1 })
  let count = 0
  const launch = (owner: string) => {
    const call = (): Promise<ToolResult> => {
      const id = `t${(count += 1)}`
      manager.registerTask({ id, subagentName: 'slow', goalPrompt: 'g', owner })
      return Promise.resolve({ ...DONE, metadata: { agentId: id, async: true } })
    }
    return slots.launch('background', owner, call)
  }
  return { manager, slots, launch }
}

const idOf = ({ metadata }: ToolResult): string => String(metadata?.['agentId'])

it.each(['background', 'command'] as const)(
  'F1: a call that throws leaves its slot to the next one: %s',
  async (kind) => {
    const slots = slotsOf(new AsyncTaskManager())
    for (let index = 0; index < 3; index += 1) {
      await expect(slots.launch(kind, 'alice', () => Promise.reject(new Error('no program')))).rejects.toThrow(
        'no program',
      )
    }
    expect(await slots.launch(kind, 'alice', () => Promise.resolve(DONE))).toBe(DONE)
    expect(await slots.launch(kind, 'alice', () => Promise.resolve(DONE))).toBe(DONE)
  },
)

it('F1: the sessions of one token have the slots of one client, of each kind', async () => {
  const manager = new AsyncTaskManager(-1)
  const slots = slotsOf(manager, { maxAsyncTasks: 2, maxCommands: 2 })
  const client = `client-${'a'.repeat(16)}`
  const other = `client-${'b'.repeat(16)}`
  let count = 0
  const launch = (kind: 'background' | 'command' | 'inPlace', owner: string) =>
    slots.launch(kind, owner, (onLaunched) => {
      const id = `${kind}${(count += 1)}`
      const input = { id, subagentName: 'slow', goalPrompt: 'g', owner }
      const more = { ...(kind === 'inPlace' && { isForeground: true }), ...(kind === 'command' && { kind }) }
      manager.launch({ ...input, ...more }, () => new Promise(() => undefined))
      onLaunched()
      return Promise.resolve({ ...DONE, metadata: { agentId: id, async: kind === 'background' } })
    })
  for (const kind of ['background', 'command', 'inPlace'] as const) {
    const most = kind === 'inPlace' ? MAX_IN_PLACE : 2
    for (let session = 0; session < most; session += 1) {
      expect(await launch(kind, `${client}/session-${session}`)).not.toHaveProperty('error')
    }
    expect(await launch(kind, `${client}/session-more`)).toMatchObject({ error: { type: 'limit_reached' } })
    expect(await launch(kind, client)).toMatchObject({ error: { type: 'limit_reached' } })
    expect(await launch(kind, `${other}/session-0`)).not.toHaveProperty('error')
  }
})

it('each task has one slot until it ends, also one whose result is returned again', async () => {
  const { manager, slots, launch } = setUp()
  const again = (result: ToolResult) => slots.launch('inPlace', 'alice', () => Promise.resolve(result))
  const first = await launch('alice')
  await again(first)
  const second = await launch('alice')
  expect(await launch('alice')).toMatchObject({
    error: { type: 'limit_reached' },
    metadata: { max: 2 },
    llmContent:
      'Max async tasks (1) reached, and the queue of this client is full (1, queueMax). Wait until one has ended (wait_for_async_tasks), ' +
      'cancel one (cancel_async_task), or run this one synchronously (async: false).',
  })
  manager.completeTask(idOf(first), {})
  // It has ended: it takes no slot again.
  await again(first)
  const third = await launch('alice')
  expect((await launch('alice')).error).toBeDefined()
  manager.cancelTask(idOf(second))
  manager.failTask(idOf(third), 'no')
  for (const each of [await launch('alice'), await launch('alice')]) expect(each.error).toBeUndefined()
})

it('a result in place, and one of a task that is forgotten, take none', async () => {
  const { manager, slots, launch } = setUp()
  const id = 'in-place'
  manager.registerTask({ id, subagentName: 'slow', goalPrompt: 'g', owner: 'alice' })
  for (let index = 0; index < 3; index += 1) {
    for (const metadata of [{ agentId: id, async: false }, { agentId: `gone-${index}`, async: true }, {}]) {
      await slots.launch('inPlace', 'alice', () => Promise.resolve({ ...DONE, metadata }))
    }
  }
  expect(await launch('alice')).not.toHaveProperty('error')
})

it('a task that a call in place has left in the background takes one, a command takes none', async () => {
  const { manager, slots, launch } = setUp()
  const leave = (kind: 'inPlace' | 'command', id: string) => {
    manager.registerTask({ id, subagentName: 'slow', goalPrompt: 'g', owner: 'alice' })
    return slots.launch(kind, 'alice', () => Promise.resolve({ ...DONE, metadata: { agentId: id, async: true } }))
  }
  await leave('command', 'program')
  await leave('inPlace', 'left')
  expect(await launch('alice')).not.toHaveProperty('error')
  expect(await launch('alice')).toHaveProperty('error')
})

it('what an earlier process left counts for its owner until it ends', async () => {
  const manager = new AsyncTaskManager(-1)
  manager.registerTask({ id: 'left', subagentName: 'slow', goalPrompt: 'g', owner: 'alice' })
  manager.registerTask({ id: 'own', subagentName: 'slow', goalPrompt: 'g', owner: 'alice' })
  const slots = slotsOf(manager, {}, new Set(['left']))
  const call = async (owner: string) =>
    (await slots.launch('background', owner, () => Promise.resolve(DONE))).error?.type
  expect([await call('alice'), await call('bob')]).toEqual(['limit_reached', undefined])
  manager.cancelTask('left')
  expect(await call('alice')).toBeUndefined()
})

it('a task of a schedule is refused when another session of its token has the slots', async () => {
  const { manager, slots, launch } = setUp()
  const [one, two] = ['client-0123456789abcdef/session-1', 'client-0123456789abcdef/session-2'] as const
  const scheduled = (id: string) =>
    slots.launchScheduled(two, () => manager.registerTask({ id, subagentName: 'slow', goalPrompt: 'g', owner: two }))
  const first = await launch(one)
  await launch(one)
  expect(() => scheduled('refused')).toThrow(expect.objectContaining({ code: 'TASK_LIMIT' }) as Error)
  manager.cancelTask(idOf(first))
  expect(scheduled('launched').id).toBe('launched')
})

it('says what a client can do that may have none, or has no queue, and refuses nothing without a limit', async () => {
  const manager = new AsyncTaskManager(-1)
  const refusalOf = async (kind: 'background' | 'command', slots: ClientSlots, max: number) => {
    const calls = Array.from({ length: max + 1 }, () => slots.launch(kind, 'alice', () => new Promise(() => undefined)))
    return await calls.at(-1)
  }
  expect(await refusalOf('background', slotsOf(manager, { maxAsyncTasks: 0 }), 0)).toMatchObject({
    llmContent: 'Max async tasks (0) reached. Run the task synchronously (async: false).',
    error: { message: 'Max async tasks (0) reached', type: 'limit_reached' },
  })
  expect((await refusalOf('background', slotsOf(manager), 1))?.llmContent).toBe(
    'Max async tasks (1) reached. Wait until one has ended (wait_for_async_tasks), cancel one (cancel_async_task), or run ' +
      'this one synchronously (async: false).',
  )
  expect(await refusalOf('command', slotsOf(manager), 1)).toEqual({
    llmContent:
      'Max commands (1) reached. Wait until one has ended (wait_for_async_tasks), or cancel one (cancel_async_task). ' +
      'A cancelled command counts until its program has ended.',
    returnDisplay: 'Max commands (1) reached',
    metadata: { max: 1 },
    error: { message: 'Max commands (1) reached', type: 'limit_reached' },
  })
  const unlimited = slotsOf(manager, { maxAsyncTasks: -1, maxCommands: -1 })
  for (const kind of ['background', 'command'] as const) {
    const twice = () => unlimited.launch(kind, 'alice', () => Promise.resolve(DONE))
    expect(await unlimited.launch(kind, 'alice', twice)).toBe(DONE)
  }
})

/** Runs tasks in place that go on until they are stopped. */
function inPlace() {
  const manager = new AsyncTaskManager()
  const slots = slotsOf(manager)
  const settle: (() => void)[] = []
  const launch = (owner: string): string =>
    manager.launch({ subagentName: 'slow', goalPrompt: 'g', owner, isForeground: true }, () => {
      return new Promise((resolve) => settle.push(() => resolve({ final_message: 'done' })))
    }).id
  const call = (owner: string): Promise<ToolResult> =>
    slots.launch('inPlace', owner, (onLaunched) => {
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
  expect(await slots.launch('background', 'alice', () => Promise.resolve(DONE))).toBe(DONE)
})

it('calls in place that have not launched their task yet count, until they fail', async () => {
  const { slots } = inPlace()
  const fail: (() => void)[] = []
  const calls = Array.from({ length: MAX_IN_PLACE }, () =>
    slots.launch(
      'inPlace',
      'alice',
      () => new Promise((_resolve, reject) => fail.push(() => reject(new Error('none')))),
    ),
  )
  const one = (): Promise<ToolResult> => slots.launch('inPlace', 'alice', () => Promise.resolve(DONE))
  expect(await one()).toMatchObject(REFUSED)
  fail[0]?.()
  await expect(calls[0]).rejects.toThrow('none')
  expect(await one()).toBe(DONE)
  for (const each of fail) each()
  await Promise.allSettled(calls)
})

function commands() {
  const manager = new AsyncTaskManager()
  const slots = slotsOf(manager)
  const call = async (owner: string): Promise<string> =>
    (await slots.launch('command', owner, () => Promise.resolve(DONE))).llmContent
  return { manager, slots, call }
}

const NO_COMMAND = expect.stringContaining('Max commands (1) reached') as string

it('F1: a call takes a slot of its client before it has launched its command', async () => {
  const { slots, call } = commands()
  let launched = (): void => undefined
  let end = (): void => undefined
  const first = slots.launch('command', 'alice', (onLaunched) => {
    launched = onLaunched
    return new Promise((resolve) => (end = () => resolve(DONE)))
  })
  expect(await Promise.all(['alice', 'bob'].map(call))).toEqual([NO_COMMAND, 'done'])
  launched()
  expect(await call('alice')).toBe('done')
  end()
  await first
  expect(await call('alice')).toBe('done')
})

it('F1: a command holds the slot of its client until its run has settled', async () => {
  const { manager, call } = commands()
  let settle = (): void => undefined
  const { id } = manager.launch(
    { subagentName: 'sh', goalPrompt: 'sh', kind: 'command', command: ['sh'], owner: 'alice' },
    () => new Promise((_resolve, reject) => (settle = () => reject(new DOMException('', 'AbortError')))),
  )
  expect(await Promise.all(['alice', 'bob'].map(call))).toEqual([NO_COMMAND, 'done'])
  await manager.waitFor([id], { timeoutMs: 0 })
  manager.cancelTask(id)
  expect(await call('alice')).toEqual(NO_COMMAND)
  settle()
  await new Promise(setImmediate)
  expect(await call('alice')).toBe('done')
})

it('a call in the background has its slot until its result says what it has launched', async () => {
  const slots = slotsOf(new AsyncTaskManager())
  let finish: (result: ToolResult) => void = () => undefined
  const first = slots.launch('background', 'alice', (onLaunched) => {
    onLaunched()
    return new Promise((resolve) => (finish = resolve))
  })
  const next = () => slots.launch('background', 'alice', () => Promise.resolve(DONE))
  expect((await next()).error).toMatchObject({ type: 'limit_reached' })
  finish(DONE)
  await first
  expect(await next()).toBe(DONE)
})

it('F14: in place counts what went on in the background above the limit of its client', async () => {
  const manager = new AsyncTaskManager(-1)
  const slots = slotsOf(manager)
  const inPlace = async (): Promise<ToolResult> =>
    slots.launch('inPlace', 'alice', () => {
      const input = { subagentName: 'slow', goalPrompt: 'g', owner: 'alice', isForeground: true }
      const { id } = manager.launch(input, (_input, { signal }) => untilAborted(signal))
      leaveInBackground(manager, id)
      return Promise.resolve({ ...DONE, metadata: { agentId: id, async: true } })
    })
  // One has the slot of its client.
  for (let index = 0; index <= MAX_IN_PLACE; index += 1) expect(await inPlace()).not.toHaveProperty('error')
  expect(await inPlace()).toMatchObject({ error: { type: 'limit_reached' } })
  await manager.dispose()
})

const untilAborted = (signal: AbortSignal) =>
  new Promise<Record<string, never>>((resolve) => signal.addEventListener('abort', () => resolve({})))
