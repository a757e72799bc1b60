/** A remote worker without a network: it registers, sends hello, and answers calls with the tools of the suite (suite-tools.ts). */
import {
  serverToWorkerSchema,
  type RegisterResponse,
  type ServerToWorkerMessage,
  type WorkerMessage,
} from '../../src/protocol/instance-messages.js'
import { ToolCallError } from '../../src/errors.js'
import type { InstanceManager } from '../../src/command-tasks/instances/instance-manager.js'
import { acceptWorker, type WorkerConnectionOptions } from '../../src/command-tasks/instances/worker-socket.js'
import { SuiteFailure, type SuiteTools } from './suite-tools.js'

export interface FakeWorker {
  /** Every message that the server has sent. */
  readonly heard: ServerToWorkerMessage[]
  /** The code and reason with which the server closed the socket. */
  readonly closedBy: { code: number; reason: string } | undefined
  /** Sends a message, or malformed text. */
  say(message: WorkerMessage | string): void
  /** Sends hello with the registration. `calls` are the calls of earlier connections that are still running. */
  hello(calls?: readonly string[]): void
  /** Breaks the connection. */
  drop(): void
}

/** Opens a connection. With `tools` the worker answers calls. Without them the test answers. */
export function connectFakeWorker(
  instances: InstanceManager,
  registration: Pick<RegisterResponse, 'instanceId' | 'secret'>,
  options: WorkerConnectionOptions & { readonly tools?: SuiteTools; readonly answersPings?: boolean } = {},
): FakeWorker {
  const { tools, answersPings = true } = options
  const running = new Map<string, AbortController>()
  const heard: ServerToWorkerMessage[] = []
  let closedBy: FakeWorker['closedBy']
  const connection = acceptWorker(
    instances,
    {
      send: (text) => {
        if (closedBy !== undefined) throw new Error('the socket is closed')
        const message = serverToWorkerSchema.parse(JSON.parse(text))
        heard.push(message)
        // Answers later, as over a network.
        queueMicrotask(() => answer(message))
      },
      close: (code, reason) => {
        closedBy ??= { code, reason }
        queueMicrotask(drop)
      },
    },
    options,
  )
  const say = (message: WorkerMessage | string): void =>
    void connection.receive(typeof message === 'string' ? message : JSON.stringify(message))

  function drop(): void {
    for (const controller of running.values()) controller.abort()
    connection.closed()
  }

  function answer(message: ServerToWorkerMessage): void {
    if (message.type === 'ping' && answersPings) say({ type: 'pong' })
    if (message.type === 'tool_cancel') running.get(message.callId)?.abort()
    if (message.type !== 'tool_call' || tools === undefined) return
    const { callId } = message
    const controller = new AbortController()
    running.set(callId, controller)
    const progress = (item: object): void => say({ type: 'tool_progress', callId, ...(item as { progress: number }) })
    tools.call(message.name, message.arguments, { signal: controller.signal, progress }).then(
      (text) => say({ type: 'tool_result', callId, result: { content: [{ type: 'text', text }] } }),
      (error: unknown) =>
        say(
          error instanceof SuiteFailure
            ? {
                type: 'tool_result',
                callId,
                result: { content: [{ type: 'text', text: error.message }], isError: true },
              }
            : {
                type: 'tool_error',
                callId,
                code: error instanceof ToolCallError ? (error.number ?? error.code) : 'FAILED',
                message: (error as Error).message,
              },
        ),
    )
  }

  return {
    heard,
    get closedBy() {
      return closedBy
    },
    say,
    hello: (calls) =>
      say({
        type: 'hello',
        ...registration,
        ...(tools && { tools: tools.names.map((name) => ({ name })) }),
        ...(calls && { calls: [...calls] }),
      }),
    drop,
  }
}
