/** The subagents of the configuration. Each run of a task starts the subagent's program. */
import { resolve } from 'node:path'
import type { Clock } from '../system/clock.js'
import type { OutputRunner } from '../engine/runner.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { configuredTerms, type AgentConfig, type SubagentConfig } from '../protocol/agent-config.js'
import { processRunner } from '../runners/process-runner.js'
import type { ResolvedSubagent, SubagentRequest } from '../tools/subagents.js'
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
  const runIn = (directory: string): OutputRunner => {
    if (acp !== undefined) {
      const permissions = typeof acp.permissions === 'string' ? acp.permissions : omitUndefined(acp.permissions)
      const start = { command: program, args: own, cwd: directory, env: variables, graceMs, clock }
      return configuredAcpAgent({ ...start, permissions })
    }
    return processRunner({
      command: program,
      args: agent === undefined ? args : own,
      maxOutputBytes,
      graceMs,
      survivesHost,
      clock,
      cwd: directory,
      stdin,
      questions: asks,
      isolation,
      keep,
      ...omitUndefined({ session, endDetached, agent, access, trust }),
      env: variables,
      ...(agent === undefined && { parse: output }),
    })
  }
  const standard = cwd === undefined ? projectFolder : resolve(folder, cwd)
  // Created here to check the options when the server starts, and not when the first task does.
  const runner = runIn(standard)
  return {
    ...runner,
    name,
    description,
    retry,
    maxConcurrent,
    rate,
    ...configuredTerms(subagent),
    run: (request, context) => runIn(request.cwd ?? standard).run({ ...request, goal: promptOf(request) }, context),
  }
}

/** Writes a request as one text, because a program gets it as one argument. */
export function promptOf(request: SubagentRequest): string {
  const { goal, behaviourPrompts = [], toolWhitelist = [], expectedOutputs = {}, context = {} } = request
  const section = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : [`${title}\n${lines.map((line) => `- ${line}`).join('\n')}`]
  return [
    goal,
    ...section('Instructions:', behaviourPrompts),
    ...section('Use only these tools:', toolWhitelist),
    ...section(
      'Return:',
      Object.entries(expectedOutputs).map(([variable, meaning]) => `${variable}: ${meaning}`),
    ),
    ...section(
      'Context:',
      Object.entries(context).map(
        ([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
      ),
    ),
  ].join('\n\n')
}
