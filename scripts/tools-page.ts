/** Makes the page docs/tools.md: the tools as models receive them. A test compares the page with the file, byte for byte. */
import { toJsonSchemaTools } from '../src/tools/adapters/json-schema.js'
import { createAgentTasks } from '../src/host/agent-tasks.js'
import type { AgentTasksOptions } from '../src/host/agent-tasks-options.js'
import { promptText } from '../src/mcp/background-tasks-prompt.js'
import { createBackend } from '../src/mcp/backend.js'
import { instructionsFor } from '../src/mcp/instructions.js'
import { listed } from '../src/mcp/mcp-tool.js'
import { createTaskTools } from '../src/mcp/task-tools.js'
import type { AgentConfigInput } from '../src/protocol/agent-config.js'
import type { ToolDescriptor } from '../src/tools/tool-descriptor.js'
import { toolList } from '../src/tools/tool-list.js'

const head = `# Tools

<!-- Made by \`npm run docs:tools\` from src/tools/tool-list.ts. Change the tool and run it again. -->

What a model can call, as it gets it: from a host ([first-host.md](first-host.md)), and from the MCP server ([mcp.md](mcp.md)). Descriptions also name the configured subagents,
programs and limits. MCP clients get the same work in shorter words, because they pay for every definition with each turn; their \`check_async_tasks\` is read-only, so
that a host can ask its user before a call that changes something.`

/** The definitions of tools, by name. */
type Definitions = ReadonlyMap<string, object>

const commands = { allow: ['npm'] }
const monitors = { files: ['logs'] }
const subagent = { name: 'tests', description: 'Runs the tests.' }
const nothing = () => undefined
const taskManager = { submitTask: nothing, cancelTask: nothing, getTask: nothing } as unknown as NonNullable<
  AgentTasksOptions['taskManager']
>
const instances = [{ id: 'browser', url: 'http://127.0.0.1:9/' }]
const subagents = [{ ...subagent, command: 'npm', cwdPerCall: true }]

/** The configuration with which an MCP server lists the most tools. */
export const fullConfig: AgentConfigInput = { subagents, instances, commands, schedules: {}, monitors }

/** The whole page. */
export async function toolsPage(): Promise<string> {
  const hosted = { tests: { ...subagent, run: () => ({}) } }
  const hosts = {
    yes: await ofHost({}),
    'with `schedules`': await ofHost({ schedules: {} }),
    'with `taskManager`': await ofHost({ taskManager }),
    'with `commands`': await ofHost({ commands, subagents: hosted }),
    'with `monitors`': await ofHost({ commands, subagents: hosted, monitors }),
  }
  const servers = {
    yes: await ofServer({ subagents }),
    'with `schedules`': await ofServer({ schedules: {} }),
    'with `commands`': await ofServer({ commands }),
    'with `monitors`': await ofServer({ commands, monitors }),
    'with instances': await ofServer(fullConfig),
  }
  const table = toolList.map(({ name, summary, hints }) => {
    const cells = [`[\`${name}\`](#${name})`, summary, where(hosts, name), where(servers, name)]
    return `| ${[...cells, hints.readOnlyHint === true ? 'yes' : ''].join(' | ')} |`
  })
  const sections = toolList.map((tool) => section(tool, lastOf(hosts, tool.name), lastOf(servers, tool.name)))
  return `${[
    head,
    ['| tool | | hosts | MCP | read-only over MCP |', '|---|---|---|---|---|', ...table].join('\n'),
    ...sections,
    ...ofModels([...servers['with instances'].keys()]),
  ].join('\n\n')}\n`
}

/** Returns the tools that a host offers. */
async function ofHost(options: AgentTasksOptions): Promise<Definitions> {
  const host = createAgentTasks(options)
  const { tools } = toJsonSchemaTools(host.tools)
  await host.dispose()
  return new Map(tools.map((tool) => [tool.name, tool]))
}

/** Returns the tools that an MCP server lists. */
async function ofServer(config: AgentConfigInput): Promise<Definitions> {
  const backend = createBackend({ config })
  const tools = createTaskTools(backend, 'main').filter(({ isListed }) => isListed !== false)
  await backend.close()
  return new Map(tools.map((tool) => [tool.name, listed(tool, true)]))
}

/** The instructions and the prompt of the MCP server, which name its tools. */
function ofModels(names: readonly string[]): string[] {
  const block = (text: string): string => `\`\`\`text\n${text}\n\`\`\``
  return [
    '## The instructions of the MCP server',
    block(instructionsFor(names)),
    '## Its prompt',
    block(promptText(names)),
  ]
}

const where = (offers: Readonly<Record<string, Definitions>>, name: string): string =>
  Object.entries(offers).find(([, definitions]) => definitions.has(name))?.[0] ?? 'no'

const lastOf = (offers: Readonly<Record<string, Definitions>>, name: string): object | undefined =>
  Object.values(offers)
    .findLast((definitions) => definitions.has(name))
    ?.get(name)

function section({ name, title }: ToolDescriptor, ofHosts: object | undefined, ofMcp: object | undefined): string {
  const block = (whose: string, definition: object | undefined): string[] =>
    definition === undefined ? [] : [`${whose}:`, `\`\`\`json\n${JSON.stringify(definition, null, 2)}\n\`\`\``]
  return [`## ${name}`, `${title}.`, ...block('Hosts', ofHosts), ...block('MCP clients', ofMcp)].join('\n\n')
}
