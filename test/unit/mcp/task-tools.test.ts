/** The tools of the server, for clients without the Tasks extension: texts, schemas, and which tasks they can see. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Subagent, SubagentRunner } from '../../../src/tools/subagents.js'
import { settle } from '../tools/tool-host.js'
import { ANONYMOUS } from '../../../src/mcp/callers.js'
import { until } from '../../support/lifelines.js'
import { controlled, overStdio, type Called } from './clients.js'
import { ALICE, BOB, launchAnonymous, send, setUpApp } from './wire.js'

const apps: { close(): Promise<void> }[] = []

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()))
})

interface Listed {
  readonly name: string
  readonly annotations: Record<string, boolean>
  readonly inputSchema: Parameters<typeof z.fromJSONSchema>[0]
  readonly outputSchema: Parameters<typeof z.fromJSONSchema>[0]
}

const hanging: SubagentRunner = (_request, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))

const reads: Subagent = {
  run: async (_request, { messages }) => {
    for await (const message of messages) return { final_message: `read ${message}` }
    return {}
  },
  takesMessages: true,
}

async function setUp(config = {}) {
  const host = setUpApp(
    {
      quick: ({ goal }, context) => {
        context.append(`working on ${goal}\n`)
        return { final_message: `did ${goal}` }
      },
      wordy: () => ({ final_message: 'x'.repeat(50_000) }),
      asks: async (_request, context) => ({ final_message: JSON.stringify(await context.ask('Sure?')) }),
      hangs: hanging,
      reads,
    },
    config,
  )
  apps.push(host.app)
  const { tools } = (await send(host.app, ALICE, 'tools/list')).result as { tools: Listed[] }
  const schemas = new Map(tools.map((tool) => [tool.name, z.fromJSONSchema(tool.outputSchema)]))
  /** Calls a tool, and checks its structured content by the schema that was listed. */
  const use = async (name: string, args: object = {}, caller = ALICE) => {
    const { result, error } = await host.call(name, args, {}, caller)
    if (error !== undefined) throw new Error(error.message)
    const {
      content,
      structuredContent,
      isError = false,
    } = result as {
      content: { text: string }[]
      structuredContent?: Record<string, unknown>
      isError?: boolean
    }
    if (!isError) schemas.get(name)!.parse(structuredContent)
    await settle()
    return { text: content[0]!.text, structured: structuredContent ?? {}, isError }
  }
  const launch = async (subagent: string, caller = ALICE) => {
    const { structured } = await use('task', { subagent_name: subagent, goal_prompt: 'it', async: true }, caller)
    return structured['task_id'] as string
  }
  return { ...host, tools, use, launch }
}

