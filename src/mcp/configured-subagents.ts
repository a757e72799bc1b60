/** The subagents of the configuration. Each run of a task starts the subagent's program. */
import { resolve } from 'node:path'
import type { Clock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { configuredTerms, type AgentConfig, type SubagentConfig } from '../protocol/agent-config.js'
import { processRunner } from '../runners/process-runner.js'
import type { ResolvedSubagent } from '../tools/subagents.js'
import { configuredAcpAgent } from './configured-acp-agent.js'

export interface Folders {
  /** The folder of the configuration. Relative paths in the configuration start from it. */
  readonly folder: string
  /** The directory of a subagent without a `cwd`, unless the client reports a project. */
  readonly projectFolder: string
}

/** Creates the subagents, by name. Starts no program. */
export function configuredSubagents(
  { subagents }: AgentConfig,
  folders: Folders,
  clock: Clock,
): ReadonlyMap<string, ResolvedSubagent> {
  return new Map(subagents.map((subagent) => [subagent.name, toDefinition(subagent, folders, clock)]))
}

function toDefinition(subagent: SubagentConfig, { folder, projectFolder }: Folders, clock: Clock): ResolvedSubagent {
  const {
    name,
    description,
    command,
    args,
    cwd,
    env,
    output,
    maxOutputBytes,
    graceMs,
    survivesHost,
    endDetached,
    retry,
    asks,
    stdin,
  } = subagent
  const { maxConcurrent, rate, isolation, keep, session, acp, agent, access, trust } = subagent
  const isPath = command.includes('/') || (process.platform === 'win32' && command.includes('\\'))
  // A relative path of a program starts from the configuration's folder. It never starts from the directory of a call or the client's project, because
  // these may be untrusted.
  const program = isPath ? resolve(folder, cwd ?? '.', command) : command
  const variables = Object.fromEntries(Object.entries(env).map(([variable, value]) => [variable, value ?? undefined]))
  // This is the default of `args`, which is meant for other programs: agents get the goal by their protocol or preset.
  const own = args.length === 1 && args[0] === '{goal}' ? [] : args
  const directory = cwd === undefined ? projectFolder : resolve(folder, cwd)
  const shared = { command: program, cwd: directory, env: variables, graceMs, clock }
  const terms = { name, description, retry, maxConcurrent, rate, ...configuredTerms(subagent) }
  if (acp !== undefined) {
    const permissions = typeof acp.permissions === 'string' ? acp.permissions : omitUndefined(acp.permissions)
    return { ...configuredAcpAgent({ ...shared, args: own, permissions }), ...terms }
  }
  const runner = processRunner({
    ...shared,
    args: agent === undefined ? args : own,
    maxOutputBytes,
    survivesHost,
    stdin,
    questions: asks,
    isolation,
    keep,
    ...omitUndefined({ session, endDetached, agent, access, trust }),
    ...(agent === undefined && { parse: output }),
  })
  return { ...runner, ...terms }
}
