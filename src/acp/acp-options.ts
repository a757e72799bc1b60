/** The options of `acpRunner` and their validation. */
import { ACP_POLICIES, TOOL_KINDS } from '../protocol/acp-permissions.js'
import {
  aClock,
  aName,
  anything,
  checkOptions,
  integerFrom,
  numberFrom,
  optionsOf,
  required,
  type OptionType,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { parseProcessOptions, type ProcessRunnerOptions, type ProcessSettings } from '../runners/process-options.js'
import { checkCommandPolicy, commandPolicyTypes, type CommandPolicy } from '../tools/command-policy.js'

/** The longest message of an agent, in bytes (4 MiB). */
const DEFAULT_MAX_MESSAGE_BYTES = 4 * 1024 * 1024

/** How long an agent may take to answer `initialize` and `session/new`, in ms. */
const DEFAULT_START_TIMEOUT_MS = 60_000

/**
 * The kind of a tool, as its agent names it.
 * @useDeclaredType
 */
export type AcpToolKind = (typeof TOOL_KINDS)[number]

/** How a request for permission is answered: `ask` asks the owner of the task. */
export type AcpPolicy = (typeof ACP_POLICIES)[number]

/** One policy for all tools, or one for each kind; `default` is for the kinds that are not named, and is `ask` unless it is given. */
export type AcpPermissions = AcpPolicy | Readonly<Partial<Record<AcpToolKind | 'default', AcpPolicy>>>

/** The agent to run, and what it may do without asking. `cwd` is also the folder of its session, and the only folder that `fs/*` can access. */
export interface AcpRunnerOptions extends Pick<
  ProcessRunnerOptions,
  'command' | 'cwd' | 'env' | 'killSignal' | 'clock'
> {
  /** Its arguments, passed unchanged without a shell. The goal is sent as the prompt. */
  readonly args?: readonly string[]
  /** How the agent's requests for permission are answered, for all tools or for each kind of tool. This is not a security boundary, because the agent itself reports the kind of a tool. */
  readonly permissions: AcpPermissions
  /**
   * The programs that it may start in terminals of the host; `cwd` defaults to that of the agent. The programs can access other folders. Default: no
   * programs and no terminals.
   */
  readonly commands?: Pick<CommandPolicy, 'allow' | 'shell' | 'env' | 'cwd'>
  /**
   * The maximum size of a message from the agent, in bytes; a larger one fails the task. Also the maximum size of a file that it reads. Default 4194304
   * (4 MiB).
   */
  readonly maxMessageBytes?: number
  /** The time limit for starting its session, in ms. Default 60000. */
  readonly startTimeoutMs?: number
  /** The time between `session/cancel` and `killSignal`, and between `killSignal` and killing its process group, in ms. Default 5000. */
  readonly graceMs?: number
}

/** The options with their defaults. */
export interface AcpSettings {
  readonly program: ProcessSettings
  readonly permissions: AcpPermissions
  readonly commands: AcpRunnerOptions['commands']
  readonly maxMessageBytes: number
  readonly startTimeoutMs: number
}

const aPolicy: OptionType = {
  expected: "'allow', 'deny' or 'ask'",
  accepts: (value) => ACP_POLICIES.some((policy) => policy === value),
}

const byKind = optionsOf(
  Object.fromEntries([...TOOL_KINDS, 'default'].map((kind) => [kind, aPolicy])) as OptionTypes<
    Exclude<AcpPermissions, string>
  >,
)

const { allow, shell, env, cwd } = commandPolicyTypes

const optionTypes: OptionTypes<AcpRunnerOptions> = {
  command: required(aName),
  // `parseProcessOptions` checks them.
  args: anything,
  cwd: anything,
  env: anything,
  graceMs: anything,
  killSignal: anything,
  permissions: required({
    expected: `${aPolicy.expected}, or one of them for each kind of tool`,
    accepts: (value) => aPolicy.accepts(value) || byKind.accepts(value),
    checkContent: (value, path) => {
      if (typeof value !== 'string') byKind.checkContent?.(value, path)
    },
  }),
  commands: optionsOf<NonNullable<AcpRunnerOptions['commands']>>({ allow, shell, env, cwd }),
  maxMessageBytes: integerFrom(1),
  startTimeoutMs: numberFrom(1),
  clock: aClock,
}

/**
 * Validates and copies the options.
 * @throws InvalidInputError or InvalidSettingError with the name of the option
 */
export function parseAcpOptions(options: AcpRunnerOptions): AcpSettings {
  checkOptions(options, optionTypes)
  const { permissions, commands, startTimeoutMs = DEFAULT_START_TIMEOUT_MS, ...program } = options
  const { maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES, ...start } = program
  if (commands !== undefined) checkCommandPolicy(commands, 'options.commands')
  return {
    program: parseProcessOptions(start),
    permissions: typeof permissions === 'string' ? permissions : { ...permissions },
    commands: commands && structuredClone(commands),
    maxMessageBytes,
    startTimeoutMs,
  }
}

/** The policy for tools of a kind. */
export function policyFor(permissions: AcpPermissions, kind: AcpToolKind): AcpPolicy {
  return typeof permissions === 'string' ? permissions : (permissions[kind] ?? permissions.default ?? 'ask')
}