describe('the list of tools', () => {
  it('has the tools with input and output schemas, and none that starts or destroys something is read-only', async () => {
    const { tools } = await setUp()
    const hints = new Map(tools.map(({ name, annotations }) => [name, annotations]))
    expect(hints.get('task')).toEqual({ readOnlyHint: false, destructiveHint: true })
    expect(hints.get('check_async_tasks')).toMatchObject({ readOnlyHint: true })
    for (const { readOnlyHint, destructiveHint } of hints.values()) {
      expect(readOnlyHint && destructiveHint).not.toBe(true)
    }
    for (const { inputSchema, outputSchema } of tools) {
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
      expect(outputSchema).toMatchObject({ type: 'object', required: expect.arrayContaining(['text']) as unknown })
    }
  })

  it('F12: is 14 kB of JSON at most in its fullest configuration, without propertyNames', async () => {
    const store = mkdtempSync(join(tmpdir(), 'agent-tasks-mcp-'))
    onTestFinished(() => rmSync(store, { recursive: true, force: true }))
    const subagents = [{ name: 'tests', description: 'Runs the tests.', command: 'x', cwdPerCall: true }]
    const { ask, initialize } = overStdio({
      subagents,
      store,
      instances: [{ id: 'browser', url: 'http://127.0.0.1:9/' }],
      commands: { allow: ['x'] },
      schedules: {},
      monitors: { files: ['logs'] },
    })
    await initialize()
    const { tools } = (await ask(1, 'tools/list', {})) as unknown as { tools: object[] }
    const json = JSON.stringify(tools)
    expect(json).toMatch(
      /"cwd":.*earlier_session.*"taskSupport".*submit_commands.*run_command.*monitor.*list_instances/,
    )
    expect(json.length).toBeLessThanOrEqual(14_000)
    expect(json).not.toContain('propertyNames')
    // Some clients refuse a tool with a field of several types, one of which is an object.
    for (const { inputSchema } of tools as { inputSchema: { properties: object } }[]) {
      for (const { type, anyOf = [] } of Object.values(inputSchema.properties) as { type?: unknown; anyOf?: [] }[]) {
        expect(Array.isArray(type) ? type : anyOf.map((each: { type?: unknown }) => each.type)).not.toContain('object')
      }
    }
  })

  it('P2: an answer is listed as a text, which may be JSON, and a value of another type is taken, too', async () => {
    const schema = { type: 'object', properties: { publish: { type: 'boolean' }, tag: { type: 'string' } } }
    const run: SubagentRunner = async (_request, context) => {
      const { content } = await context.ask({ message: 'Publish?', schema })
      return { final_message: JSON.stringify(content) }
    }
    const { manager, call } = setUpApp({ asks: run })
    for (const answer of ['{"publish":true,"tag":"next"}', { publish: true, tag: 'next' }]) {
      await call('task', { subagent_name: 'asks', goal_prompt: 'g', async: true }, {})
      await until(() => manager.getRunningTasks()[0]?.questions !== undefined)
      const { id } = manager.getRunningTasks()[0]!
      await call('answer_async_task', { task_id: id, answer }, {})
      await until(() => manager.getTask(id)?.status === 'completed')
      expect(manager.getTask(id)).toMatchObject({
        output: { final_message: '{"publish":true,"tag":"next"}' },
      })
    }
  })

  it('P2: a launch says how the result arrives, and does not suggest to poll', async () => {
    const { call } = setUpApp({ slow: controlled().run }, { commands: { allow: [process.execPath] } })
    const launches = [
      ['task', { subagent_name: 'slow', goal_prompt: 'g' }],
      ['run_command', { command: process.execPath, args: ['--version'] }],
    ] as const
    for (const [name, args] of launches) {
      const { result } = await call(name, { ...args, async: true }, {})
      const text = (result as unknown as Called).content[0]!.text
      expect(text).toContain(
        'Its result comes with the answer to your next call of any tool of this server: do not poll for it.',
      )
      expect(text).not.toContain('check_async_tasks')
    }
  })

  it('F12: has what is configured: so have the instructions', async () => {
    const namesOf = async (config: object) => {
      const { ask, initialize } = overStdio(config)
      const { instructions } = (await initialize()) as unknown as { instructions: string }
      const { tools } = (await ask(1, 'tools/list', {})) as unknown as { tools: { name: string }[] }
      const names = ['run_command', 'submit_commands', 'list_instances']
      const listed = names.filter((name) => tools.some((tool) => tool.name === name))
      return { listed, starts: names.filter((name) => instructions.includes(name)) }
    }
    expect(await namesOf({})).toEqual({ listed: [], starts: [] })
    const commands = { allow: ['x'] }
    expect(await namesOf({ commands })).toEqual({ listed: ['run_command'], starts: ['run_command'] })
    const instances = [{ id: 'browser', url: 'http://127.0.0.1:9/' }]
    expect(await namesOf({ instances })).toEqual({
      listed: ['submit_commands', 'list_instances'],
      starts: ['submit_commands'],
    })
  })

  it('names the subagents in the description of task', async () => {
    const { tools } = await setUp()
    expect(JSON.stringify(tools[0])).toContain('- quick: Does quick')
  })

  it('has no other tool', async () => {
    const { call } = await setUp()
    expect((await call('nothing')).error).toMatchObject({ code: -32602, message: 'There is no tool "nothing".' })
  })
})

