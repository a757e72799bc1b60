/** Writes docs/agents.md. The texts around the tables are here, and the cells come from a run of the suite. */
import { ACCESS_LEVELS, type AgentPreset } from '../../src/protocol/agents/agent-preset.js'
import { AGENT_PRESETS } from '../../src/protocol/agents/presets.js'
import { cacheFolder } from './install.js'
import type { AgentRow } from './rows.js'

const intro = `# Coding agents

<!-- Made by \`npm run test:agents -- --write\`. Change the texts in test/agents/page.ts and run it again. -->

What real coding agents do as [subagents](subagents.md#coding-agents-as-programs), seen with the versions below and a scripted model. \`npm run test:agents\` tries it again.`

const facts = `## What the presets do

- **Access.** \`access\` is \`read\` (the default), \`write\` (the agent may also change files of its folder) or \`full\`. It comes from the options of the host or the configuration. No parameter of a tool changes it. The agent's own options enforce it.
- **Denied.** \`denied\` in the output lists what the agent says it was denied, and for Codex the commands that its sandbox has stopped, as far as it prints them: 0.171.0 sometimes leaves out one that ends at once. The output of the task has a line about it. The task completes.
- **Failures.** The error of a failed task begins with the reason that the agent printed. Its code is \`RATE_LIMITED\` for a rate limit, otherwise \`AGENT_FAILED\`, also if the agent exits with 0. The retry reasons are \`rate-limited\` and \`agent-error\`.
- **Results.** The last result before the end counts. An agent may print several, as Claude Code does while its background commands run. If a limit then stops it, the task completes with the last one.
- **Usage.** \`usage\` in the output has \`input_tokens\`, \`cached_input_tokens\`, \`output_tokens\` and \`cost_usd\`, as far as the agent prints them. With \`of: 'session'\` the numbers include earlier runs of the session: do not add them up.
- **Trust.** \`trust: true\` lets an agent work in a folder that it would refuse. Codex refuses folders outside of git repositories, and Gemini CLI those that its user has not trusted, so each new worktree.
- **Modes over ACP.** \`mode\` of \`acpRunner\` sets the mode of the session, \`configOptions\` other options such as the model. Both are checked against what the agent offers. Without \`mode\`, and unless \`permissions\` is \`'allow'\`, an agent that starts in a mode that does not ask is set to one that does.
- **Messages over ACP.** codex-acp sends its own warnings as a part of its answer, without a number. They cannot be separated from it.
- **Gemini CLI over ACP** loses a session that it is to load in the minute of its last turn: continue such a task later.
- **Your own agent.** \`agent\` can be an object with the [fields of a preset](configuration.md), for agents that print JSON lines.

The arguments and variables for each access:`

/** The page is also made into HTML, where a text such as `<unknown status code>` would be an element. */
const cell = (text: string): string =>
  text.replaceAll(cacheFolder, 'CACHE').replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ')

function accessCell({ access, accessEnv }: AgentPreset, level: (typeof ACCESS_LEVELS)[number]): string {
  const variables = Object.entries(accessEnv?.[level] ?? {}).map(([name, value]) => `${name}=${value}`)
  const parts = [...variables, ...access[level]]
  return parts.length === 0 ? 'nothing' : `\`${parts.join(' ')}\``
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n')

/** The page for the rows of a whole run. */
export function agentsPage(rows: readonly AgentRow[], names: readonly string[]): string {
  const heads = rows.map(({ agent, version }) => `${agent.title} ${version}`)
  const isError = (name: string): boolean => name.startsWith('error ')
  const presets = Object.entries(AGENT_PRESETS).map(([name, preset]) => [
    `\`${name}\``,
    ...ACCESS_LEVELS.map((level) => accessCell(preset, level)),
  ])
  const seen = names
    .filter((name) => !isError(name))
    .map((name) => [name, ...rows.map(({ cells }) => cells[name] ?? 'not tried')])
  const errors = rows.flatMap(({ agent, cells }) =>
    names.filter(isError).map((name) => [agent.title, name.replace('error ', ''), cells[name] ?? 'not tried']),
  )
  return `${[
    intro,
    '## What was seen',
    table(['', ...heads], seen),
    '## Errors of the API',
    'What the task shows when the API answers with a status, its code, how many requests the agent made, and how long this took. The settings of the suite allow each agent one retry.',
    table(['agent', 'status', 'the task shows'], errors),
    facts,
    table(['preset', ...ACCESS_LEVELS], presets),
  ].join('\n\n')}\n`
}
