/** The conversation with an agent: it starts or continues a session, sends one prompt, and answers the requests of the agent. */
import {
  client,
  MessageTooLargeError,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type ClientApp,
  type ClientRequestContext,
  type ClientRequestHandlersByMethod,
  type ClientRequestMethod,
  type ClientRequestParamsByMethod,
  type InitializeRequest,
  type InitializeResponse,
  type NewSessionRequest,
  type NewSessionResponse,
  type PromptRequest,
  type PromptResponse,
  type ReadTextFileRequest,
  type Stream,
} from '@agentclientprotocol/sdk'
import type { RunContext } from '../../engine/runner.js'
import { SESSION_ID } from '../../protocol/async-tasks.js'
import type { Instruction } from '../instruction.js'
import { ProcessError } from '../process-error.js'
import { preview } from '../../data/preview.js'
import { packageVersion } from '../../system/version.js'
import { policyFor, type AcpSettings } from './acp-options.js'
import { readTextFile, writeTextFile } from './agent-files.js'
import { answerElicitation, answerPermission } from './agent-requests.js'
import { sessionChoices } from './session-settings.js'
import { oneLine, type SessionUpdates } from './session-updates.js'
import type { Terminals } from './terminals.js'

/** The maximum number of requests of the agent that are answered at the same time. */
const MAX_OPEN_REQUESTS = 16

/** The maximum length of an agent's text in an error message, in characters. */
const MAX_REASON_CHARS = 1000

/** Errors that are about a rate limit. ACP has no code for them. */
const RATE_LIMIT = /\b429\b|rate.?limit|too many requests/i

const MINUTE_MS = 60_000

/** The code of an ACP error response for an agent that needs a sign-in. */
const AUTH_REQUIRED = -32_000

/** What a conversation needs: the options, the task, and the objects that handle requests. */
export interface TurnSettings {
  readonly settings: AcpSettings
  readonly input: Instruction
  /** The text of the only prompt. */
  readonly prompt: string
  readonly context: Pick<RunContext, 'ask' | 'previous' | 'setSession'>
  readonly folder: string
  readonly updates: SessionUpdates
  readonly terminals: Terminals | undefined
  /** Waits before the session is opened. The agent has this time in addition to that in which it has to start. Rejects when the signal aborts. */
  readonly postpone: (ms: number, signal: AbortSignal) => Promise<void>
}

export type EndedTurn = Pick<PromptResponse, 'stopReason'> & Pick<NewSessionResponse, 'sessionId'>

export interface FailedTurn {
  readonly error: unknown
  /** The method of the request that the agent did not answer. */
  readonly waitedFor: string
  /** Whether the agent has closed its stdout. Then `error` does not say why; the end of the process does. */
  readonly isGone: boolean
}

export interface AgentTurn {
  /** Resolves after the connection is closed. Never rejects. */
  readonly outcome: Promise<EndedTurn | FailedTurn>
  /** Resolves when the session has started, or could not be started. */
  readonly started: Promise<unknown>
  /** The method of the last request that was sent. */
  readonly waitsFor: string
  /** Asks the agent to stop, and answers its open requests as cancelled. Returns false if no session has started; the connection is closed then. */
  cancel(reason: unknown): boolean
  /** Closes the connection with an error, which becomes the outcome. */
  fail(error: unknown): void
}

