/** Commands and MCP requests as calls of tools. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { ToolCallError } from '../../../../src/errors.js'
import type { Instance } from '../../../../src/command-tasks/instances/instance.js'
import { InstanceManager } from '../../../../src/command-tasks/instances/instance-manager.js'
import { performCommand } from '../../../../src/command-tasks/instances/command-call.js'
import { localInstance } from '../../../../src/command-tasks/instances/local-instance.js'
import { handleMCPRequest } from '../../../../src/command-tasks/instances/mcp-request.js'
import { instanceTool } from '../../../../src/protocol/instance-tools.js'
import { registerWorker } from '../../../../src/command-tasks/instances/worker-socket.js'
import type { ToolCallResult } from '../../../../src/protocol/tool-result.js'
import type { MCPRequest } from '../../../../src/protocol/tool-calls.js'
import { connectFakeWorker, type FakeWorker } from '../../../support/fake-worker.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'

const clock = createManualClock()
let instances: InstanceManager

beforeEach(() => {
  instances = new InstanceManager({ clock })
})
afterEach(() => instances.dispose())

const request = (name: string, args: Record<string, unknown> = {}): MCPRequest => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name, arguments: args },
})

const callIdHeardBy = ({ heard }: FakeWorker): string =>
  heard.flatMap((message) => (message.type === 'tool_call' ? [message.callId] : [])).at(-1) ?? ''

const perform = (tool_name: string, args: Record<string, unknown> = {}): Promise<ToolCallResult> =>
  performCommand(
    {
      instance: instances.get('here')!,
      taskId: 'task_1',
      command: { id: 'cmd_1', tool_name, intention: '', args, status: 'running' },
      onProgress: () => undefined,
    },
    new AbortController(),
  )

function connectLocal(execute: (input: unknown) => unknown, id = 'here') {
  const spy = vi.fn(execute)
  instances.connect(localInstance({ id, tools: [{ name: 'it', execute: (input) => spy(input) }] }))
  return spy
}

describe('a request', () => {
  it('is answered with the result of the tool, under its id', async () => {
    connectLocal(() => 'done')
    expect(await handleMCPRequest(request('it'), { instances })).toEqual({
      jsonrpc: '2.0',
      id: 7,
      result: { content: [{ type: 'text', text: 'done' }] },
    })
  })

  it('for a tool that is not there is a JSON-RPC error', async () => {
    connectLocal(() => 'done')
    expect(await handleMCPRequest(request('other'), { instances })).toEqual({
      jsonrpc: '2.0',
      id: 7,
      error: {
        code: -32602,
        message: 'Unknown tool: "other", expected one of the names it.',
        data: { code: 'UNKNOWN_TOOL' },
      },
    })
  })

  it('without a connected instance is an error', async () => {
    expect(await handleMCPRequest(request('it'), { instances })).toMatchObject({
      error: { code: -32000, message: 'No instance is connected', data: { code: 'INSTANCE_UNKNOWN' } },
    })
    expect(await handleMCPRequest(request('it'), { instances, instanceId: 'gone' })).toMatchObject({
      error: { message: 'Instance not found: gone. There is no instance.' },
    })
  })

  it('for an instance that is not connected yet is an error', async () => {
    registerWorker(instances, { instanceId: 'browser' }, { websocketUrl: 'ws://x', clock })
    expect(await handleMCPRequest(request('it'), { instances, instanceId: 'browser' })).toMatchObject({
      error: { message: 'Instance not connected: browser', data: { code: 'INSTANCE_DISCONNECTED' } },
    })
  })

  it('that is malformed is an error that names the field', async () => {
    const wrong = { ...request('it'), method: 'tools/list' } as unknown as MCPRequest
    expect(await handleMCPRequest(wrong, { instances })).toEqual({
      jsonrpc: '2.0',
      id: 7,
      error: { code: -32600, message: 'request.method: got "tools/list", expected one of "tools/call".' },
    })
    expect(await handleMCPRequest(null as unknown as MCPRequest, { instances })).toMatchObject({
      id: '',
      error: { code: -32600 },
    })
  })

  it('whose signal has aborted calls nothing', async () => {
    const spy = connectLocal(() => 'done')
    const signal = AbortSignal.abort(new Error('called off'))
    expect(await handleMCPRequest(request('it'), { instances, signal })).toMatchObject({
      error: { message: 'called off' },
    })
    expect(spy).not.toHaveBeenCalled()
  })
})

describe('the arguments of a command', () => {
  it('include the id of a remote worker, in place of what was submitted', async () => {
    const registration = registerWorker(instances, { instanceId: 'browser' }, { websocketUrl: 'ws://x', clock })
    const worker = connectFakeWorker(instances, registration, { clock })
    worker.hello()
    const call = handleMCPRequest(request('click', { x: 1, instanceId: 'other' }), { instances, instanceId: 'browser' })
    expect(worker.heard.at(-1)).toMatchObject({ arguments: { x: 1, instanceId: 'browser' } })
    worker.say({ type: 'tool_result', callId: callIdHeardBy(worker), result: { content: [] } })
    await call
  })

  it('choose the remote worker when the request names no instance', async () => {
    connectLocal(() => 'local')
    const registration = registerWorker(instances, { instanceId: 'browser' }, { websocketUrl: 'ws://x', clock })
    const worker = connectFakeWorker(instances, registration, { clock })
    worker.hello()
    const call = handleMCPRequest(request('click', { instanceId: 'browser' }), { instances })
    worker.say({ type: 'tool_result', callId: callIdHeardBy(worker), result: { content: [] } })
    expect(await call).toMatchObject({ result: { content: [] } })
  })

  it('reach all other kinds unchanged', async () => {
    const spy = connectLocal(() => 'done')
    await handleMCPRequest(request('it', { x: 1, instanceId: 'mine' }), { instances, instanceId: 'here' })
    expect(spy).toHaveBeenCalledWith({ x: 1, instanceId: 'mine' })
  })
})

describe('a command that fails', () => {
  const failure = async (tool = 'it', args = {}): Promise<ToolCallError> =>
    perform(tool, args).then(
      () => expect.fail('it succeeded'),
      (error: unknown) => error as ToolCallError,
    )

  it('keeps the message of an error result, with EXECUTION_ERROR when it has no code', async () => {
    connectLocal(() => ({
      content: [
        { type: 'text', text: 'No such' },
        { type: 'text', text: 'element.' },
      ],
      isError: true,
    }))
    expect(await failure()).toMatchObject({ code: 'EXECUTION_ERROR', message: 'No such\nelement.' })
  })

  it.each([
    ['in its structured content', { structuredContent: { code: 'NO_ELEMENT' } }],
    ['in the error of its structured content', { structuredContent: { error: { code: 'NO_ELEMENT' } } }],
    ['in _meta', { _meta: { code: 'NO_ELEMENT' } }],
  ])('keeps the code of an error result that has one %s', async (_where, more) => {
    connectLocal(() => ({ content: [], isError: true, ...more }))
    expect(await failure()).toMatchObject({
      code: 'NO_ELEMENT',
      message: 'The tool reported an error without saying which.',
    })
  })

  it('keeps a code that is a number as its digits', async () => {
    connectLocal(() => ({ content: [], isError: true, structuredContent: { code: 404 } }))
    expect(await failure()).toMatchObject({ code: '404' })
  })

  describe('of an instance that a user implements', () => {
    function connectForeign(answer: unknown): void {
      const instance = {
        id: 'here',
        kind: 'local',
        listTools: () => Promise.resolve([]),
        callTool: () => Promise.resolve(answer as ToolCallResult),
        onLost: () => undefined,
        close: () => Promise.resolve(),
      } satisfies Instance
      instances.connect(instance)
    }

    it.each([
      ['nothing', undefined, 'got nothing'],
      ['null', null, 'got nothing'],
      ['an object without content', { text: 'done' }, 'content: got undefined'],
      ['text as content', { content: 'done' }, 'content: got "done"'],
    ])('is EXECUTION_ERROR when it answers with %s', async (_what, answer, got) => {
      connectForeign(answer)
      const message = `Instance "here" returned an invalid tool result: ${got}, expected an array of content.`
      expect(await failure()).toMatchObject({ code: 'EXECUTION_ERROR', message })
      expect(await handleMCPRequest(request('it'), { instances })).toMatchObject({ error: { code: -32603, message } })
    })

    it('is EXECUTION_ERROR when its answer cannot be read', async () => {
      const unreadable = () => {
        throw Object.assign(new Error('no'), { code: 'ODD' })
      }
      connectForeign(Object.defineProperty({ content: [] }, 'isError', { enumerable: true, get: unreadable }))
      expect(await failure()).toMatchObject({ code: 'EXECUTION_ERROR', message: 'no' })
    })

    it('does not fail when its answer is an instance of a class', async () => {
      class Answer {
        readonly #text = 'done'
        get content() {
          return [{ type: 'text', text: this.#text }]
        }
      }
      connectForeign(new Answer())
      expect(await perform('it')).toEqual({
        content: [{ type: 'text', text: 'done' }],
      })
    })
  })

  it('keeps the code and message of a JSON-RPC error', async () => {
    connectLocal(() => 'done')
    expect(await failure('other')).toMatchObject({
      code: 'UNKNOWN_TOOL',
      message: 'Unknown tool: "other", expected one of the names it.',
    })
  })

  it('keeps a code of a remote worker that is not a number', async () => {
    const registration = registerWorker(instances, { instanceId: 'here' }, { websocketUrl: 'ws://x', clock })
    const worker = connectFakeWorker(instances, registration, { clock })
    worker.hello()
    const failed = failure('click')
    worker.say({ type: 'tool_error', callId: callIdHeardBy(worker), code: 'TAB_CLOSED', message: 'The tab is closed.' })
    expect(await failed).toMatchObject({ code: 'TAB_CLOSED', message: 'The tab is closed.' })
  })

  it('names the invalid argument', async () => {
    instances.connect(
      localInstance({
        id: 'here',
        tools: [instanceTool({ name: 'it', inputSchema: z.object({ url: z.string() }), execute: ({ url }) => url })],
      }),
    )
    expect(await failure('it', { url: 1 })).toMatchObject({
      code: 'INVALID_ARGUMENTS',
      message: 'arguments.url: got 1, expected a string.',
    })
  })

  it('is INSTANCE_DISCONNECTED when the instance disconnects during the call', async () => {
    const stopping = (signal: AbortSignal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
    instances.connect(
      localInstance({ id: 'here', tools: [{ name: 'it', execute: (_input, { signal }) => stopping(signal) }] }),
    )
    const failed = failure()
    await Promise.resolve()
    await instances.disconnect('here')
    expect(await failed).toMatchObject({ code: 'INSTANCE_DISCONNECTED' })
  })
})
