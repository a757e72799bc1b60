/** A server with a store, killed and started again: what it says of the results, who gets them, and when they are confirmed. */
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from '../../../src/index.js'
import { ANONYMOUS } from '../../../src/mcp/callers.js'
import { openExchange } from '../../../src/mcp/exchange.js'
import { toStartedProgram } from '../../../src/engine/reap.js'
import { ClientSlots } from '../../../src/mcp/client-slots.js'
import { createMcpServer } from '../../../src/mcp/mcp-server.js'
import type { AgentConfigInput } from '../../../src/protocol/agent-config.js'
import { readStore, type StoreContents } from '../../../src/store/index.js'
import { isAlive, until } from '../../support/lifelines.js'
import { controlled, textOf, type Called } from './clients.js'
import { ALICE, BOB, setUpApp } from './wire.js'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-mcp-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'store')
}

/** What the next process finds when this one is killed now. */
function afterCrash(folder: string): string {
  const copy = newFolder()
  cpSync(folder, copy, { recursive: true })
  return copy
}

const MARKS = ['delivery_ids', 'possible_repeats', 'earlier_session'] as const

function serve(store: string, config: AgentConfigInput = {}) {
  const subagent = controlled()
  const host = setUpApp({ slow: subagent.run }, { store, session: 'the key', ...config })
  onTestFinished(() => host.app.close())
  const use = async (name: string, args: object = {}, caller = ALICE): Promise<Called> =>
    (await host.call(name, args, {}, caller)).result as unknown as Called
  const launch = async (caller = ALICE): Promise<string> =>
    (await use('task', { subagent_name: 'slow', goal_prompt: 'g', async: true }, caller)).structuredContent![
      'task_id'
    ] as string
  const end = async (id: string, message: string): Promise<void> => {
    subagent.end(id, message)
    await until(() => host.manager.getTask(id)?.status === 'completed')
    await flushed()
  }
  /** What has been changed is written at the end of the tick. */
  const flushed = (): Promise<void> => until(() => host.manager.registry.persistence!.isSettled())
  const contents = (): StoreContents => {
    const [name] = readdirSync(store).filter((file) => file.endsWith('.db'))
    return readStore(join(store, name!))
  }
  return { ...host, use, launch, end, flushed, contents }
}

const marksOf = ({ structuredContent = {} }: Called) =>
  Object.fromEntries(MARKS.flatMap((name) => (name in structuredContent ? [[name, structuredContent[name]]] : [])))

