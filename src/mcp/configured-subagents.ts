/** The subagents of the configuration: programs, each started once for a goal. */
import { resolve } from 'node:path'
import type { Clock } from '../clock.js'
import type { AgentConfig, SubagentConfig } from '../protocol/agent-config.js'
import { processRunner } from '../runners/process-runner.js'
import type { SubagentDefinition, SubagentRequest } from '../tools/subagents.js'

/** Makes the subagents, by name. Nothing is started. */
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

/** A program has one argument for all that was asked for: the goal, and below it how to go about it. */
export function promptOf(request: SubagentRequest): string {
  const { goal_prompt, behaviour_prompts = [], tool_whitelist, expected_outputs = {}, context = {} } = request
  const section = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : [`${title}\n${lines.map((line) => `- ${line}`).join('\n')}`]
  return [
    goal_prompt,
    ...section('How to go about it:', behaviour_prompts),
    ...section('Use these tools alone:', tool_whitelist ?? []),
    ...section(
      'What to return:',
      Object.entries(expected_outputs).map(([variable, meaning]) => `${variable}: ${meaning}`),
    ),
    ...section(
      'What you need to know:',
      Object.entries(context).map(
        ([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
      ),
    ),
  ].join('\n\n')
}
