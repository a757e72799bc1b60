/** An instance that is an MCP server, over stdio or streamable HTTP, through the official client. */
import { Client, ProtocolError as SDKProtocolError } from '@modelcontextprotocol/client'
import { MAX_TIMER_MS, systemClock, type Clock } from '../clock.js'
import { InstanceError, ToolCallError } from '../errors.js'
import { preview } from '../preview.js'
import { createCallsInFlight, toError } from './calls-in-flight.js'
import { packageVersion } from '../version.js'
import { createDelay } from './delay.js'
import type { Instance, ToolCall, ToolDescription } from './instance.js'
import type { ToolCallResult } from '../protocol/tool-result.js'
import { watchAnswers, type Answer } from './mcp-answers.js'
import { accessMCPServer, type MCPServerLocation } from './mcp-server.js'

/** Options of `mcpInstance`: where the server is, what the instance is called, and how long things may take. */
export type MCPInstanceOptions = MCPServerLocation & {
  /** The instance's id. */
  readonly id: string
  /** How long the server may take to be ready, in ms. Default 30000. */
  readonly startTimeoutMs?: number
  /** How long a cancelled call waits for the server to stop, in ms: MCP has no word for "I have stopped". Default 2000. */
  readonly cancelGraceMs?: number
  /** How long the server may take to end after its stdin was closed, and again after SIGTERM, in ms. Default 2000. */
  readonly closeGraceMs?: number
  /** Drives its timers. Default: the platform's. */
  readonly clock?: Clock
  /** Told of exceptions in abort listeners. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
}

const CLIENT = { name: 'agent-tasks', version: packageVersion }
const PING_TIMEOUT_MS = 5000

/**
 * Connects to an MCP server.
 * @throws InstanceError when it cannot be used: what it is, what happened, and the end of its stderr. Nothing of it is left then.
 */
export async function mcpInstance(options: MCPInstanceOptions): Promise<Instance> {
  const { id, startTimeoutMs = 30_000, cancelGraceMs = 2000, closeGraceMs = 2000, clock = systemClock } = options
  const server = accessMCPServer(options, clock, closeGraceMs)
  const { transport } = server
  const answers = watchAnswers(transport)
  const client = new Client(CLIENT)
  const calls = createCallsInFlight(id, options.onError)
  let lossReason: string | undefined
  let tellLoss: ((reason: string) => void) | undefined
  let asking: Promise<void> | undefined
  let closing: Promise<void> | undefined

  try {
    await client.connect(transport, { timeout: startTimeoutMs })
  } catch (error) {
    const message = `${server.name}, instance ${preview(id)}, did not start: ${server.explain(error)}`
    await client.close().catch(() => undefined)
    await transport.close().catch(() => undefined)
    throw new InstanceError('INSTANCE_START_FAILED', id, message, { cause: error })
  }

  function lose(error: unknown): void {
    if (lossReason !== undefined || closing !== undefined) return
    lossReason = `${server.name} is gone: ${server.explain(error)}`
    calls.end(lossReason)
    answers.end()
    void client.close().catch(() => undefined)
    tellLoss?.(lossReason)
  }

  /** A connection that is made anew for each request breaks without a sign: it must be asked. */
  function ask(): Promise<void> {
    asking ??= client
      .ping({ timeout: PING_TIMEOUT_MS })
      .then(
        () => undefined,
        // Whoever answers is there.
        (error: unknown) => (error instanceof SDKProtocolError ? undefined : lose(error)),
      )
      .finally(() => (asking = undefined))
    return asking
  }

  client.onclose = () => lose(new Error('the connection was closed'))
  client.onerror = () => {
    if (server.mustBeAsked && lossReason === undefined && closing === undefined) void ask()
  }

  async function callTool(call: ToolCall, signal: AbortSignal): Promise<ToolCallResult> {
    const args = { ...call.arguments }
    const answer = answers.expect(args, (progress) => {
      if (!signal.aborted) call.onProgress(progress)
    })
    const unanswered = new Promise<never>((_resolve, reject) => {
      void answer.arrived.then(({ type }) => {
        if (type === 'none') reject(new NoAnswerError())
      })
    })
    unanswered.catch(() => undefined)
    try {
      const result = client.callTool(
        { name: call.name, arguments: args },
        {
          signal,
          timeout: MAX_TIMER_MS,
          // Makes the client ask for progress; `answers` hands it on.
          onprogress: () => undefined,
        },
      )
      return (await Promise.race([result, unanswered])) as ToolCallResult
    } catch (error) {
      if (signal.aborted) return await lateResult(answer.arrived, signal)
      if (error instanceof SDKProtocolError) throw new ToolCallError(error.code, error.message, error.data)
      if (server.mustBeAsked) await ask()
      if (lossReason !== undefined) throw new InstanceError('INSTANCE_DISCONNECTED', id, lossReason, { cause: error })
      throw error
    } finally {
      answer.release()
    }
  }

  /** The client has told the server; a server that goes on all the same keeps its lane until it is done. */
  async function lateResult(arrived: Promise<Answer>, signal: AbortSignal): Promise<ToolCallResult> {
    const grace = createDelay(clock, cancelGraceMs)
    const answer = await Promise.race([arrived, grace.passed])
    grace.cancel()
    if (answer?.type === 'result') return answer.result
    throw toError(signal.reason)
  }

  return {
    id,
    kind: 'mcp',
    listTools: async () => {
      const { tools } = await client.listTools()
      return tools.map(({ name, description, inputSchema }): ToolDescription => ({
        name,
        ...(description !== undefined && { description }),
        inputSchema: inputSchema,
      }))
    },
    callTool: (call) => calls.run(call, ({ signal }) => callTool(call, signal)),
    onLost: (onLost) => {
      tellLoss = onLost
      if (lossReason !== undefined) onLost(lossReason)
    },
    close: () => {
      closing ??= (async () => {
        calls.end('It was closed.')
        if (lossReason === undefined) await server.leave()
        answers.end()
        await client.close().catch(() => undefined)
        await transport.close().catch(() => undefined)
        await calls.settled()
      })()
      return closing
    },
  }
}

/** The server ended the stream of a call without a result. */
class NoAnswerError extends Error {
  override readonly message = 'The server ended the call without a result.'
}
