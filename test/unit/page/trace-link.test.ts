/** The link from a task to its trace. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { createTaskPage } from 'agent-tasks/page'
import { InstanceManager, localInstance, TaskManager } from 'agent-tasks/server'
import type { OperationStart, Telemetry, TraceContext } from '../../../src/protocol/telemetry.js'
import { checkTraceUrl, traceUrlOf } from '../../../src/page/trace-link.js'
import { startPage } from './test-page.js'

const TEMPLATE = 'https://jaeger.example/trace/{trace_id}?span={span_id}'
const TRACE = 'a'.repeat(31)
const SPAN = 'b'.repeat(15)
const traceparent = (number: number, flags = '01'): string => `00-${TRACE}${number}-${SPAN}${number}-${flags}`

/** Telemetry whose operations have the traces 1, 2, 3, … */
function numbered() {
  const started: OperationStart[] = []
  const telemetry: Telemetry = {
    current: () => undefined,
    within: (_parent, work) => work(),
    start: (operation) => {
      started.push(operation)
      return { trace: { traceparent: traceparent(started.length) }, run: (work) => work(), end: () => undefined }
    },
    watch: () => () => undefined,
  }
  return telemetry
}

describe('a template', () => {
  it.each([
    'https://jaeger.example/trace/{trace_id}',
    'http://localhost:16686/trace/{trace_id}',
    TEMPLATE,
    'https://x.example/#/t={trace_id}',
  ])('may be %s', (template) => {
    expect(() => checkTraceUrl(template, 'options.traceUrl')).not.toThrow()
  })

  it.each([
    'https://jaeger.example/trace',
    '{trace_id}',
    '/trace/{trace_id}',
    'javascript:alert({trace_id})',
    'data:text/html,{trace_id}',
    'file:///{trace_id}',
    'https://{trace_id}.example/',
    'https://user:{trace_id}@jaeger.example/',
    'https://user@jaeger.example/{trace_id}',
    'https://:secret@jaeger.example/{trace_id}',
    `https://jaeger.example/${'x'.repeat(2000)}{trace_id}`,
  ])('is not %.40s', async (template) => {
    const words = /^options\.traceUrl: got .*, expected an http or https URL with \{trace_id\}/s
    expect(() => checkTraceUrl(template, 'options.traceUrl')).toThrow(words)
    const tasks = new AsyncTaskManager()
    await expect(createTaskPage({ tasks, traceUrl: template, port: 0 })).rejects.toThrow(words)
    await tasks.dispose()
  })
})

it.each<[string, TraceContext | undefined]>([
  ['none', undefined],
  ['one that is not sampled', { traceparent: traceparent(1, '00') }],
  ['one that is malformed', { traceparent: '00-<script>-b-01' }],
])('there is no link for %s', (_, trace) => {
  expect(traceUrlOf(TEMPLATE, trace)).toBeUndefined()
  expect(traceUrlOf(undefined, { traceparent: traceparent(1) })).toBeUndefined()
})

const linkOf = (number: number): string => `https://jaeger.example/trace/${TRACE}${number}?span=${SPAN}${number}`

it('an async task has the link of its last run, also when its manager has forgotten it', async () => {
  const manager = new AsyncTaskManager({ telemetry: numbered() })
  onTestFinished(() => manager.dispose())
  const { get } = await startPage({ tasks: manager, traceUrl: TEMPLATE })
  const run = async (id: string): Promise<void> => {
    manager.launch({ id, subagentName: 'helper', goalPrompt: 'x' }, () => ({}))
    await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
    manager.markNotified(id)
  }
  await run('a')
  expect((await get('tasks/async:a')).body).toMatchObject({ traceUrl: linkOf(1) })
  for (let at = 0; manager.getTask('a') !== undefined; at += 1) await run(`b${at}`)
  expect((await get('tasks/async:a')).body).toMatchObject({ traceUrl: linkOf(1) })
  manager.registerTask({ id: 'own', subagentName: 'helper', goalPrompt: 'x' })
  expect((await get('tasks/async:own')).body).not.toHaveProperty('traceUrl')
})

it('a command task has the link of its first command', async () => {
  const instances = new InstanceManager()
  instances.connect(localInstance({ id: 'calc', tools: [{ name: 'note', execute: () => 1 }] }))
  const taskManager = new TaskManager({ instances, telemetry: numbered(), maxRetained: 1 })
  onTestFinished(async () => {
    await taskManager.dispose()
    await instances.dispose()
  })
  const { get } = await startPage({ taskManager, traceUrl: TEMPLATE })
  const submit = async (): Promise<string> => {
    const ended = new Promise((resolve) => taskManager.on('complete', resolve))
    const submitted = taskManager.submitTask({
      task_name: 'x',
      commands: [{ tool_name: 'note' }, { tool_name: 'note' }],
    })
    await ended
    return 'taskId' in submitted ? submitted.taskId : ''
  }
  const first = await submit()
  expect((await get(`tasks/command:${first}`)).body).toMatchObject({ traceUrl: linkOf(1) })
  const second = await submit()
  await submit()
  expect(taskManager.getTask(first)).toBeUndefined()
  expect((await get(`tasks/command:${first}`)).body).toMatchObject({ traceUrl: linkOf(1) })
  expect((await get(`tasks/command:${second}`)).body).toMatchObject({ traceUrl: linkOf(3) })
})