describe('the next server of a session', () => {
  it('K4: delivers what was owed once, and says that an earlier session left it', async () => {
    const folder = newFolder()
    const first = serve(folder)
    const id = await first.launch()
    await first.end(id, 'the answer')
    const next = serve(afterCrash(folder))
    const told = await next.use('list_instances')
    expect(textOf(told)).toContain('the answer')
    expect(textOf(told)).toContain(`From an earlier server of this session: ${id}.`)
    expect(told.structuredContent!['text']).toContain(`From an earlier server of this session: ${id}.`)
    expect(marksOf(told)).toEqual({ delivery_ids: [expect.any(String)], earlier_session: [id] })
    await next.flushed()
    expect(next.contents().deliveries).toMatchObject([{ id: (marksOf(told)['delivery_ids'] as string[])[0] }])
    expect(textOf(await next.use('list_instances'))).not.toContain('the answer')
  })

  it('K7: reports that what ran was interrupted, whether the server was killed or ended', async () => {
    const folder = newFolder()
    const first = serve(folder)
    const id = await first.launch()
    const killed = afterCrash(folder)
    await first.app.close()
    for (const left of [killed, folder]) {
      const next = serve(left)
      expect(next.manager.getTask(id)).toMatchObject({ status: 'failed', delivery: 'owed' })
      const told = await next.use('wait_for_async_tasks')
      expect(textOf(told)).toContain(id)
      expect(marksOf(told)['earlier_session']).toEqual([id])
    }
  })

  it('marks tasks of an earlier session in lists, details and resources, and no others', async () => {
    const folder = newFolder()
    const first = serve(folder)
    const id = await first.launch()
    await first.end(id, 'the answer')
    const next = serve(afterCrash(folder))
    expect(JSON.stringify((await next.send('tools/list')).result)).toMatch(/delivery_ids.*earlier_session/)
    expect(marksOf(await next.use('check_async_tasks'))).toMatchObject({ earlier_session: [id] })
    const own = await next.launch()
    // Its result was delivered with the first list.
    expect(marksOf(await next.use('check_async_tasks'))).toEqual({})
    expect(marksOf(await next.use('check_async_tasks', { task_id: id }))).toEqual({ earlier_session: [id] })
    expect(marksOf(await next.use('check_async_tasks', { task_id: own }))).toEqual({})
    const { contents } = (await next.send('resources/read', { uri: `task://${id}` })).result as {
      contents: { text: string }[]
    }
    expect(JSON.parse(contents[0]!.text)).toMatchObject({ id, isOfEarlierSession: true })
  })

  it('resolves the handles of the one before, for their owner, until they expire', async () => {
    const folder = newFolder()
    const first = serve(folder)
    const handle = async () =>
      (await first.call('task', { subagent_name: 'slow', goal_prompt: 'g' })).result['taskId'] as string
    const [ended, running] = [await handle(), await handle()]
    await first.end(ended, 'the answer')
    const next = serve(afterCrash(folder))
    expect((await next.get(ended, undefined, BOB)).error).toMatchObject({ code: -32602 })
    const got = (await next.get(ended)).result
    expect(got).toMatchObject({ status: 'completed', result: { structuredContent: { earlier_session: [ended] } } })
    expect(JSON.stringify(got)).toContain('the answer')
    expect((await next.get(running)).result).toMatchObject({ status: 'completed', result: { isError: true } })
    expect(next.manager.getPendingNotifications()).toEqual([])
    expect(next.contents().deliveries.map(({ state }) => state)).toContain('accepted')
    expect((await next.get(ended)).result).toEqual(got)
    next.clock.advance(3_600_000)
    expect((await next.get(ended)).error).toMatchObject({ code: -32602 })
  })

  it('forgets what was delivered an hour ago, and nothing that is owed', async () => {
    const folder = newFolder()
    const first = serve(folder, { tasks: { retentionMs: 0 } })
    const [told, owed] = [await first.launch(), await first.launch()]
    await first.end(told, 'told')
    await first.use('list_instances')
    await first.use('list_instances')
    await first.end(owed, 'owed')
    const next = serve(afterCrash(folder), { tasks: { retentionMs: 0 } })
    expect(next.manager.getAllTasks().map(({ id }) => id)).toEqual([owed])
  })

  it('forgets the results of anonymous clients after an hour: nobody would be told', async () => {
    const folder = newFolder()
    const first = serve(folder)
    // A call that waits for its task is moved to the background.
    const calling = first.use('task', { subagent_name: 'slow', goal_prompt: 'g' }, ANONYMOUS)
    await until(() => first.manager.getRunningTasks().length === 1)
    const { id } = first.manager.getRunningTasks()[0]!
    first.manager.detachTask(id)
    expect(textOf(await calling)).toContain(
      'To get its result, call wait_for_async_tasks with its full ID in task_ids.',
    )
    await first.end(id, 'the answer')
    expect(serve(afterCrash(folder)).manager.getTask(id)?.status).toBe('completed')
    const later = serve(afterCrash(folder), { tasks: { retentionMs: 0 } })
    expect(later.manager.getTask(id)).toBeUndefined()
  })
})

describe('an answer with results', () => {
  it('K5: is confirmed by the answer to the next call, and a possible repeat until then', async () => {
    const folder = newFolder()
    const first = serve(folder)
    const id = await first.launch()
    await first.end(id, 'the answer')
    const told = await first.use('list_instances')
    await first.flushed()
    const unconfirmed = serve(afterCrash(folder))
    await unconfirmed.manager.recovered
    const again = await unconfirmed.use('list_instances')
    expect(textOf(again)).toContain('the answer')
    expect(marksOf(again)).toMatchObject({ possible_repeats: [id], earlier_session: [id] })
    expect(marksOf(again)['delivery_ids']).toEqual(marksOf(told)['delivery_ids'])

    await first.use('list_instances')
    await first.flushed()
    expect(first.contents().deliveries).toEqual([])
    const confirmed = serve(afterCrash(folder))
    expect(textOf(await confirmed.use('list_instances'))).not.toContain('the answer')
  })

  it('K5: with the result of its tool and another one confirms neither', async () => {
    const folder = newFolder()
    const first = serve(folder)
    const [one, two] = [await first.launch(), await first.launch()]
    await first.end(one, 'the first')
    await first.end(two, 'the second')
    const told = await first.use('wait_for_async_tasks', { task_ids: [one] })
    expect([textOf(told).includes('the first'), textOf(told).includes('the second')]).toEqual([true, true])
    expect(marksOf(told)['delivery_ids']).toHaveLength(2)
    await first.flushed()
    expect(
      first
        .contents()
        .deliveries.flatMap(({ taskIds }) => taskIds)
        .sort(),
    ).toEqual([one, two].sort())
    const next = serve(afterCrash(folder))
    await next.manager.recovered
    const again = [marksOf(await next.use('list_instances')), marksOf(await next.use('list_instances'))]
    expect(again.map((marks) => marks['possible_repeats'])).toEqual([[one], [two]])
    expect(again.flatMap((marks) => marks['delivery_ids'])).toEqual(marksOf(told)['delivery_ids'])
  })

  it('K5: is not confirmed by the answer to a call that was made before it arrived', async () => {
    const { app, launch, end, contents, flushed } = serve(newFolder())
    const id = await launch()
    await end(id, 'the answer')
    const exchanges = [openExchange(), openExchange(), openExchange()]
    const answers: unknown[] = []
    const server = createMcpServer(app, ALICE, 'none', ({ mcpReq }) => exchanges[Number(mcpReq.id)]!)
    const transport = {
      start: () => Promise.resolve(),
      close: () => Promise.resolve(),
      send: (message: unknown) => Promise.resolve(void answers.push(message)),
      onmessage: undefined as ((message: object) => void) | undefined,
    }
    await server.connect(transport)
    const call = async (at: number): Promise<void> => {
      const params = { name: 'list_instances', arguments: {} }
      transport.onmessage!({ jsonrpc: '2.0', id: at, method: 'tools/call', params })
      await until(() => answers.length > at)
    }
    await call(0)
    await call(1)
    exchanges[0]!.end(true)
    exchanges[1]!.end(true)
    await flushed()
    expect(contents().deliveries).toMatchObject([{ state: 'accepted', taskIds: [id] }])
    await call(2)
    exchanges[2]!.end(true)
    await flushed()
    expect(contents().deliveries).toEqual([])
  })

  it('K10: keeps its own result when no other result can be stored as sent, and these stay owed', async () => {
    const folder = newFolder()
    const { use, launch, end, logged, manager } = serve(folder)
    const id = await launch()
    await end(id, 'the answer')
    rmSync(folder, { recursive: true })
    const told = await use('list_instances')
    expect(textOf(told)).toBe('No instances are configured.')
    expect(manager.getTask(id)?.delivery).toBe('owed')
    expect(logged.join('\n')).toMatch(/store: .*the file was removed/)
    const refused = await use('task', { subagent_name: 'slow', goal_prompt: 'g', async: true })
    expect(textOf(refused)).toMatch(/-1\.db: the file was removed while it was open/)
  })
})