describe('the tools', () => {
  it('launch, check, read by cursor, and wait', async () => {
    const { use, launch } = await setUp()
    const id = await launch('quick')
    expect((await use('check_async_tasks')).structured).toMatchObject({ counts: { completed: 1, running: 0 } })
    const first = await use('read_task_output', { task_id: id, max_bytes: 7 })
    expect(first.text).toContain('working')
    expect(first.structured).toMatchObject({ start: 0, next_cursor: 7, remaining_bytes: 7 })
    const rest = await use('read_task_output', { task_id: id, cursor: first.structured['next_cursor'] })
    expect(rest.text).toContain(' on it')
    expect(rest.structured).toMatchObject({ remaining_bytes: 0 })
    const waited = await use('wait_for_async_tasks', { task_ids: [id] })
    expect(waited.structured).toMatchObject({ settled: [id], pending: [] })
    expect(waited.text).toContain('did it')
    expect((await use('check_async_tasks', { task_id: id })).structured).toMatchObject({
      task_id: id,
      status: 'completed',
    })
  })

  it('run in the foreground, with isError after a failure', async () => {
    const { use } = await setUp()
    const { text, structured } = await use('task', { subagent_name: 'quick', goal_prompt: 'it' })
    expect(text).toContain('did it')
    expect(structured).toMatchObject({ status: 'completed', async: false, timeout_seconds: 900 })
    expect(await use('task', { subagent_name: 'nobody', goal_prompt: 'it' })).toMatchObject({ isError: true })
  })

  it('cancel', async () => {
    const { use, launch, manager } = await setUp()
    const id = await launch('hangs')
    expect((await use('cancel_async_task', { task_id: id })).structured).toMatchObject({
      cancelled: true,
      status: 'cancelled',
    })
    expect(manager.getTask(id)?.status).toBe('cancelled')
    expect((await use('cancel_async_task', { task_id: id })).structured).toMatchObject({ cancelled: false })
  })

  it('do not cancel or answer in the read-only check_async_tasks', async () => {
    const { use, launch, manager } = await setUp()
    const id = await launch('hangs')
    const { isError, text } = await use('check_async_tasks', { task_id: id, action: 'cancel' })
    expect(isError).toBe(true)
    expect(text).toContain('expected one of "list", "peek"')
    expect(manager.getTask(id)?.status).toBe('running')
  })

  it('F6: carry the question of a task once, and name the tool that answers it', async () => {
    const { call, manager } = await setUp()
    const textOf = async (name: string, args: object = {}) => JSON.stringify((await call(name, args, {})).result)
    const answers = [await textOf('task', { subagent_name: 'asks', goal_prompt: 'g', async: true })]
    await settle()
    for (let calls = 0; calls < 3; calls += 1) answers.push(await textOf('list_instances'))
    const asking = answers.filter((text) => text.includes('waits for an answer to question-1:'))
    expect(asking).toHaveLength(1)
    expect(asking[0]).toContain('Answer with answer_async_task')
    const [task] = manager.getRunningTasks()
    await call('answer_async_task', { task_id: task?.id, answer: 'yes' }, {})
  })

  it('F6: that show a question are not followed by a message that asks it', async () => {
    const { call, launch, use } = await setUp()
    const id = await launch('asks')
    expect(JSON.stringify((await call('check_async_tasks', { task_id: id }, {})).result)).not.toContain(
      'waits for an answer to',
    )
    expect(JSON.stringify((await call('list_instances', {}, {})).result)).not.toContain('question-1')
    const asked = await call('task', { subagent_name: 'asks', goal_prompt: 'g' }, {})
    expect(JSON.stringify(asked.result)).not.toContain('waits for an answer to')
    await use('cancel_async_task', { task_id: id })
  })

  it('F7: send a message to a task, or say why not', async () => {
    const { use, launch } = await setUp()
    const id = await launch('reads')
    expect((await use('send_to_task', { task_id: id, message: 'more' })).structured).toMatchObject({ sent: true })
    expect((await use('wait_for_async_tasks', { task_ids: [id] })).text).toContain('read more')
    const deaf = await launch('hangs')
    expect(await use('send_to_task', { task_id: deaf, message: 'more' })).toMatchObject({ isError: true })
  })

  it('U1: continue a task that has ended, within what its client may have, and only for its client', async () => {
    const { use, launch, manager } = await setUp({ maxAsyncTasks: 2 })
    const id = await launch('quick')
    expect(await use('send_to_task', { task_id: id, message: 'more' }, BOB)).toMatchObject({ isError: true })
    const { structured } = await use('send_to_task', { task_id: id, message: 'more' })
    expect(structured).toMatchObject({ sent: true })
    const next = String(structured['task_id'])
    expect(manager.getTask(next)).toMatchObject({ owner: 'alice', continues: id, goalPrompt: 'more' })
    expect((await use('wait_for_async_tasks', { task_ids: [next] })).text).toContain('did more')
    const hanging = await launch('hangs')
    await use('cancel_async_task', { task_id: hanging })
    await settle()
    for (const _ of [1, 2]) await launch('hangs')
    const refused = await use('send_to_task', { task_id: id, message: 'm' })
    expect(refused).toMatchObject({ isError: true })
    expect(refused.text).toContain('Max async tasks (2) reached')
    for (const task of manager.getRunningTasks()) manager.cancelTask(task.id)
    await settle()
    for (const _ of [1, 2]) await use('send_to_task', { task_id: hanging, message: 'again' })
    // The second one was refused, the first counts.
    expect(manager.getRunningTasks('alice')).toHaveLength(1)
    await launch('hangs')
    expect(await use('send_to_task', { task_id: id, message: 'm' })).toMatchObject({ isError: true })
  })

  it('answer the question of a task, as check_async_tasks says', async () => {
    const { use, launch, manager } = await setUp()
    const id = await launch('asks')
    const { text, structured } = await use('check_async_tasks', { task_id: id })
    expect(structured).toMatchObject({ is_asking: true })
    expect(text).toContain('Answer with answer_async_task')
    expect((await use('answer_async_task', { task_id: id, answer: 'yes' })).structured).toMatchObject({
      answered: true,
    })
    expect(manager.getTask(id)?.output?.final_message).toContain('yes')
  })

  it('bound their text and their structured content', async () => {
    const { use, launch } = await setUp({ maxMessageChars: 1000 })
    const id = await launch('wordy')
    for (const [name, args] of [
      ['check_async_tasks', { task_id: id }],
      ['wait_for_async_tasks', {}],
      ['read_task_output', { task_id: id, part: 'result', max_bytes: 1e9 }],
      ['task', { subagent_name: 'wordy', goal_prompt: 'it' }],
    ] as const) {
      const { text, structured } = await use(name, args)
      expect([name, text.length < 1500, JSON.stringify(structured).length < 2500]).toEqual([name, true, true])
    }
  })

  it('name the tool and the field of an invalid argument', async () => {
    const { use } = await setUp()
    const { text, isError } = await use('cancel_async_task', { task_id: 7 })
    expect([isError, text]).toEqual([
      true,
      'Invalid parameters for cancel_async_task: params.task_id: got 7, expected a string.',
    ])
  })
})

