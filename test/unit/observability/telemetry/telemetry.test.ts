/** Traces and metrics of a real OpenTelemetry SDK. */
import { Client } from '@modelcontextprotocol/client'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { context, propagation, SpanKind, trace } from '@opentelemetry/api'
import { Subject } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager } from '../../../../src/async-tasks/manager.js'
import { connectInstance } from '../../../../src/client/connect-instance.js'
import { TaskManager } from '../../../../src/command-tasks/task-manager.js'
import { createAgentTasks } from '../../../../src/host/agent-tasks.js'
import { InstanceManager } from '../../../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../../../src/command-tasks/instances/local-instance.js'
import { mcpInstance } from '../../../../src/command-tasks/instances/mcp-instance.js'
import { startMcpHttpServer } from '../../../../src/mcp/http.js'
import { processRunner } from '../../../../src/runners/process-runner.js'
import { startTaskServer } from '../../../../src/server/start-task-server.js'
import { memoryStore } from '../../../../src/store/memory-store.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'
import { createTelemetry, type Telemetry } from '../../../../src/observability/telemetry/index.js'
import type { SubagentRunner } from '../../../../src/tools/subagents.js'
import { packageVersion } from '../../../../src/system/version.js'
import { until } from '../../../support/lifelines.js'
import { hasFailed, lineOf, recordTelemetry } from './recorded.js'

const GOAL = 'the secret goal'

function agentWith(telemetry: Telemetry, run: SubagentRunner) {
  const agent = createAgentTasks({ telemetry, subagents: { helper: run } })
  onTestFinished(() => agent.dispose())
  return agent
}

it('F12: its scope has the name and the version of the package', async () => {
  const { telemetry, span, scopes } = recordTelemetry()
  const { tools } = agentWith(telemetry, () => 'done')
  await tools.task.execute({ subagent_name: 'helper', goal_prompt: GOAL })
  const scope = { name: 'agent-tasks', version: packageVersion }
  expect(span('invoke_agent helper').instrumentationScope).toMatchObject(scope)
  expect(await scopes()).toEqual([expect.objectContaining(scope)])
})