describe('the slots of a client', () => {
  it('are taken by its programs that survived', async () => {
    const manager = new AsyncTaskManager()
    manager.registerTask({ id: 'survivor', subagentName: 'build', goalPrompt: 'g', owner: 'alice' })
    const slots = new ClientSlots(manager, { maxAsyncTasks: 1, maxWaiting: 0, maxCommands: 0 }, new Set(['survivor']))
    const launch = () =>
      slots.launch('background', 'alice', () => Promise.resolve({ llmContent: 'launched', returnDisplay: '' }))
    expect((await launch()).llmContent).toContain('Max async tasks (1) reached')
    manager.completeTask('survivor', {})
    expect((await launch()).llmContent).toBe('launched')
  })
})

describe('a server that ends in order', () => {
  it('K8, K13: leaves a program that survives it, and the next one goes on with it', async () => {
    const folder = newFolder()
    const build = { name: 'build', description: 'd', command: 'sleep', args: ['60'], survivesHost: true, graceMs: 100 }
    const first = serve(folder, { subagents: [build] })
    const launched = await first.use('task', { subagent_name: 'build', goal_prompt: 'g', async: true })
    const id = launched.structuredContent!['task_id'] as string
    const file = readdirSync(folder).find((name) => name.endsWith('-1.db'))!
    const programOf = () => toStartedProgram(readStore(join(folder, file)).tasks[0]?.run?.['program'])
    await until(() => programOf() !== undefined)
    const { pid } = programOf()!.identity
    onTestFinished(() => void process.kill(-pid, 'SIGKILL'))
    await first.app.close()
    expect(isAlive(pid)).toBe(true)
    const next = serve(folder, { subagents: [build] })
    expect(textOf(await next.use('check_async_tasks', { task_id: id }))).toContain('running')
    await next.app.close()
    expect(isAlive(pid)).toBe(true)
  })
})

describe('settings', () => {
  it.each([
    [
      { subagents: [{ name: 'a', description: 'd', command: 'sh', survivesHost: true }] },
      /subagents\[0\]\.survivesHost/,
    ],
    [{ session: 'key' }, /Setting session: got "key", expected no value without a store/],
  ])('that need a store are refused without one', (config, problem) => {
    expect(() => setUpApp({}, config)).toThrow(problem)
  })
})

describe('without a store', () => {
  it('answers have no marks, and their schemas have none', async () => {
    const subagent = controlled()
    const { app, call, send, manager } = setUpApp({ slow: subagent.run })
    onTestFinished(() => app.close())
    const launched = await call('task', { subagent_name: 'slow', goal_prompt: 'g', async: true }, {})
    const id = (launched.result as unknown as Called).structuredContent!['task_id'] as string
    subagent.end(id, 'the answer')
    await until(() => manager.getTask(id)?.status === 'completed')
    expect(marksOf((await call('list_instances', {}, {})).result as unknown as Called)).toEqual({})
    expect(JSON.stringify((await send('tools/list')).result)).not.toMatch(/earlier_session|delivery_ids/)
  })
})