describe('an owner', () => {
  it('cannot see or change the tasks of another', async () => {
    const { use, launch, manager } = await setUp()
    const id = await launch('hangs')
    expect((await use('check_async_tasks', {}, BOB)).text).toBe('No async tasks.')
    for (const name of ['cancel_async_task', 'read_task_output', 'answer_async_task', 'check_async_tasks']) {
      const { isError } = await use(name, { task_id: id, ...(name === 'answer_async_task' && { answer: 'x' }) }, BOB)
      expect([name, isError]).toEqual([name, true])
    }
    expect(manager.getTask(id)?.status).toBe('running')
  })

  it('P3: that is anonymous launches nothing whose end it could not learn, and reads what to do', async () => {
    const { app } = await setUp({
      commands: { shell: true },
      schedules: {},
      monitors: {},
      instances: [{ id: 'a', url: 'http://127.0.0.1:9/' }],
    })
    const calls = [
      ['task', { subagent_name: 'hangs', goal_prompt: 'g', async: true }],
      ['run_command', { command: 'x', async: true }],
      ['run_command', { command: 'x &' }],
      ['submit_commands', { commands: [{ tool_name: 'x' }] }],
      ['schedule', { in_seconds: 60, message: 'm' }],
      ['monitor', { command: 'x', match: 'y' }],
    ] as const
    for (const [name, args] of calls) {
      const { result } = await send(app, ANONYMOUS, 'tools/call', { name, arguments: args })
      const { isError, content } = result as unknown as Called & { isError: boolean }
      expect([name, isError, content[0]!.text]).toEqual([
        name,
        true,
        expect.stringMatching(/anonymous.*async: false.*Authorization: Bearer/) as unknown,
      ])
    }
    expect(app.backend.manager.getAllTasks()).toEqual([])
    const answered = { name: 'task', arguments: { subagent_name: 'quick', goal_prompt: 'g' } }
    expect((await send(app, ANONYMOUS, 'tools/call', answered)).result).not.toHaveProperty('isError')
  })

  it('that is anonymous needs the full id of a task, and gets no list', async () => {
    const { app, use, launch } = await setUp()
    const id = await launchAnonymous(app, 'hangs')
    const other = await launch('hangs')
    const list = await use('check_async_tasks', {}, ANONYMOUS)
    expect([list.isError, list.text.includes(id)]).toEqual([true, false])
    expect((await use('wait_for_async_tasks', { timeout_seconds: 0 }, ANONYMOUS)).isError).toBe(true)
    for (const task_id of [id.slice(0, -1), 'hangs', other]) {
      expect((await use('check_async_tasks', { task_id }, ANONYMOUS)).isError).toBe(true)
    }
    expect((await use('wait_for_async_tasks', { task_ids: [id, other], timeout_seconds: 0 }, ANONYMOUS)).isError).toBe(
      true,
    )
    expect((await use('check_async_tasks', { task_id: id }, ANONYMOUS)).structured).toMatchObject({ status: 'running' })
    expect((await use('cancel_async_task', { task_id: id }, ANONYMOUS)).structured).toMatchObject({ cancelled: true })
  })
})