describe('a subagent', () => {
  it('F12: is a span invoke_agent in the span of the tool call that started it, with the names of the conventions', async () => {
    const { telemetry, inSpan, span, spans } = recordTelemetry()
    const { tools } = agentWith(telemetry, () => ({ final_message: 'the secret answer' }))
    const input = { subagent_name: 'helper', goal_prompt: GOAL }
    await inSpan('turn', () => tools.task.execute(input, { toolCallId: 'call-1' }))
    await until(() => spans().length === 3)
    expect(lineOf(spans(), 'invoke_agent helper')).toEqual(['turn', 'execute_tool task', 'invoke_agent helper'])
    const { attributes, kind, parentSpanContext } = span('invoke_agent helper')
    expect(attributes).toEqual({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'helper',
      'gen_ai.agent.id': expect.stringMatching(/^helper-/) as unknown,
      'agent_tasks.task.id': expect.stringMatching(/^helper-/) as unknown,
      'agent_tasks.attempt': 1,
    })
    expect(kind).toBe(SpanKind.INTERNAL)
    // A span with a remote parent would be shown as the entry of another process.
    expect(parentSpanContext?.isRemote).not.toBe(true)
    expect(span('execute_tool task').attributes).toEqual({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'task',
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': 'call-1',
    })
  })

  it('F12: of a program is a span execute_tool, with its command line only where that was asked for', async () => {
    for (const captureContent of [false, true]) {
      const { telemetry, inSpan, span, spans } = recordTelemetry({ captureContent })
      const { tools, dispose } = createAgentTasks({ telemetry, commands: { allow: ['echo'] } })
      onTestFinished(() => dispose())
      await inSpan('turn', () => tools.run_command.execute({ command: 'echo', args: ['hello'] }))
      await until(() => spans().length === 3)
      expect(lineOf(spans(), 'execute_tool echo')).toEqual(['turn', 'execute_tool run_command', 'execute_tool echo'])
      expect(span('execute_tool echo').attributes).toEqual({
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'echo',
        'gen_ai.tool.type': 'function',
        'agent_tasks.task.id': expect.any(String) as unknown,
        'agent_tasks.attempt': 1,
        ...(captureContent && {
          'gen_ai.tool.call.arguments': '["echo","hello"]',
          'gen_ai.tool.call.result': expect.stringContaining('hello') as unknown,
        }),
      })
    }
  })

  it('F12: says nothing of prompts and outputs unless that was asked for', async () => {
    for (const captureContent of [false, true]) {
      const { telemetry, spans } = recordTelemetry({ captureContent })
      const { tools } = agentWith(telemetry, ({ goal }) =>
        goal === GOAL
          ? { final_message: 'the secret answer' }
          : Promise.reject(Object.assign(new Error('the secret error'), { name: 'DiskError' })),
      )
      for (const goal_prompt of [GOAL, 'fail, secretly']) {
        await tools.task.execute({ subagent_name: 'helper', goal_prompt })
      }
      await until(() => spans().length === 4)
      const shown = JSON.stringify(
        spans().map(({ name, attributes, status, events }) => [name, attributes, status, events]),
      )
      expect(shown.includes('secret')).toBe(captureContent)
      expect(shown).toContain('DiskError')
      const text = captureContent ? ['the secret goal', 'the secret answer', 'the secret error'] : []
      for (const part of text) expect(shown).toContain(part)
    }
  })

  it('F12: has at most 16,384 characters of each content', () => {
    const { telemetry, spans } = recordTelemetry({ captureContent: true })
    const [most, more] = ['x'.repeat(16_384), 'x'.repeat(16_385)]
    for (const text of [most, more]) {
      const run = telemetry.start({ type: 'invoke_agent', name: 'agent', input: text })
      run.end({ output: text, errorType: 'E', error: text })
      telemetry.start({ type: 'execute_tool', name: 'tool', input: text }).end({ output: text })
    }
    const [agent, tool, longAgent, longTool] = spans()
    const message = (role: string) => JSON.stringify([{ role, parts: [{ type: 'text', content: most }] }])
    for (const span of [agent, longAgent]) {
      expect(span?.attributes).toMatchObject({
        'gen_ai.input.messages': message('user'),
        'gen_ai.output.messages': message('assistant'),
      })
      expect(span?.status.message).toBe(most)
    }
    // The quotes of JSON count.
    for (const span of [tool, longTool]) {
      for (const field of ['arguments', 'result']) {
        expect(span?.attributes[`gen_ai.tool.call.${field}`]).toBe(`"${most.slice(1)}`)
      }
    }
  })

  it('that fails, is cancelled or exceeds its deadline has a kind of error, and the others have none', async () => {
    const { telemetry, spans, metrics } = recordTelemetry()
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ telemetry, clock, onError: () => undefined })
    onTestFinished(() => manager.dispose())
    const hanging = (_input: unknown, { signal }: { signal: AbortSignal }): Promise<never> =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
    const launch = (subagentName: string, run: Parameters<AsyncTaskManager['launch']>[1], more: object = {}) =>
      manager.launch({ subagentName, goalPrompt: 'g', ...more }, run)
    launch('works', () => ({}))
    launch('fails', () => Promise.reject(new TypeError('no')))
    launch('codes', () => Promise.reject(Object.assign(new Error('no'), { code: 'EXIT_3' })))
    const { id } = launch('cancelled', hanging)
    launch('late', hanging, { timeoutMs: 1000 })
    await until(() => spans().length === 3)
    manager.cancelTask(id)
    clock.advance(1000)
    await until(() => spans().length === 5)
    const errors: Record<string, unknown> = Object.fromEntries(
      spans().map((span) => [String(span.attributes['gen_ai.agent.name']), span.attributes['error.type']] as const),
    )
    expect(errors).toEqual({
      works: undefined,
      fails: 'TypeError',
      codes: 'EXIT_3',
      cancelled: 'cancelled',
      late: 'timeout',
    })
    expect(spans().filter(hasFailed)).toHaveLength(4)
    const durations = (await metrics()).get('gen_ai.invoke_agent.duration')
    expect(durations).toContainEqual({ 'gen_ai.agent.name': 'works', value: 1 })
    expect(durations).toContainEqual({ 'gen_ai.agent.name': 'late', 'error.type': 'timeout', value: 1 })
  })

  it('F12: that waits for a slot, and is run again, has a span for each run, in the trace that launched it', async () => {
    const { telemetry, inSpan, spans, metrics } = recordTelemetry()
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ telemetry, clock, maxAsyncTasks: 1, whenFull: 'queue' })
    onTestFinished(() => manager.dispose())
    let finish: () => void = () => undefined
    manager.launch(
      { subagentName: 'first', goalPrompt: 'g' },
      () => new Promise((resolve) => (finish = () => resolve({}))),
    )
    let runs = 0
    const run = () =>
      (runs += 1) === 1 ? Promise.reject(Object.assign(new Error('no'), { code: 'RATE_LIMITED' })) : Promise.resolve({})
    const retry = { attempts: 2, on: ['rate-limited'] } as const
    inSpan('turn', () => manager.launch({ subagentName: 'second', goalPrompt: 'g' }, { run, retry }))
    expect((await metrics()).get('agent_tasks.queued')).toEqual([{ 'agent_tasks.kind': 'task', value: 1 }])
    finish()
    await until(() => {
      clock.advance(60_000)
      return spans().filter(({ name }) => name === 'invoke_agent second').length === 2
    })
    const second = spans().filter(({ name }) => name === 'invoke_agent second')
    const turn = spans().find(({ name }) => name === 'turn')
    expect(second.map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual(
      [1, 2].map(() => turn?.spanContext().spanId),
    )
    expect(second.map(({ attributes }) => [attributes['agent_tasks.attempt'], attributes['error.type']])).toEqual([
      [1, 'RATE_LIMITED'],
      [2, undefined],
    ])
    expect((await metrics()).get('agent_tasks.retries')).toEqual([{ value: 1 }])
  })

  it('that is a program finds its span in TRACEPARENT', async () => {
    const { telemetry, span, spans } = recordTelemetry()
    const manager = new AsyncTaskManager({ telemetry })
    onTestFinished(() => manager.dispose())
    const run = processRunner({ command: process.execPath, args: ['-p', 'process.env.TRACEPARENT'] })
    const { id } = manager.launch({ subagentName: 'program', goalPrompt: 'g' }, run)
    await until(() => spans().length === 1)
    const { traceId, spanId } = span('invoke_agent program').spanContext()
    expect(manager.getTask(id)?.output).toEqual({ final_message: `00-${traceId}-${spanId}-01` })
  })

  it('belongs to the trace that launched it, however late its run starts', async () => {
    const { telemetry, inSpan, spans } = recordTelemetry()
    const starts: (() => void)[] = []
    const manager = new AsyncTaskManager({
      telemetry,
      engine: {
        start: ({ run }) => {
          const settled = new Promise<void>((resolve) => starts.push(resolve))
            .then(() => run({ signal: new AbortController().signal }))
            .then((value) => ({ type: 'returned', value }) as const)
          return { settled, abort: () => undefined }
        },
      },
    })
    onTestFinished(() => manager.dispose())
    inSpan('turn', () => manager.launch({ subagentName: 'late', goalPrompt: 'g' }, () => ({})))
    context.with(trace.deleteSpan(context.active()), () => starts[0]!())
    await until(() => spans().length === 2)
    expect(lineOf(spans(), 'invoke_agent late')).toEqual(['turn', 'invoke_agent late'])
  })

  it.each([
    ['without a store', () => ({})],
    ['with a store', () => ({ store: memoryStore() })],
  ])(
    'H5: has the span and the baggage of its launch, and nothing of the run that it waited for, %s',
    async (_, given) => {
      const { telemetry, inSpan, spans } = recordTelemetry()
      const users: unknown[] = []
      const run = async (): Promise<string> => {
        await Promise.resolve()
        users.push(propagation.getActiveBaggage()?.getEntry('user')?.value)
        return 'done'
      }
      const tasks = createAgentTasks({
        ...given(),
        telemetry,
        maxAsyncTasks: 1,
        whenFull: 'queue',
        subagents: { first: run, second: run, third: run },
      })
      onTestFinished(() => tasks.dispose())
      const as = <T>(user: string, work: () => T): T => {
        const baggage = propagation.createBaggage({ user: { value: user } })
        return context.with(propagation.setBaggage(context.active(), baggage), work)
      }
      await Promise.all([
        as('alice', () => inSpan('turn of alice', () => tasks.launch('first', 'g').result)),
        as('bob', () => tasks.launch('second', 'g').result),
        as('carol', () => inSpan('turn of carol', () => tasks.launch('third', 'g').result)),
      ])
      await until(() => spans().length === 5)
      expect(users).toEqual(['alice', 'bob', 'carol'])
      expect(lineOf(spans(), 'invoke_agent first')).toEqual(['turn of alice', 'invoke_agent first'])
      expect(lineOf(spans(), 'invoke_agent second')).toEqual(['invoke_agent second'])
      expect(lineOf(spans(), 'invoke_agent third')).toEqual(['turn of carol', 'invoke_agent third'])
    },
  )
})

