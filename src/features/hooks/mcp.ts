/**
 * The hooks of MCP clients. A client calls two tools that are in no list (`agent_tasks_stop`, `agent_tasks_prompt`), or runs `agent-tasks hook`, which
 * reaches a server over stdio by its socket.
 */
import { describeFailure } from '../../protocol/outcomes.js'
import { identityOf } from '../../system/process-identity.js'
import type { Connection, ConnectionPart, McpFeature, RoutedCall, ToolRequest } from '../../mcp/mcp-feature.js'
import type { ResultArrival } from '../../mcp/follow-ups.js'
import { TOOLS } from '../../tools/tool-list.js'
import { findClientProcess, type FoundClient } from './client-process.js'
import { clientNamed, HOOK_CLIENTS, ONE_SHOT_CLIENTS } from './clients.js'
import {
  NOTHING,
  type ClientName,
  type HookCall,
  type HookClient,
  type HookEvent,
  type HookOutput,
} from './hook-client.js'
import { hookDeliveries } from './hook-deliveries.js'
import { hookFolder } from './hook-folder.js'
import { readHookInput } from './hook-input.js'
import { openHookServer, type HookServer } from './hook-server.js'
import { HookSession, type HookAnswer } from './hook-session.js'
import { SESSION_ARGUMENT } from './session-argument.js'
import { wakeIdle } from './idle-wake.js'
import { isInTranscript, isTranscript } from './transcript.js'

/** The tools that clients call in a hook of the type `mcp_tool`, and the events that they stand for. */
const HOOK_TOOLS: Readonly<Record<string, HookEvent>> = {
  agent_tasks_stop: 'stop',
  agent_tasks_prompt: 'prompt',
}

/** The maximum number of conversations of one connection, and of all connections that end with each request. */
const MAX_SESSIONS = 1000

interface Answered {
  readonly output: HookOutput
  readonly end: HookAnswer['end']
}

const nothing: Answered = { output: NOTHING, end: () => undefined }

/** The conversations of clients whose requests have no connection in common (streamable HTTP since 2026-07-28), by the owners of their tasks. */
const sharedByApp = new WeakMap<Connection['app'], Map<string, HookSession>>()

function sharedSessions(app: Connection['app']): Map<string, HookSession> {
  const sessions = sharedByApp.get(app) ?? new Map<string, HookSession>()
  sharedByApp.set(app, sessions)
  return sessions
}

class HookConnection implements ConnectionPart {
  readonly #connection: Connection
  /** The conversations, by the owners of their tasks. */
  readonly #sessions: Map<string, HookSession>
  #client: HookClient | undefined
  #isOneShot = false
  /** Whether the client is woken with its own command. Its hook at the end of a turn says so. */
  #wakesIdle = false
  #process: FoundClient | undefined
  #server: HookServer | undefined
  #isClosed = false

  constructor(connection: Connection) {
    this.#connection = connection
    this.#sessions = connection.isLasting ? new Map<string, HookSession>() : sharedSessions(connection.app)
  }

  get awaitsConversation(): boolean {
    const { caller, identity } = this.#connection
    return this.#client !== undefined && caller.isLocal === true && identity?.sessionId === undefined
  }

