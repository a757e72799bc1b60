/** The subagents of the configuration: programs, started once for each task. */
import { resolve } from 'node:path'
import type { Clock } from '../clock.js'
import type { AgentConfig, SubagentConfig } from '../protocol/agent-config.js'
import { processRunner } from '../runners/process-runner.js'
import type { SubagentDefinition, SubagentRequest } from '../tools/subagents.js'

/** Creates the subagents, by name. Starts no program. */
export function configuredSubagents(
  { subagents }: AgentConfig,
  folder: string,
  clock: Clock,
): ReadonlyMap<string, SubagentDefinition> {
  return new Map(subagents.map((subagent) => [subagent.name, toDefinition(subagent, folder, clock)]))
}

function toDefinition(subagent: SubagentConfig, folder: string, clock: Clock): SubagentDefinition {
  const { name, description, command, args, cwd = '.', env, output, maxOutputBytes, graceMs } = subagent
  const run = processRunner({
    ...{ command, args, maxOutputBytes, graceMs, clock },
    cwd: resolve(folder, cwd),
    env: Object.fromEntries(Object.entries(env).map(([variable, value]) => [variable, value ?? undefined])),
    parse: output,
  })
  return { name, description, run: (request, context) => run({ ...request, goalPrompt: promptOf(request) }, context) }
}

/** All of a request as one text, since a program takes it as one argument. */
export function promptOf(request: SubagentRequest): string {
  const { goal_prompt, behaviour_prompts = [], tool_whitelist, expected_outputs = {}, context = {} } = request
  const section = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : [`${title}\n${lines.map((line) => `- ${line}`).join('\n')}`]
  return [
    goal_prompt,
    ...section('Instructions:', behaviour_prompts),
    ...section('Use only these tools:', tool_whitelist ?? []),
    ...section(
      'Return:',
      Object.entries(expected_outputs).map(([variable, meaning]) => `${variable}: ${meaning}`),
    ),
    ...section(
      'Context:',
      Object.entries(context).map(
        ([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
      ),
    ),
  ].join('\n\n')
}