describe('one trace', () => {
  it('F12: goes from a host over MCP to the run of a subagent, for clients of both generations', async () => {
    const { telemetry, inSpan, spans, span } = recordTelemetry()
    const server = await startMcpHttpServer({
      port: 0,
      telemetry,
      writeLog: () => undefined,
      subagents: { helper: { run: () => ({ final_message: 'done' }) } },
    })
    onTestFinished(() => server.close())
    const client = new FirstClient({ name: 'host', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(server.url)))
    onTestFinished(() => client.close())
    const _meta = await inSpan('turn', () => Promise.resolve({ ...telemetry.current() }))
    const call = { name: 'task', arguments: { subagent_name: 'helper', goal_prompt: GOAL }, _meta }
    await client.callTool(call)
    await until(() => spans().length === 3)
    expect(lineOf(spans(), 'invoke_agent helper')).toEqual(['turn', 'execute_tool task', 'invoke_agent helper'])
    expect(span('execute_tool task')).toMatchObject({
      kind: SpanKind.SERVER,
      attributes: { 'mcp.method.name': 'tools/call' },
    })
    await client.experimental.tasks.callToolStream(call, undefined, { task: {} }).next()
    await until(() => spans().length === 5)
    expect(new Set(spans().map((each) => each.spanContext().traceId)).size).toBe(1)
  })

  it('F12: goes from a submission over HTTP through its lane to the tool of a worker', async () => {
    const { telemetry, inSpan, spans } = recordTelemetry()
    const server = await startTaskServer({
      port: 0,
      tasks: { wsPort: 0 },
      telemetry,
      env: {},
      writeLog: () => undefined,
    })
    onTestFinished(() => server.close())
    const inside: unknown[] = []
    const worker = await connectInstance(server.httpUrl, {
      telemetry,
      tools: [
        {
          name: 'build',
          execute: () => {
            inside.push(trace.getActiveSpan()?.spanContext().traceId)
            return 'built'
          },
        },
      ],
    })
    onTestFinished(() => worker.close())
    const traceparent = inSpan('turn', () => telemetry.current()!.traceparent)
    await fetch(`${server.httpUrl}/tasks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent },
      body: JSON.stringify({ task_name: 't', commands: [{ tool_name: 'build' }] }),
    })
    await until(() => spans().length === 3)
    expect(lineOf(spans(), 'execute_tool build')).toEqual(['turn', 'execute_tool build', 'execute_tool build'])
    expect(inside).toEqual([traceparent.split('-')[1]])
  })

  it('goes on in the MCP server of an instance', async () => {
    const { telemetry, inSpan, spans } = recordTelemetry()
    const server = await startMcpHttpServer({ port: 0, telemetry, writeLog: () => undefined })
    onTestFinished(() => server.close())
    const instances = new InstanceManager()
    instances.connect(await mcpInstance({ id: 'other', url: server.url }))
    onTestFinished(() => instances.dispose())
    const tasks = new TaskManager({ instances, telemetry })
    onTestFinished(() => tasks.dispose())
    inSpan('turn', () => tasks.submitTask({ task_name: 't', commands: [{ tool_name: 'list_instances' }] }))
    await until(() => spans().length === 3)
    const name = 'execute_tool list_instances'
    expect(lineOf(spans(), name)).toEqual(['turn', name, name])
  })

  it('begins anew when a message names none, or a malformed one', async () => {
    const { telemetry, spans } = recordTelemetry()
    const server = await startMcpHttpServer({ port: 0, telemetry, writeLog: () => undefined })
    onTestFinished(() => server.close())
    const client = new Client({ name: 'host', version: '1' })
    const { StreamableHTTPClientTransport: Transport } = await import('@modelcontextprotocol/client')
    await client.connect(new Transport(new URL(server.url)))
    onTestFinished(() => client.close())
    const zero = '0'.repeat(32)
    const bad = [
      '',
      'x',
      `00-${zero}-${'1'.repeat(16)}-01`,
      `ff-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
      7,
      'x'.repeat(10_000),
    ]
    for (const traceparent of bad) {
      await client.callTool({ name: 'list_instances', arguments: {}, _meta: { traceparent, tracestate: '=,=' } })
    }
    await until(() => spans().length === bad.length)
    expect(new Set(spans().map((each) => each.spanContext().traceId)).size).toBe(bad.length)
    expect(spans().every((each) => each.parentSpanContext === undefined)).toBe(true)
  })

  it('keeps the tracestate of vendors', () => {
    const { telemetry } = recordTelemetry()
    const parent = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'rojo=1,congo=2' }
    const operation = telemetry.start({ type: 'execute_tool', name: 'x', parent })
    expect(operation.trace).toMatchObject({ tracestate: 'rojo=1,congo=2' })
    expect(operation.trace?.traceparent).toMatch(/^00-a{32}-[0-9a-f]{16}-01$/)
    operation.end()
  })
})