  named(clientName: string): void {
    if (this.#client !== undefined) return
    this.#isOneShot = ONE_SHOT_CLIENTS.includes(clientName)
    this.#client = clientNamed(clientName)
    const { caller } = this.#connection
    if (this.#client === undefined || caller.isLocal !== true) return
    const { sessionVariable, name } = this.#client
    this.#identify(name, sessionVariable === undefined ? undefined : process.env[sessionVariable])
    if (process.platform !== 'win32') void this.#listen(this.#client)
  }

  route({ name, args, meta }: ToolRequest): RoutedCall {
    const { caller } = this.#connection
    const { [SESSION_ARGUMENT]: added, ...own } = args
    const isAdded = this.#client?.name === 'opencode' && this.#server !== undefined && typeof added === 'string'
    const { threadId } = meta
    const id = isAdded ? added : this.#client?.name === 'codex' && typeof threadId === 'string' ? threadId : undefined
    const owner = id === undefined ? caller.owner : this.#ownerOf(id)
    this.#sessions.get(owner)?.toolCalled()
    return { owner, args: this.#withinLimit(name, isAdded ? own : args), arrival: this.#arrivalOf(owner) }
  }

  call({ name, args, meta }: ToolRequest, signal: AbortSignal): ReturnType<NonNullable<ConnectionPart['call']>> {
    const event = Object.hasOwn(HOOK_TOOLS, name) ? HOOK_TOOLS[name] : undefined
    const { caller } = this.#connection
    if (event === undefined || caller.isAnonymous) return undefined
    const { threadId } = meta
    // A client that names the conversation of each call itself knows better than the settings of its hooks.
    const isOther = typeof threadId === 'string' && args['session_id'] !== threadId
    return (isOther ? Promise.resolve(nothing) : this.#answer(event, args, signal)).then(({ output, end }) => ({
      text: output.stdout,
      end,
    }))
  }

  close(): void {
    this.#isClosed = true
    this.#server?.close()
    if (this.#connection.isLasting) for (const session of this.#sessions.values()) session.close()
  }

  #arrivalOf(owner: string): ResultArrival {
    const client = this.#client
    if (client === undefined || !this.#sessions.has(owner)) return this.#isOneShot ? 'never' : 'call'
    return client.wakesIdle === true || this.#isHeadless(client) || this.#wakesIdle ? 'hook' : 'prompt'
  }

  /** Shortens a wait that the client would not wait for. */
  #withinLimit(name: string, args: RoutedCall['args']): RoutedCall['args'] {
    const { timeout_seconds: seconds } = args
    const most = Math.floor((this.#client?.toolMs ?? Infinity) / 1000)
    if (name !== TOOLS.wait_for_async_tasks.name || typeof seconds !== 'number' || seconds <= most) return args
    return { ...args, timeout_seconds: most }
  }

  /** Answers a call of a hook. Rejects with INVALID_INPUT for a wrong field. */
  async #answer(event: HookEvent, input: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Answered> {
    const client = this.#client
    const { app } = this.#connection
    const call = readHookInput(event, input)
    if (client === undefined || app.backend.untrusted !== undefined) return nothing
    // A client may start its servers after its first prompt.
    if (event === 'start' || event === 'prompt' || this.#connection.identity?.sessionId === undefined) {
      this.#identify(client.name, call.sessionId)
    }
    if (event === 'start' && !app.backend.hasBegun) return nothing
    await app.begin()
    const session = this.#session(client, call)
    const before = session.id
    const { text, end } = await session.answer(call, signal)
    if (session.id !== before) this.#update()
    this.#wakesIdle ||= call.wakesIdle === true && client.wakeArgs !== undefined
    if (event === 'stop' && text === undefined && call.wakesIdle === true) void this.#wakeLater(client, session)
    return { output: text === undefined ? NOTHING : outputOf(client, event, text), end }
  }

  /** Wakes an idle conversation with the command of the client when something is owed to it. */
  async #wakeLater(client: HookClient, session: HookSession): Promise<void> {
    const { id } = session
    const { caller, app } = this.#connection
    if (caller.isLocal !== true || id === undefined || client.wakeArgs === undefined || this.#isHeadless(client)) return
    if (!(await session.isOwedWhileIdle())) return
    const problem = await wakeIdle(client, this.#found(client), id)
    if (problem !== undefined) app.backend.log('warn', `${client.title} was not woken`, problem)
  }

  #session(client: HookClient, call: HookCall): HookSession {
    const { caller, app } = this.#connection
    const owner =
      client.hasManySessions === true && call.sessionId !== undefined ? this.#ownerOf(call.sessionId) : caller.owner
    const known = this.#sessions.get(owner)
    if (known !== undefined) return known
    if (this.#sessions.size >= MAX_SESSIONS) this.#dropOldest()
    const { manager, session: store } = app.backend
    const { reminders } = app.work
    const session = new HookSession(
      {
        manager,
        owner,
        client,
        lease: () => reminders.leaseReminder({ owner }),
        isHeadless: () => this.#isHeadless(client),
        isInTranscript: (path, token) => isInTranscript(client, path, token, process.env),
        isTranscript: (path) => isTranscript(client, path, process.env),
        hasStore: store !== undefined,
      },
      client.hasManySessions === true ? call.sessionId : this.#connection.identity?.sessionId,
    )
    this.#sessions.set(owner, session)
    return session
  }

  /** Forgets the conversation that was added first. What it has not proven is owed again. */
  #dropOldest(): void {
    const [oldest] = this.#sessions
    if (oldest === undefined) return
    const [owner, session] = oldest
    session.end()
    this.#sessions.delete(owner)
  }

  /** The owner of the tasks of a conversation. The first one of a connection has the owner of the connection. */
  #ownerOf(sessionId: string): string {
    const { caller, identity } = this.#connection
    if (identity !== undefined && identity.sessionId === undefined) this.#identify(this.#client?.name, sessionId)
    return identity === undefined || identity.sessionId === sessionId ? caller.owner : `${caller.owner}/${sessionId}`
  }

  #isHeadless(client: HookClient): boolean {
    const { caller } = this.#connection
    return client.isHeadless({ args: caller.isLocal === true ? this.#found(client).args : [], env: process.env })
  }

  #found(client: HookClient): FoundClient {
    return (this.#process ??= findClientProcess(client))
  }

  /** Notes the conversation. The first one decides where tasks are stored, until the store is open. */
  #identify(client: string | undefined, sessionId: string | undefined): void {
    const { identity, app } = this.#connection
    if (identity === undefined || client === undefined) return
    const isNew = sessionId !== undefined && !identity.sessionIds.includes(sessionId)
    identity.note(client, sessionId, app.backend.hasBegun)
    if (isNew) this.#update()
  }

  /** A file that cannot be written must not take back what a call has leased. */
  #update(): void {
    try {
      this.#server?.update()
    } catch (error) {
      this.#connection.app.backend.log(
        'warn',
        'the file of this server for hooks is out of date',
        describeFailure(error),
      )
    }
  }

  async #listen(client: HookClient): Promise<void> {
    const { app, identity } = this.#connection
    const server = identityOf(process.pid)
    const clientProcess = this.#found(client).identity
    if (server === undefined || clientProcess === undefined) return
    try {
      const opened = await openHookServer({
        folder: hookFolder(),
        clock: app.backend.clock,
        describe: () => ({
          client: client.name,
          server,
          clientProcess,
          taskId: process.env['AGENT_TASK_ID'],
          sessionIds: identity?.sessionIds ?? [],
        }),
        // Any process of the user can reach the socket. The hooks of some clients come over their own connection.
        answer: async (event, input, signal) =>
          client.hooksCallTools === true && event !== 'wake'
            ? nothing
            : this.#answer(event, input, signal).catch(() => nothing),
      })
      if (this.#isClosed) opened.close()
      else this.#server = opened
    } catch (error) {
      app.backend.log('warn', `hooks of ${client.title} cannot reach this server`, describeFailure(error))
    }
  }
}

function outputOf(client: HookClient, event: HookEvent, text: string): HookOutput {
  const { stopAnswer, promptAnswer, wakeAnswer = stopAnswer } = client
  if (event === 'prompt') return promptAnswer?.(text) ?? NOTHING
  return event === 'wake' ? wakeAnswer(text) : stopAnswer(text)
}

export const mcpHooks: McpFeature = {
  connect: (manager) => {
    manager.reads.use(hookDeliveries).hasMessage = ({ client, transcriptPath }, deliveryId) => {
      const known = HOOK_CLIENTS[client as ClientName] as HookClient | undefined
      return known !== undefined && isInTranscript(known, transcriptPath, deliveryId, process.env)
    }
  },
  ofConnection: (connection) => new HookConnection(connection),
}
