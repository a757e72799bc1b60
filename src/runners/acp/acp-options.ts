/** The options of `acpRunner` and their validation. */
import { z } from 'zod'
import { ACP_POLICIES, TOOL_KINDS } from '../../protocol/acp-permissions.js'
import {
  aClock,
  aName,
  anything,
  checkOptions,
  integerFrom,
  numberFrom,
  oneOf,
  optionsOf,
  optionType,
  required,
  type OptionTypes,
} from '../../protocol/option-checks.js'
import { parseProcessOptions, type ProcessRunnerOptions, type ProcessSettings } from '../process-options.js'
import { checkCommandPolicy, commandPolicyTypes, type CommandPolicy } from '../../tools/command-policy.js'

/** The default of `maxMessageBytes` (4 MiB). */
const DEFAULT_MAX_MESSAGE_BYTES = 4 * 1024 * 1024

const DEFAULT_START_TIMEOUT_MS = 60_000

/**
 * The kind of a tool, as the agent reports it.
 * @useDeclaredType
 */
export type AcpToolKind = (typeof TOOL_KINDS)[number]

/** How a request for permission is answered: allow, deny, or ask the owner of the task. */
export type AcpPolicy = (typeof ACP_POLICIES)[number]

/** One policy for all tools, or one for each kind of tool. `default` is the policy for kinds that are not listed; without it, the owner is asked. */
export type AcpPermissions = AcpPolicy | Readonly<Partial<Record<AcpToolKind | 'default', AcpPolicy>>>

/** The agent to run, and what it may do without asking. `cwd` is also the folder of its session. Its requests `fs/*` can access only this folder. */
export interface AcpRunnerOptions extends Pick<
  ProcessRunnerOptions,
  'command' | 'cwd' | 'env' | 'killSignal' | 'clock'
> {
  /** The arguments of the agent, passed on unchanged without a shell. They do not contain the goal, which is sent as the prompt. */
  readonly args?: readonly string[]
  /**
   * How the agent's requests for permission are answered, for all tools or for each kind of tool. This is not a security boundary, because the agent
   * itself reports the kind of a tool.
   */
  readonly permissions: AcpPermissions
  /**
   * The mode of the session, by the id that the agent gives it. Default: with `permissions: 'allow'`, that in which the agent starts. Otherwise one in
   * which the agent asks for permission; the launch fails if the agent offers none.
   */
  readonly mode?: string
  /** Further options of the session, such as its model, by the ids that the agent gives them. */
  readonly configOptions?: Readonly<Record<string, string>>
  /**
   * The programs that the agent may start in terminals of the host. Their default `cwd` is that of the agent, but they can access other folders, too.
   * Default: no programs and no terminals.
   */
  readonly commands?: Pick<CommandPolicy, 'allow' | 'shell' | 'env' | 'cwd'>
  /**
   * The maximum size of a message from the agent, in bytes. A larger message fails the task. It is also the maximum size of a file that the agent
   * reads with `fs/read_text_file`. Default 4194304 (4 MiB).
   */
  readonly maxMessageBytes?: number
  /** How long the agent may take to start its session, in ms. Default 60000. */
  readonly startTimeoutMs?: number
  /**
   * How long the agent may take to stop after `session/cancel`, in ms. Then it gets `killSignal`, and after the same time its process group is
   * killed. Default 4000.
   */
  readonly graceMs?: number
}

/** The options with their defaults. */
export interface AcpSettings {
  readonly program: ProcessSettings
  readonly permissions: AcpPermissions
  readonly commands: AcpRunnerOptions['commands']
  readonly mode: string | undefined
  readonly configOptions: Readonly<Record<string, string>>
  readonly maxMessageBytes: number
  readonly startTimeoutMs: number
}

const aPolicy = oneOf(ACP_POLICIES)

const byKind = optionsOf(
  Object.fromEntries([...TOOL_KINDS, 'default'].map((kind) => [kind, aPolicy])) as OptionTypes<
    Exclude<AcpPermissions, string>
  >,
)

const { allow, shell, env, cwd } = commandPolicyTypes

const optionTypes: OptionTypes<AcpRunnerOptions> = {
  command: required(aName),
  // `parseProcessOptions` checks these options.
  args: anything,
  cwd: anything,
  env: anything,
  graceMs: anything,
  killSignal: anything,
  permissions: required(
    optionType(`${aPolicy.expected}, or one of them for each kind of tool`, (error) =>
      z.union([aPolicy.schema(), byKind.schema()], error),
    ),
  ),
  mode: aName,
  configOptions: optionType('texts by the ids of options', (error) => z.record(z.string(), z.string(), error)),
  commands: optionsOf<NonNullable<AcpRunnerOptions['commands']>>({ allow, shell, env, cwd }),
  maxMessageBytes: integerFrom(1),
  startTimeoutMs: numberFrom(1),
  clock: aClock,
}

/**
 * Validates and copies the options.
 * @throws INVALID_INPUT for an invalid option
 * @throws INVALID_SETTING for a number out of its range
 */
export function parseAcpOptions(options: AcpRunnerOptions): AcpSettings {
  checkOptions(options, optionTypes)
  const { permissions, commands, mode, configOptions, startTimeoutMs = DEFAULT_START_TIMEOUT_MS, ...program } = options
  const { maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES, ...start } = program
  if (commands !== undefined) checkCommandPolicy(commands, 'options.commands')
  return {
    program: parseProcessOptions({ ...start, endDetached: true }),
    permissions: typeof permissions === 'string' ? permissions : { ...permissions },
    commands: commands && structuredClone(commands),
    mode,
    configOptions: { ...configOptions },
    maxMessageBytes,
    startTimeoutMs,
  }
}

export function policyFor(permissions: AcpPermissions, kind: AcpToolKind): AcpPolicy {
  return typeof permissions === 'string' ? permissions : (permissions[kind] ?? permissions.default ?? 'ask')
}