describe('a command', () => {
  it('that fails or is cancelled has the code of its error', async () => {
    const { telemetry, spans, metrics } = recordTelemetry()
    const instances = new InstanceManager()
    const tools = [
      { name: 'fails', execute: () => Promise.reject(Object.assign(new Error('no'), { code: 'NO_DISK' })) },
      {
        name: 'hangs',
        execute: (_input: unknown, { signal }: { signal: AbortSignal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
      },
    ]
    instances.connect(localInstance({ id: 'here', tools }))
    const tasks = new TaskManager({ instances, telemetry })
    onTestFinished(async () => {
      await tasks.dispose()
      await instances.dispose()
    })
    const submit = (tool_name: string) =>
      tasks.submitTask({ task_name: 't', commands: [{ tool_name }] }) as { taskId: string }
    submit('fails')
    await until(() => spans().length === 1)
    const { taskId } = submit('hangs')
    submit('hangs')
    await until(() => tasks.getTask(taskId)?.status === 'running')
    expect((await metrics()).get('agent_tasks.running')).toEqual([{ 'agent_tasks.kind': 'command_task', value: 1 }])
    expect((await metrics()).get('agent_tasks.queued')).toEqual([{ 'agent_tasks.kind': 'command_task', value: 1 }])
    tasks.cancelTask(taskId)
    await until(() => spans().length === 2)
    expect(spans().map(({ attributes }) => attributes['error.type'])).toEqual(['NO_DISK', 'CANCELLED'])
    expect(spans()[0]?.attributes).toMatchObject({ 'gen_ai.tool.call.id': 'cmd_1', 'gen_ai.tool.name': 'fails' })
    expect((await metrics()).get('gen_ai.execute_tool.duration')).toContainEqual({
      'gen_ai.tool.name': 'fails',
      'error.type': 'NO_DISK',
      value: 1,
    })
  })
})

describe('the metrics', () => {
  it('F12: count what runs and what is owed now, and deliveries, until the manager is disposed', async () => {
    const { telemetry, metrics } = recordTelemetry()
    const manager = new AsyncTaskManager({ telemetry })
    const kind = { 'agent_tasks.kind': 'task' }
    let finish: () => void = () => undefined
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'g' }, () => ({}))
    manager.launch(
      { subagentName: 'slow', goalPrompt: 'g' },
      () => new Promise((resolve) => (finish = () => resolve({}))),
    )
    await until(() => manager.getTask(id)?.status === 'completed')
    const before = await metrics()
    expect(before.get('agent_tasks.running')).toEqual([{ ...kind, value: 1 }])
    expect(before.get('agent_tasks.queued')).toEqual([{ ...kind, value: 0 }])
    expect(before.get('agent_tasks.owed')).toEqual([{ ...kind, value: 1 }])
    manager.markNotified(id)
    finish()
    const after = await metrics()
    expect(after.get('agent_tasks.owed')).toEqual([{ ...kind, value: 0 }])
    expect(after.get('agent_tasks.deliveries')).toEqual([{ value: 1 }])
    await manager.dispose()
    expect((await metrics()).get('agent_tasks.running')).toEqual([{ ...kind, value: 0 }])
  })

  it('count the deliveries of those that are watched, and each kind by itself', async () => {
    const { telemetry, metrics } = recordTelemetry()
    const transitions$ = new Subject<{ kind: string; to: string }>()
    const watch = (kind: 'task' | 'command_task', running: number) =>
      telemetry.watch({ kind, counts: () => ({ running, queued: 0, owed: 2 }), transitions$: transitions$ as never })
    const ends = [watch('task', 1), watch('task', 2), watch('command_task', 5)]
    const [task, command] = [{ 'agent_tasks.kind': 'task' }, { 'agent_tasks.kind': 'command_task' }]
    expect((await metrics()).get('agent_tasks.running')).toEqual([
      { ...task, value: 3 },
      { ...command, value: 5 },
    ])
    // Nothing is owed for a command task.
    expect((await metrics()).get('agent_tasks.owed')).toEqual([{ ...task, value: 4 }])
    for (const end of ends.slice(1)) end()
    transitions$.next({ kind: 'delivery', to: 'leased' })
    transitions$.next({ kind: 'status', to: 'delivered' })
    transitions$.next({ kind: 'delivery', to: 'delivered' })
    const after = await metrics()
    expect(after.get('agent_tasks.deliveries')).toEqual([{ value: 1 }])
    expect(after.get('agent_tasks.running')).toEqual([
      { ...task, value: 1 },
      { ...command, value: 0 },
    ])
    ends[0]?.()
    expect(transitions$.observed).toBe(false)
  })

  it('have durations in seconds', () => {
    const recorded: unknown[] = []
    const meter = {
      createHistogram: (name: string) => ({
        record: (value: number, attributes: object, active: unknown) =>
          recorded.push([name, value, attributes, active !== undefined]),
      }),
      createCounter: () => ({ add: () => undefined }),
      createObservableUpDownCounter: () => ({ addCallback: () => undefined }),
      createObservableCounter: () => ({ addCallback: () => undefined }),
    }
    const now = vi.spyOn(performance, 'now').mockReturnValue(1000)
    onTestFinished(() => now.mockRestore())
    const operation = createTelemetry({ meterProvider: { getMeter: () => meter } as never }).start({
      type: 'execute_tool',
      name: 'x',
    })
    now.mockReturnValue(3500)
    operation.end()
    // In the context of its span, which an exemplar names.
    expect(recorded).toEqual([['gen_ai.execute_tool.duration', 2.5, { 'gen_ai.tool.name': 'x' }, true]])
  })

  it('keep no manager that was disposed', async () => {
    const watched = new Set<string>()
    const { telemetry } = recordTelemetry()
    const counting: Telemetry = {
      ...telemetry,
      watch: ({ kind }) => {
        watched.add(kind)
        return () => watched.delete(kind)
      },
    }
    const instances = new InstanceManager()
    const managers = [
      new AsyncTaskManager({ telemetry: counting }),
      new TaskManager({ instances, telemetry: counting }),
    ]
    expect([...watched]).toEqual(['task', 'command_task'])
    for (const manager of managers) await manager.dispose()
    await instances.dispose()
    expect([...watched]).toEqual([])
  })

  it('count a run after the first of its task', async () => {
    const { telemetry, metrics } = recordTelemetry()
    telemetry.start({ type: 'invoke_agent', name: 'x', attempt: 1 }).end()
    telemetry.start({ type: 'invoke_agent', name: 'x', attempt: 2 }).end()
    expect((await metrics()).get('agent_tasks.retries')).toEqual([{ value: 1 }])
  })
})

describe('createTelemetry', () => {
  it('refuses a wrong option, and works without a registered SDK', () => {
    expect(() => createTelemetry({ captureContent: 'yes' as never })).toThrow('captureContent')
    expect(() => createTelemetry({ tracer: 1 } as never)).toThrow('tracer')
    const telemetry = createTelemetry()
    const operation = telemetry.start({ type: 'execute_tool', name: 'x' })
    expect([telemetry.current(), operation.trace, operation.run(() => 7)]).toEqual([undefined, undefined, 7])
    operation.end()
    expect(() => new AsyncTaskManager({ telemetry: {} as never })).toThrow('telemetry')
  })
})

it('F12: an operation that is ended twice is counted once', async () => {
  const { telemetry, spans, metrics } = recordTelemetry()
  const operation = telemetry.start({ type: 'execute_tool', name: 'add' })
  operation.end()
  operation.end({ errorType: 'LATE' })
  expect(spans()).toHaveLength(1)
  expect((await metrics()).get('gen_ai.execute_tool.duration')).toEqual([{ 'gen_ai.tool.name': 'add', value: 1 }])
})
