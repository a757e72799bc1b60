/** What is known about a client that has hooks: its names, what its hooks say and are answered, and where it keeps a conversation. */

/** The hooks that call this package. */
export const HOOK_EVENTS = ['start', 'prompt', 'stop', 'wake'] as const

export type HookEvent = (typeof HOOK_EVENTS)[number]

/** A call of a hook, in the words of this package. */
export interface HookCall {
  /**
   * - `start`: a conversation begins, or is resumed
   * - `prompt`: the model is about to get a prompt
   * - `stop`: the model has ended its turn
   * - `wake`: the same, from a hook that may wait while the client is idle
   */
  readonly event: HookEvent
  /** The client's id of the conversation. */
  readonly sessionId?: string | undefined
  /** The file in which the client keeps the conversation. The caller of a hook may name any file. */
  readonly transcriptPath?: string | undefined
  /** The text of the prompt, or the end of it. */
  readonly prompt?: string | undefined
  /** Whether the turn that has ended was continued by a hook. */
  readonly isContinued?: boolean | undefined
  /** Whether the client is to be woken with its own command (`wakeArgs`) when something is owed while it is idle. Default false. */
  readonly wakesIdle?: boolean | undefined
}

/** What a hook command prints, and how it exits. */
export interface HookOutput {
  readonly stdout: string
  readonly stderr?: string
  /** Default 0. */
  readonly exitCode?: number
}

/** The process of a client: its arguments, and the variables that it has given to the server. */
export interface ClientProcess {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

export const CLIENT_NAMES = ['claude', 'codex', 'gemini', 'opencode', 'qwen', 'copilot'] as const

export type ClientName = (typeof CLIENT_NAMES)[number]

/** One client. */
export interface HookClient {
  readonly name: ClientName
  readonly title: string
  /** The version with which all of this was seen. */
  readonly seen: string
  /** Whether this is the name of the client in `initialize` (MCP, `clientInfo`). */
  readonly isNamed: (clientInfoName: string) => boolean
  /** Whether this is the command line of the client. */
  readonly isProgram: (args: readonly string[]) => boolean
  /** Whether the client ends its process with the last turn. What is unknown counts as interactive. */
  readonly isHeadless: (client: ClientProcess) => boolean
  /** The variable in which servers get the id of the conversation with which the client started. */
  readonly sessionVariable?: string
  /** Whether one connection serves several conversations. Each call of a tool then names its own. */
  readonly hasManySessions?: boolean
  /** Whether hooks call the tools, over the connection of the client. Only `wake` is a command then. */
  readonly hooksCallTools?: boolean
  /** How often hooks may continue a turn without a call of a tool in between. What a later hook answers is lost. Default: no limit */
  readonly maxContinuations?: number
  /** How long a hook may wait at the end of a turn, in ms. */
  readonly stopMs: number
  /** How long a tool may wait, in ms. */
  readonly toolMs: number
  /** Whether a hook wakes the client while it is idle. */
  readonly wakesIdle?: boolean
  /** The arguments of its program that begin a turn of an idle conversation with a message. */
  readonly wakeArgs?: (sessionId: string, message: string) => readonly string[]
  /** Makes the answer that continues a turn with this text. */
  readonly stopAnswer: (text: string) => HookOutput
  /** Makes the answer that adds this text to a prompt. Absent if a hook cannot add anything. */
  readonly promptAnswer?: (text: string) => HookOutput
  /** Makes the answer that wakes the idle client with this text. Default: that of `stop` */
  readonly wakeAnswer?: (text: string) => HookOutput
  /** The folder in which the client keeps conversations. Without it, only a later prompt proves that a text has arrived. */
  readonly transcripts?: (env: ClientProcess['env']) => string | undefined
  /** Returns the text of a line of a transcript, if the client gives that text to the model again when the conversation is resumed. */
  readonly replayedText?: (line: Readonly<Record<string, unknown>>) => unknown
}

/** The answer of a hook that has nothing to say. */
export const NOTHING: HookOutput = { stdout: '{}' }

export const printed = (value: object): HookOutput => ({ stdout: JSON.stringify(value) })

/** Whether the command line names a program. Node and Bun may run it by its path. */
export const runsProgram =
  (name: RegExp) =>
  (args: readonly string[]): boolean =>
    args.slice(0, 3).some((argument) => name.test(argument.slice(argument.search(/[^/\\]*$/))) || name.test(argument))

/** Whether the command line has one of these options, alone or with `=`. */
export const hasOption = (args: readonly string[], names: readonly string[]): boolean =>
  args.some((argument) => names.some((name) => argument === name || argument.startsWith(`${name}=`)))

/** The folder of a client: that of its variable, or one in HOME. */
export function folderIn(
  env: ClientProcess['env'],
  variable: string | undefined,
  ...inHome: readonly string[]
): string | undefined {
  const own = variable === undefined ? undefined : env[variable]
  if (own !== undefined && own !== '') return own
  const { HOME } = env
  return HOME === undefined || HOME === '' ? undefined : [HOME, ...inHome].join('/')
}