/** Starts a session, sends the goal as prompt, and answers the agent's requests until the agent has answered the prompt. */
export function startTurn(turn: TurnSettings, stream: Stream): AgentTurn {
  const { settings, prompt, context, folder, updates } = turn
  const { command } = settings.program
  const cancelling = new AbortController()
  const connection = answering(turn, cancelling.signal).connect(stream)
  const { agent } = connection
  let waitsFor: string = methods.agent.initialize
  let sessionId: string | undefined
  let agreed: InitializeResponse | undefined
  const start = async (): Promise<string> => {
    const hello: InitializeRequest = {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: { name: 'agent-tasks', version: packageVersion },
      clientCapabilities: capabilitiesOf(turn),
    }
    agreed = await agent.request(methods.agent.initialize, hello)
    if (agreed.protocolVersion !== PROTOCOL_VERSION) {
      const message = `Agent ${preview(command)} speaks version ${agreed.protocolVersion} of ACP, expected ${PROTOCOL_VERSION}.`
      throw new ProcessError('ACP_PROTOCOL', message, { command })
    }
    const { session } = methods.agent
    const { loadSession, sessionCapabilities } = agreed.agentCapabilities ?? {}
    const kept = context.previous?.session?.id
    const reopen = sessionCapabilities?.resume ? session.resume : session.load
    if (kept !== undefined && reopen === session.load && loadSession !== true) {
      const message = `Agent ${preview(command)} cannot continue a session: it supports neither ${session.resume} nor ${session.load}.`
      throw new ProcessError('ACP_FAILED', message, { command })
    }
    waitsFor = kept === undefined ? session.new : reopen
    const waitMs = kept === undefined ? 0 : msBeforeLoad(agreed, context.previous, settings.program.clock.now())
    if (waitMs > 0) await turn.postpone(waitMs, cancelling.signal)
    const where: NewSessionRequest = { cwd: folder, mcpServers: [] }
    const reopened = kept === undefined ? undefined : agent.request(reopen, { ...where, sessionId: kept })
    if (reopened !== undefined) await updates.discardUntil(reopened, settings.program.clock)
    const offer: Partial<NewSessionResponse> = (await reopened) ?? (await agent.request(session.new, where))
    const id = kept ?? (offer as NewSessionResponse).sessionId
    sessionId = id
    if (SESSION_ID.test(id)) context.setSession(id, { cwd: folder })
    const { modeId, modeOption, configOptions } = sessionChoices(settings, offer)
    const isOption = modeId !== undefined && modeOption !== undefined
    waitsFor = session.setMode
    if (modeId !== undefined && !isOption) await agent.request(session.setMode, { sessionId: id, modeId })
    waitsFor = session.setConfigOption
    for (const [configId, value] of [...(isOption ? [[modeOption, modeId] as const] : []), ...configOptions]) {
      await agent.request(session.setConfigOption, { sessionId: id, configId, value })
    }
    waitsFor = session.prompt
    return id
  }
  const started = start()
  const outcome = started
    .then(async (id): Promise<EndedTurn | FailedTurn> => {
      updates.startAnswer()
      const goal: PromptRequest = { sessionId: id, prompt: [{ type: 'text', text: prompt }] }
      const { stopReason } = await agent.request(methods.agent.session.prompt, goal)
      return { stopReason, sessionId: id }
    })
    .catch((error: unknown): FailedTurn => {
      const known = toTurnError(error, command, waitsFor, agreed)
      const isGone = connection.signal.reason === error && !isKnown(error)
      return { error: known, waitedFor: waitsFor, isGone }
    })
    .finally(() => connection.close())
  return {
    outcome,
    started: started.catch(() => undefined),
    get waitsFor() {
      return waitsFor
    },
    cancel: (reason) => {
      cancelling.abort(reason)
      if (sessionId === undefined) {
        connection.close(reason)
        return false
      }
      agent.notify(methods.agent.session.cancel, { sessionId }).catch(() => undefined)
      return true
    },
    fail: (error) => connection.close(error),
  }
}

/**
 * How long a session must not be loaded yet, in ms. Gemini CLI 0.61.0 destroys a session that it loads in the minute in which it was created: the name of
 * the file of a session has only the minute. A session that was loaded once is older than that.
 */
function msBeforeLoad({ agentInfo }: InitializeResponse, previous: RunContext['previous'], now: number): number {
  const minute = (at: number): number => Math.floor(at / MINUTE_MS)
  const isOlder = previous?.continues !== undefined || minute(previous?.endedAt ?? 0) < minute(now)
  if (agentInfo?.name !== 'gemini-cli' || isOlder) return 0
  return (minute(now) + 1) * MINUTE_MS - now
}

function capabilitiesOf({ settings: { permissions }, terminals }: TurnSettings) {
  return {
    fs: {
      readTextFile: policyFor(permissions, 'read') !== 'deny',
      writeTextFile: policyFor(permissions, 'edit') !== 'deny',
    },
    terminal: terminals !== undefined,
    elicitation: { form: {} },
    // Notices of the agent itself come as updates of their own then, and not as messages.
    session: { notices: {} },
  }
}

