/** Starts and stops the page. */
import { AsyncTaskManager } from '../async-tasks/manager.js'
import { DEFAULT_OWNER } from '../async-tasks/owner.js'
import { isolateReport, reportToConsole, type OnError } from '../isolation/error-report.js'
import { systemClock, type Clock } from '../system/clock.js'
import { TaskManager } from '../command-tasks/task-manager.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidInputError, InvalidSettingError } from '../errors.js'
import type { AgentTasks } from '../host/agent-tasks.js'
import { createAccess } from '../server/http/access.js'
import type { SendEvent } from '../server/http/post-event.js'
import { createServer, listen, stopListening, urlOf } from '../server/http/listening.js'
import {
  aBoolean,
  aClock,
  aFunction,
  aName,
  anything,
  aPort,
  aSecret,
  checkOptions,
  integerFrom,
  oneOf,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { isLoopback } from '../protocol/server-config.js'
import { packageVersion } from '../system/version.js'
import { limitConnections } from './connection-limits.js'
import { offerOf } from './launch.js'
import { PageState } from './page-state.js'
import { createRouter } from './router.js'
import { createStaticFiles, pageFolder } from './static-files.js'
import { Streams } from './streams.js'
import { isToken, randomToken, tokenOfFile, TOKEN_WORDS } from './token-file.js'
import { checkTraceUrl } from './trace-link.js'

/** Options of `createTaskPage`. At least one of `tasks` and `taskManager` is needed. */
export interface TaskPageOptions {
  /** The background tasks of an agent host: the result of `createAgentTasks`, or its AsyncTaskManager. */
  readonly tasks?: AgentTasks | AsyncTaskManager
  /** The manager of command tasks and their instances. */
  readonly taskManager?: TaskManager
  /** The port to listen on; 0 picks a free one. Default 3320. */
  readonly port?: number
  /** The loopback address to listen on. Default `127.0.0.1`. */
  readonly host?: string
  /** The secret that every request for data must contain. The `url` of the page contains it, too. Default: a random one. */
  readonly token?: string
  /**
   * A file with the token, so that a link to the page stays valid when the page restarts. If the file does not exist, the page creates it with a random
   * token, and only the file's owner can read it. Default: none.
   */
  readonly tokenFile?: string
  /**
   * The maximum number of tasks that the page keeps. When there are more, the page drops the task that ended first. Tasks that have not ended count, but
   * are never dropped. Default 10000.
   */
  readonly maxTasks?: number
  /** The maximum size of the tasks that the page keeps, in bytes. When they are larger, the page drops the task that ended first. Default 64 MiB. */
  readonly maxBytes?: number
  /** The address of the task server's REST interface. The page uses it in the code under `Copy as`. Default: none. */
  readonly restUrl?: string
  /**
   * Whether that REST interface needs a token. If so, the code under `Copy as` reads the token from the environment variable `AGENT_TASKS_TOKEN`.
   * Default false.
   */
  readonly hasRestTokens?: boolean
  /**
   * The template for the address of a task's trace, such as `https://jaeger.example/trace/{trace_id}`. It may also contain `{span_id}`. The host needs
   * the option `telemetry`. Default: none.
   */
  readonly traceUrl?: string
  /** What an empty list on the page suggests: calls of this package (`code`), or prompts for the agent of an MCP client (`mcp`). Default `code`. */
  readonly hints?: 'code' | 'mcp'
  /** The source of time, for tests. Default: the system clock. */
  readonly clock?: Clock
  /** Called with an error that occurred in the page's server. Default: `console.error`. */
  readonly onError?: OnError
}

const optionTypes: OptionTypes<TaskPageOptions> = {
  // `managerOf` and `taskManagerOf` check these two.
  tasks: anything,
  taskManager: anything,
  port: aPort,
  host: aName,
  token: aSecret,
  tokenFile: aName,
  maxTasks: integerFrom(1),
  maxBytes: integerFrom(1),
  restUrl: aName,
  hasRestTokens: aBoolean,
  traceUrl: aName,
  hints: oneOf(['code', 'mcp']),
  clock: aClock,
  onError: aFunction,
}

/** A running page. */
export interface TaskPage {
  /** The address of the page. The fragment contains the token, because browsers do not send fragments to servers. */
  readonly url: string
  /** Stops the server of the page and closes its connections. The tasks continue. Further calls return the same promise. */
  close(): Promise<void>
  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

const DEFAULT_PORT = 3320
const DEFAULT_MAX_TASKS = 10_000
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

/**
 * Serves a page that shows tasks live and acts on them. The server listens on a loopback address only.
 * @throws INVALID_INPUT if an option is unknown, wrong or missing
 * @throws INVALID_SETTING if the port is in use, or if `host` is not a loopback address
 */
export async function createTaskPage(options: TaskPageOptions): Promise<TaskPage> {
  checkOptions(options, optionTypes)
  const manager = managerOf(options.tasks)
  const taskManager = taskManagerOf(options.taskManager)
  if (manager === undefined && taskManager === undefined) {
    throw new InvalidInputError('options.tasks', undefined, 'the result of createAgentTasks, or options.taskManager')
  }
  const {
    host = '127.0.0.1',
    port = DEFAULT_PORT,
    clock = systemClock,
    maxTasks = DEFAULT_MAX_TASKS,
    restUrl,
    hasRestTokens = false,
    traceUrl,
    tokenFile,
    hints = 'code',
  } = options
  if (traceUrl !== undefined) checkTraceUrl(traceUrl, 'options.traceUrl')
  if (options.token !== undefined && !isToken(options.token)) {
    throw new InvalidInputError('options.token', '(not shown)', TOKEN_WORDS)
  }
  if (options.token !== undefined && tokenFile !== undefined) {
    throw new InvalidInputError('options.tokenFile', tokenFile, 'nothing, because options.token has a value')
  }
  if (!isLoopback(host)) throw new InvalidSettingError('host', host, 'a loopback address, such as 127.0.0.1')
  const token = options.token ?? (tokenFile === undefined ? randomToken() : tokenOfFile(tokenFile, 'options.tokenFile'))
  const report = isolateReport(options.onError ?? reportToConsole)
  let bound = port
  const state = new PageState({
    manager,
    taskManager,
    maxTasks,
    maxBytes: options.maxBytes ?? DEFAULT_MAX_BYTES,
    now: () => clock.now(),
  })
  try {
    const onFailure = (error: unknown): void => report(error, { source: 'page' })
    const streams = new Streams({
      state,
      clock,
      onFailure,
      hello: () => ({
        version: packageVersion,
        hasAsync: manager !== undefined,
        hasCommands: taskManager !== undefined,
        canLaunch: offerOf({ manager }) !== undefined,
        maxTasks,
        hints,
        ...omitUndefined({ restUrl }),
      }),
    })
    const access = createAccess({
      host,
      allowedHosts: [],
      origins: [],
      tokens: [token],
      pages: () => ({ scheme: 'http', ports: [bound] }),
    })
    const server = createServer(undefined, (request, response) => serve(request, response))
    const connections = limitConnections(server)
    const serve = createRouter({
      access,
      streams,
      connections,
      onFailure,
      files: createStaticFiles(pageFolder()),
      sources: {
        state,
        manager,
        taskManager,
        restUrl,
        hasRestTokens,
        traceUrl,
        emit: manager && emitWith(options.tasks, manager),
      },
    })
    bound = await listen(server, host, port, { host: 'host', port: 'port' })
    let closing: Promise<void> | undefined
    const close = (): Promise<void> =>
      (closing ??= (async () => {
        state.stop()
        streams.close()
        const stopped = stopListening(server)
        connections.destroyAll()
        await stopped
      })())
    return {
      url: `${urlOf('http', host, bound)}/#token=${encodeURIComponent(token)}`,
      close,
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    state.stop()
    throw error
  }
}

/** @throws INVALID_INPUT if the value is neither a host nor a manager */
function managerOf(tasks: unknown): AsyncTaskManager | undefined {
  if (tasks === undefined) return undefined
  const { getAsyncTaskManager } = Object(tasks) as Partial<AgentTasks>
  const manager: unknown = typeof getAsyncTaskManager === 'function' ? getAsyncTaskManager() : tasks
  if (manager instanceof AsyncTaskManager && canBeRead(() => manager.getAllTasks())) return manager
  throw new InvalidInputError('options.tasks', tasks, 'the result of createAgentTasks, or an AsyncTaskManager')
}

function emitWith(tasks: TaskPageOptions['tasks'], manager: AsyncTaskManager): SendEvent {
  const host = tasks === manager ? undefined : (tasks as AgentTasks)
  return (event, value, taskId) => {
    if (taskId !== undefined) return manager.emit(event, value, { taskId })
    return host === undefined ? manager.emit(event, value, { owner: DEFAULT_OWNER }) : host.emit(event, value)
  }
}

function taskManagerOf(taskManager: unknown): TaskManager | undefined {
  if (taskManager === undefined) return undefined
  if (taskManager instanceof TaskManager && canBeRead(() => taskManager.listTasks())) return taskManager
  throw new InvalidInputError('options.taskManager', taskManager, 'a TaskManager')
}

/** A proxy of a manager passes `instanceof`, but has no private fields, so reading from it throws. */
function canBeRead(read: () => unknown): boolean {
  try {
    read()
    return true
  } catch {
    return false
  }
}
