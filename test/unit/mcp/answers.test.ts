/** What the answers of the server deliver: only what was written out, and everything that is owed to the client. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { ANONYMOUS } from '../../../src/mcp/callers.js'
import { until } from '../../support/lifelines.js'
import { controlled, overHttp, overStdio, textOf, type Called } from './clients.js'
import { ALICE, BOB, launchAnonymous, setUpApp } from './wire.js'

describe('a client of 2025 whose connection breaks', () => {
  it('A5: while it waits: the wait is aborted, and the next answer has the result', async () => {
    const { manager, begin, call, launch, end } = await overHttp()
    const id = await launch()
    const waiting = await begin('wait_for_async_tasks', { task_ids: [id] })
    waiting.destroy()
    await until(() => !isClaimed(manager, id))
    end(id, 'the answer')
    await until(() => manager.getTask(id)?.status === 'completed')
    expect(manager.getTask(id)?.delivery).toBe('owed')
    const next = await call('wait_for_async_tasks')
    expect(textOf(next)).toContain('the answer')
    await until(() => manager.getTask(id)?.delivery === 'delivered')
  })

  it('A5: before its answer was written out: the result is owed again', async () => {
    const { manager, begin, launch, end } = await overHttp({ maxMessageChars: 10_000_000 })
    const id = await launch()
    const waiting = await begin('wait_for_async_tasks', { task_ids: [id] })
    waiting.pause()
    // More than the buffers of the socket hold: the rest waits in the server.
    end(id, 'x'.repeat(9_000_000))
    await until(() => manager.getTask(id)?.delivery === 'leased')
    waiting.destroy()
    await until(() => manager.getTask(id)?.delivery !== 'leased')
    expect(manager.getTask(id)?.delivery).toBe('owed')
  })

  it('while a task runs in place: the task continues, and its result is owed', async () => {
    const { manager, begin, call, end } = await overHttp()
    const calling = await begin('task', { subagent_name: 'slow', goal_prompt: 'g' })
    const { id } = manager.getRunningTasks()[0]!
    calling.destroy()
    await until(() => !isClaimed(manager, id))
    end(id, 'late but here')
    await until(() => manager.getTask(id)?.status === 'completed')
    expect(textOf(await call('list_instances'))).toContain('late but here')
  })
})

function isClaimed(manager: Awaited<ReturnType<typeof overHttp>>['manager'], id: string): boolean {
  return manager.registry.history.get(id)?.claims !== undefined
}

async function inProcess() {
  const subagent = controlled()
  const host = setUpApp({ slow: subagent.run })
  onTestFinished(() => host.app.close())
  const use = async (name: string, args: object = {}, caller = ALICE): Promise<Called> =>
    (await host.call(name, args, {}, caller)).result as unknown as Called
  const launch = async (caller = ALICE): Promise<string> =>
    (await use('task', { subagent_name: 'slow', goal_prompt: 'g', async: true }, caller)).structuredContent![
      'task_id'
    ] as string
  return { ...host, ...subagent, use, launch }
}

describe('the answer of any tool', () => {
  it.each([
    ['list_instances', {}],
    ['check_async_tasks', {}],
    ['cancel_async_task', { task_id: 'nobody' }],
    ['submit_commands', { task_name: 't', commands: [] }],
    ['task', { subagent_name: 'nobody', goal_prompt: 'g' }],
  ])('of %s carries what is owed to its client, once', async (name, args) => {
    const { use, launch, end, manager } = await inProcess()
    const id = await launch()
    end(id, 'the answer')
    await until(() => manager.getTask(id)?.status === 'completed')
    const first = await use(name, args)
    expect(textOf(first)).toContain('the answer')
    if (first.structuredContent !== undefined) expect(first.structuredContent['text']).toContain('the answer')
    expect(textOf(await use(name, args))).not.toContain('the answer')
    expect(manager.getTask(id)?.delivery).toBe('delivered')
  })

  it('carries nothing of another client, and nothing to an anonymous one', async () => {
    const { app, use, launch, end, manager } = await inProcess()
    const [mine, anonymous] = [await launch(), await launchAnonymous(app, 'slow')]
    end(mine, 'of alice')
    end(anonymous, 'of somebody')
    await until(() => manager.getRunningTasks().length === 0)
    expect(textOf(await use('list_instances', {}, BOB))).not.toContain('of alice')
    expect(textOf(await use('list_instances', {}, ANONYMOUS))).not.toContain('of somebody')
  })

  it('does not repeat what the tool returns itself', async () => {
    const { use, launch, end, manager } = await inProcess()
    const id = await launch()
    end(id, 'the answer')
    await until(() => manager.getTask(id)?.status === 'completed')
    expect(textOf(await use('check_async_tasks', { task_id: id })).split('the answer')).toHaveLength(2)
    expect(textOf(await use('list_instances'))).not.toContain('the answer')
  })

  it('carries no result of a task whose handle the client polls, until the handle has expired', async () => {
    const { call, use, get, end, manager, clock } = await inProcess()
    const { result } = await call('task', { subagent_name: 'slow', goal_prompt: 'g' })
    const id = result['taskId'] as string
    end(id, 'the answer')
    await until(() => manager.getTask(id)?.status === 'completed')
    expect(textOf(await use('list_instances'))).not.toContain('the answer')
    expect(JSON.stringify((await get(id)).result)).toContain('the answer')
    expect(manager.getTask(id)?.delivery).toBe('delivered')

    const other = (await call('task', { subagent_name: 'slow', goal_prompt: 'g' })).result['taskId'] as string
    end(other, 'nobody asked')
    await until(() => manager.getTask(other)?.status === 'completed')
    clock.advance(3_600_000)
    await get(other)
    expect(textOf(await use('list_instances'))).toContain('nobody asked')
  })
})

describe('over stdio', () => {
  it('A5: a wait that the client cancels leaves the result for the next answer', async () => {
    const { say, ask, initialize, end, answers } = overStdio()
    await initialize()
    const launched = await ask(1, 'tools/call', {
      name: 'task',
      arguments: { subagent_name: 'slow', goal_prompt: 'g', async: true },
    })
    const id = launched.structuredContent!['task_id'] as string
    say({ id: 2, method: 'tools/call', params: { name: 'wait_for_async_tasks', arguments: {} } })
    say({ method: 'notifications/cancelled', params: { requestId: 2 } })
    await ask(3, 'ping', {})
    end(id, 'the answer')
    const next = await ask(4, 'tools/call', { name: 'wait_for_async_tasks', arguments: { task_ids: [id] } })
    expect(textOf(next)).toContain('the answer')
    expect(answers.has(2)).toBe(false)
  })
})
