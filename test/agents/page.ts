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
- **Denied.** \`denied\` in the output lists what the agent says it was denied, for Copilot CLI the names of the tools, and for Codex the commands that its sandbox has stopped, as far as it prints them: 0.171.0 sometimes leaves out one that ends at once. The output of the task has a line about it. The task completes.
- **Failures.** The error of a failed task begins with the reason that the agent printed. Its code is \`RATE_LIMITED\` for a rate limit, otherwise \`AGENT_FAILED\`, also if the agent exits with 0. The retry reasons are \`rate-limited\` and \`agent-error\`.
- **Results.** The last result before the end counts. An agent may print several, as Claude Code does while its background commands run. If a limit then stops it, the task completes with the last one.
- **Usage.** \`usage\` in the output has \`input_tokens\`, \`cached_input_tokens\`, \`output_tokens\` and \`cost_usd\`, as far as the agent prints them. With \`of: 'session'\` the numbers include earlier runs of the session: do not add them up.
- **Trust.** \`trust: true\` lets an agent work in a folder that it would refuse. Codex refuses folders outside of git repositories, and Gemini CLI those that its user has not trusted, so each new worktree. Copilot CLI works in any folder, and reads the skills and agents of one only if it is trusted.
- **Modes over ACP.** \`mode\` of \`acpRunner\` sets the mode of the session, \`configOptions\` other options such as the model. Both are checked against what the agent offers. Without \`mode\`, and unless \`permissions\` is \`'allow'\`, an agent that starts in a mode that does not ask is set to one that does.
- **Messages over ACP.** codex-acp sends its own warnings as a part of its answer, without a number. They cannot be separated from it.
- **Gemini CLI over ACP** destroys a session that it loads in the minute in which it was created. A task that is continued in the minute of its end waits for the next one. When it starts in the same folder, it also removes each session that it has once loaded, so that a task can be continued only once: set \`general.sessionRetention.enabled\` to false in its settings, as the suite does.
- **opencode over ACP** runs commands without asking unless its configuration says otherwise. The suite sets \`OPENCODE_PERMISSION={"edit":"ask","bash":"ask"}\`.
- **Copilot CLI** puts asterisks in place of its API key wherever a text has it. A key such as \`ollama\` changes answers that have this word.
- **Questions of the model over ACP** reach the owner of the task, also those that Qwen Code sends as requests for permission.
- **Your own agent.** \`agent\` can be an object with the [fields of a preset](configuration.md), for agents that print JSON lines.`

const sections = `The sections below have, for each agent: the arguments and variables that \`access\` stands for; the files that it has written under a new HOME after one goal; the requests, the size of the first one and the time of a new session and of one that is continued; and what the task shows when the API answers with a status, with its code, the requests and the time. The settings of the suite allow an agent one retry where it has such a setting.`

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

const isError = (name: string): boolean => name.startsWith('error ')

/** The cases of an agent's own section. */
const isOwn = (name: string): boolean => isError(name) || name === 'writes' || name === 'costs'

/** A table with a column for each row of the run. Cases that say the same of all agents are left out. */
function overview(rows: readonly AgentRow[], names: readonly string[]): string {
  const seen = names
    .filter((name) => !isOwn(name))
    .map((name) => [name, ...rows.map(({ cells }) => cells[name] ?? 'not tried')])
    .filter(
      ([, first, ...others]) =>
        others.length === 0 || !NOTHING.test(first ?? '') || others.some((one) => one !== first),
    )
  return table(['', ...rows.map(({ agent, version }) => `${agent.title} ${version}`)], seen)
}

/** Cells that say only that a case does not apply. */
const NOTHING = /^(no such option|nobody is asked|by `mode`)/

const WAYS = { program: 'as a program', ACP: 'over ACP' } as const

/** The section of the agents of one group. */
function section(rows: readonly AgentRow[], names: readonly string[]): string {
  const [first] = rows
  const ways = rows.map(({ agent, version }) =>
    agent.title === first?.agent.title ? `${WAYS[agent.way]} (${version})` : `${agent.title} ${version}`,
  )
  const cells = (name: string): readonly string[] => rows.map((row) => row.cells[name] ?? 'not tried')
  const facts = [
    ['a goal writes', ...cells('writes')],
    ['requests to the model', ...cells('costs')],
    ...names.filter(isError).map((name) => [`the API answers ${name.replace('error ', '')}`, ...cells(name)]),
  ]
  const preset = rows.find(({ agent }) => agent.preset !== undefined)?.agent.preset
  return [
    `## ${first?.agent.title ?? ''}`,
    ...(preset === undefined ? [] : [accessTable(preset)]),
    table(['', ...ways], facts),
  ].join('\n\n')
}

const accessTable = (name: keyof typeof AGENT_PRESETS): string =>
  table(
    ['`access`', ...ACCESS_LEVELS],
    [[`\`agent: '${name}'\``, ...ACCESS_LEVELS.map((level) => accessCell(AGENT_PRESETS[name], level))]],
  )

/** The page for the rows of a whole run. */
export function agentsPage(rows: readonly AgentRow[], names: readonly string[]): string {
  const groups = [...new Set(rows.map(({ agent }) => agent.group))]
  const of = (way: 'program' | 'ACP') => rows.filter(({ agent }) => agent.way === way)
  return `${[
    intro,
    '## As programs',
    overview(of('program'), names),
    '## Over ACP',
    overview(of('ACP'), names),
    facts,
    sections,
    ...groups.map((group) =>
      section(
        rows.filter(({ agent }) => agent.group === group),
        names,
      ),
    ),
  ].join('\n\n')}\n`
}