describe('resources', () => {
  it('are the tasks of their owner, each with its output and result', async () => {
    const { app, launch } = await setUp()
    const id = await launch('quick')
    const uri = `task://${id}`
    const { resources } = (await send(app, ALICE, 'resources/list')).result as { resources: object[] }
    expect(resources).toMatchObject([{ uri, name: id, title: 'quick: it', description: 'Background task, completed' }])
    const { contents } = (await send(app, ALICE, 'resources/read', { uri })).result as { contents: { text: string }[] }
    expect(JSON.parse(contents[0]!.text)).toMatchObject({
      id,
      status: 'completed',
      output: { text: 'working on it\n', remainingBytes: 0 },
      result: expect.stringContaining('did it') as unknown,
    })
    const templates = (await send(app, ALICE, 'resources/templates/list')).result as { resourceTemplates: object[] }
    expect(templates.resourceTemplates).toMatchObject([{ uriTemplate: 'task://{task_id}' }])
    for (const [caller, asked] of [
      [BOB, uri],
      [ALICE, 'task://nobody'],
      [ALICE, 'file:///etc/passwd'],
      [ALICE, 'task://%'],
    ] as const) {
      expect((await send(app, caller, 'resources/read', { uri: asked })).error?.code).toBe(-32602)
    }
    expect((await send(app, BOB, 'resources/list')).result).toMatchObject({ resources: [] })
    expect((await send(app, ANONYMOUS, 'resources/list')).result).toMatchObject({ resources: [] })
  })

  it('are listed in pages', async () => {
    const { app, manager } = await setUp()
    for (let i = 0; i < 150; i += 1) {
      manager.registerTask({ id: `t${i}`, subagentName: 's', goalPrompt: 'g', owner: 'alice' })
    }
    const first = (await send(app, ALICE, 'resources/list')).result as { resources: object[]; nextCursor: string }
    const { resources, nextCursor } = (await send(app, ALICE, 'resources/list', { cursor: first.nextCursor }))
      .result as typeof first
    expect([first.resources.length, resources.length, nextCursor]).toEqual([100, 50, undefined])
    expect((await send(app, ALICE, 'resources/list', { cursor: 'x' })).error?.code).toBe(-32602)
    for (const cursor of ['-1', '1.5']) {
      expect((await send(app, ALICE, 'resources/list', { cursor })).error?.code).toBe(-32602)
    }
    // A page that is full and the last one names no further one.
    const last = (await send(app, ALICE, 'resources/list', { cursor: '50' })).result as typeof first
    expect([last.resources.length, last.nextCursor]).toEqual([100, undefined])
  })
})
