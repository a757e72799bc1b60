/** An instance that is an MCP server. It uses the official client, over stdio or streamable HTTP. */
import {
  Client,
  type ClientOptions,
  ProtocolError as SDKProtocolError,
  SdkHttpError,
} from '@modelcontextprotocol/client'
import { MAX_TIMER_MS, systemClock, type Clock } from '../../system/clock.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { InstanceError, InvalidInputError, ToolCallError } from '../../errors.js'
import { preview } from '../../data/preview.js'
import {
  aClock,
  aFunction,
  aName,
  aSecret,
  aString,
  checkOptions,
  custom,
  listOf,
  numberFrom,
  objectWith,
  recordOf,
  required,
  type OptionTypes,
} from '../../protocol/option-checks.js'
import { createCallsInFlight, toError } from './calls-in-flight.js'
import { packageVersion } from '../../system/version.js'
import { createDelay } from './delay.js'
import type { Instance, ToolCall, ToolDescription } from './instance.js'
import type { ToolCallResult } from '../../protocol/tool-result.js'
import { watchAnswers, type Answer } from './mcp-answers.js'
import { accessMCPServer, type MCPServerLocation } from './mcp-server.js'

/** Options of `mcpInstance`: where the server is, the id of the instance, and time limits. */
export type MCPInstanceOptions = MCPServerLocation & {
  /** The id of the instance. */
  readonly id: string
  /** How long the server may take to start, in ms. Default 30000. */
  readonly startTimeoutMs?: number
  /** How long a cancelled call waits for the server's answer, in ms. MCP has no message that says when a cancelled call has stopped. Default 2000. */
  readonly cancelGraceMs?: number
  /** How long the server may take to end after its stdin is closed, and then again after SIGTERM, in ms. Default 2000. */
  readonly closeGraceMs?: number
  /** Aborts the start: the server is closed, and `mcpInstance` rejects. After the start, the signal has no effect. */
  readonly signal?: AbortSignal
  /** The source of time and timers. Default: the platform's clock. */
  readonly clock?: Clock
  /** Called with exceptions of abort listeners. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
}

const optionTypes: OptionTypes<MCPInstanceOptions> = {
  id: required(aName),
  command: aName,
  args: listOf(aString),
  env: recordOf(aString),
  cwd: aName,
  url: custom('a URL', (value) => URL.canParse(String(value)), { isSecret: true }),
  headers: recordOf(aSecret),
  transport: objectWith('a transport', 'start', 'send', 'close'),
  startTimeoutMs: numberFrom(1),
  cancelGraceMs: numberFrom(0),
  closeGraceMs: numberFrom(0),
  signal: objectWith('an AbortSignal', 'addEventListener'),
  clock: aClock,
  onError: aFunction,
}

/**
 * @throws INVALID_INPUT for an invalid option
 * @throws INVALID_SETTING for a number out of its range
 */
function checkInstanceOptions(options: MCPInstanceOptions): void {
  checkOptions(options, optionTypes)
  const given = ['command', 'url', 'transport'].filter((name) => name in options)
  if (given.length === 1) return
  throw new InvalidInputError('options', given.join(' and ') || 'none', 'exactly one of command, url and transport')
}

/** A connected MCP server as an instance. */
export interface MCPInstance extends Instance {
  /** Calls `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Accepts every result without validation. The client would use the schema of the server, and a regular expression in it could block this process for
 * hours (ADR 27).
 */
const jsonSchemaValidator: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
}

const CLIENT = { name: 'agent-tasks', version: packageVersion }
const PING_TIMEOUT_MS = 5000

/** The version of servers that have no `initialize`. */
const MODERN_VERSION = '2026-07-28'

/** Whether the server answered `initialize` with an error, as a server does that speaks only versions from 2026-07-28. */
function refusesInitialize(error: unknown): boolean {
  if (error instanceof SdkHttpError) return [400, 404, 405, 406, 415, 422, 501].includes(error.status)
  return error instanceof SDKProtocolError
}

/**
 * Starts an MCP server, or connects to one.
 * @throws INVALID_INPUT for an unknown or invalid option
 * @throws INVALID_SETTING for a number out of its range
 * @throws AgentTasksError when the server does not start. The message contains the reason and the last stderr output. The server is closed then
 */
export async function mcpInstance(options: MCPInstanceOptions): Promise<MCPInstance> {
  checkInstanceOptions(options)
  const {
    id,
    startTimeoutMs = 30_000,
    cancelGraceMs = 2000,
    closeGraceMs = 2000,
    clock = systemClock,
    signal,
  } = options
  const start = async (versions: Pick<ClientOptions, 'versionNegotiation'> = {}) => {
    const server = accessMCPServer(options, clock, closeGraceMs)
    const { transport } = server
    const answers = watchAnswers(transport)
    const client = new Client(CLIENT, { jsonSchemaValidator, ...versions })
    // The client ignores the signal while it finds out the version of the server.
    const onAbort = (): void => void transport.close().catch(() => undefined)
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      await client.connect(transport, { timeout: startTimeoutMs, ...omitUndefined({ signal }) })
      return { server, transport, answers, client }
    } catch (error) {
      const message = `${server.name}, instance ${preview(id)}, did not start: ${server.explain(error)}`
      await client.close().catch(() => undefined)
      await transport.close().catch(() => undefined)
      throw new InstanceError('INSTANCE_START_FAILED', id, message, { cause: error })
    } finally {
      signal?.removeEventListener('abort', onAbort)
    }
  }
  const started = await start().catch((error: unknown) => {
    const isRefused = error instanceof InstanceError && refusesInitialize(error.cause)
    // A transport cannot be started again.
    if (!isRefused || 'transport' in options || signal?.aborted === true) throw error
    return start({ versionNegotiation: { mode: { pin: MODERN_VERSION } } }).catch((other: unknown) => {
      throw signal?.aborted === true ? other : error
    })
  })
  const { server, transport, answers, client } = started
  const calls = createCallsInFlight(id, options.onError)
  let lossReason: string | undefined
  let emitLoss: ((reason: string) => void) | undefined
  let asking: Promise<void> | undefined
  let closing: Promise<void> | undefined

  function lose(error: unknown): void {
    if (lossReason !== undefined || closing !== undefined) return
    lossReason = `${server.name} is gone: ${server.explain(error)}`
    calls.end(lossReason)
    answers.end()
    void client.close().catch(() => undefined)
    emitLoss?.(lossReason)
  }

  /** Asks the server whether it is there. If a server uses a new HTTP connection for each request, no event shows that the server has ended. */
  function ask(): Promise<void> {
    const options = { timeout: PING_TIMEOUT_MS }
    // The protocol of 2026-07-28 has no `ping`.
    asking ??= (client.getProtocolEra() === 'modern' ? client.discover(options) : client.ping(options))
      .then(
        () => undefined,
        // A protocol error shows that the server still answers.
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
        { name: call.name, arguments: args, ...(call.trace !== undefined && { _meta: { ...call.trace } }) },
        {
          signal,
          timeout: MAX_TIMER_MS,
          // With this callback the client requests progress from the server. `answers` reports it.
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

  /**
   * Waits for the answer to a cancelled call. If the server ignores the cancellation, the next command waits until the server has finished, or the
   * grace period has passed.
   */
  async function lateResult(arrived: Promise<Answer>, signal: AbortSignal): Promise<ToolCallResult> {
    const grace = createDelay(clock, cancelGraceMs, { name: `grace of a cancelled call of ${id}` })
    const answer = await Promise.race([arrived, grace.passed])
    grace.cancel()
    if (answer?.type === 'result') return answer.result
    throw toError(signal.reason)
  }

  const close = (): Promise<void> =>
    (closing ??= (async () => {
      calls.end('It was closed.')
      if (lossReason === undefined) await server.leave()
      answers.end()
      await client.close().catch(() => undefined)
      await transport.close().catch(() => undefined)
      await calls.settled()
    })())

  let toolNames: readonly string[] | undefined
  const listTools = async (): Promise<ToolDescription[]> => {
    const all = (await client.listTools()).tools
    // A tool that must be called as a task fails at each call, because calls of instances are not tasks.
    const tools = all.filter(({ execution }) => execution?.taskSupport !== 'required')
    toolNames = tools.map(({ name }) => name)
    return tools.map(({ name, description, inputSchema }): ToolDescription => ({
      name,
      ...omitUndefined({ description }),
      inputSchema: inputSchema,
    }))
  }
  // Loads `toolNames`. If the server does not answer, its tools stay unknown.
  void listTools().catch(() => undefined)
  return {
    id,
    kind: 'mcp',
    get toolNames() {
      return toolNames
    },
    listTools,
    callTool: (call) => calls.run(call, ({ signal }) => callTool(call, signal)),
    onLost: (onLost) => {
      emitLoss = onLost
      if (lossReason !== undefined) onLost(lossReason)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** The server has ended the response stream of a call without a result. */
class NoAnswerError extends Error {
  override readonly message = 'The server ended the call without a result.'
}