function answering(turn: TurnSettings, cancelSignal: AbortSignal): ClientApp {
  const { settings, input, context, folder, updates, terminals } = turn
  const { permissions, maxMessageBytes } = settings
  const ask: RunContext['ask'] = (question, options) => context.ask(question, options)
  const asking = { ask, permissions, updates, subagentName: input.subagent }
  const { fs, session, elicitation, terminal } = methods.client
  const app = client({ name: 'agent-tasks' })
  let open = 0
  /** Answers requests of one method. Refuses a request if too many are open. The signal also aborts when the run is aborted. */
  const on = <Method extends ClientRequestMethod>(
    method: Method,
    answer: (params: ClientRequestParamsByMethod[Method], signal: AbortSignal) => unknown,
  ): void => {
    const handle = async ({ params, signal }: ClientRequestContext<ClientRequestParamsByMethod[Method]>) => {
      if (open >= MAX_OPEN_REQUESTS) {
        throw RequestError.invalidRequest(
          undefined,
          `at most ${MAX_OPEN_REQUESTS} requests are answered at once: wait for an answer before the next request`,
        )
      }
      open += 1
      try {
        return await answer(params, AbortSignal.any([signal, cancelSignal]))
      } finally {
        open -= 1
      }
    }
    app.onRequest(method, handle as unknown as ClientRequestHandlersByMethod[Method])
  }
  on(session.requestPermission, (params, signal) => answerPermission(asking, params, signal))
  on(elicitation.create, (params, signal) => answerElicitation(ask, params, signal))
  const can = capabilitiesOf(turn)
  const read = async (params: ReadTextFileRequest) => ({ content: await readTextFile(folder, params, maxMessageBytes) })
  if (can.fs.readTextFile) on(fs.readTextFile, read)
  if (can.fs.writeTextFile) on(fs.writeTextFile, ({ path, content }) => writeTextFile(folder, path, content))
  if (terminals !== undefined) {
    on(terminal.create, (params) => ({ terminalId: terminals.create(params) }))
    on(terminal.output, ({ terminalId }) => terminals.output(terminalId))
    on(terminal.waitForExit, ({ terminalId }) => terminals.waitForExit(terminalId))
    on(terminal.kill, ({ terminalId }) => terminals.kill(terminalId))
    on(terminal.release, ({ terminalId }) => terminals.release(terminalId))
  }
  return app
}

const isKnown = (error: unknown): boolean => error instanceof ProcessError || error instanceof MessageTooLargeError

/** Converts an error to one that says which request failed, and why. */
function toTurnError(
  error: unknown,
  command: string,
  waitedFor: string,
  agreed: InitializeResponse | undefined,
): unknown {
  if (error instanceof ProcessError) return error
  const name = `Agent ${preview(command)}`
  const fail = (code: ConstructorParameters<typeof ProcessError>[0], message: string) =>
    new ProcessError(code, message, { command }, { cause: error })
  if (error instanceof MessageTooLargeError) {
    const limit = `maxMessageBytes (${error.maxMessageBytes} bytes)`
    return fail('ACP_PROTOCOL', `${name} was stopped: it sent a message of more than ${limit}.`)
  }
  if (!(error instanceof RequestError)) {
    const reason = oneLine(error instanceof Error ? error.message : preview(error), MAX_REASON_CHARS)
    return fail('ACP_PROTOCOL', `${name} did not answer ${waitedFor} as ACP requires: ${reason}.`)
  }
  if (error.code === AUTH_REQUIRED) {
    const ways = (agreed?.authMethods ?? []).slice(0, 10).map((method) => oneLine(method.name))
    const how = ways.length === 0 ? '' : ` It offers these ways to sign in: ${ways.join(', ')}.`
    return fail('ACP_AUTH_REQUIRED', `${name} needs a sign-in. Start it in a terminal and sign in there.${how}`)
  }
  const details = error.data === undefined ? '' : ` (${oneLine(JSON.stringify(error.data), MAX_REASON_CHARS)})`
  const reason = `${oneLine(error.message, MAX_REASON_CHARS)}${details}`
  const failedAs = RATE_LIMIT.test(reason) ? 'RATE_LIMITED' : 'ACP_FAILED'
  return fail(failedAs, `${name} answered ${waitedFor} with the error ${error.code}: ${reason}`)
}
