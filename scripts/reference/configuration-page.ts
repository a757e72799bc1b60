/** Makes docs/configuration.md: the settings of the task server and of `agent-tasks.config.json`, from their schemas. */
import { z } from 'zod'
import { agentConfigJsonSchema } from '../../src/protocol/agent-config.js'
import { serverConfigSchema } from '../../src/protocol/server-config.js'
import { defaultsIn, literalOf, splitDefault } from './defaults.js'
import { table } from './table.js'

/** The parts of a JSON Schema that the tables use. `expected` and `env` are metadata of the server's settings. */
interface Schema {
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly expected?: string
  readonly env?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly required?: readonly string[]
}

const intro = `# Configuration

<!-- Made by \`npm run docs:options\` from the schemas. Change them and run it again. -->

Two programs read a file of settings: the task server, and the MCP server with its workers. Both refuse unknown settings and invalid values when they start.

The files are JSON. They may have comments (\`//\` and \`/* */\`) and a comma after the last item, and editors show these without warnings in a file that ends with \`.jsonc\`.`

const serverIntro = `## The task server

\`agent-tasks serve\` and [\`startTaskServer\`](options.md#starttaskserver) take each setting from the first source that has it: the options in code, the environment
variable, the JSON file that \`--config\` or \`CONFIG_FILE\` names, the default. In the file, a dot is a level: \`tasks.wsPort\` is \`{ "tasks": { "wsPort": 3400 } }\`.
Lists in variables are separated by commas.`

const agentIntro = `## agent-tasks.config.json

The subagents, instances and limits of \`agent-tasks mcp\` and \`agent-tasks worker\`; see [MCP](mcp.md). The same as JSON Schema, for editors:
[agent-tasks.config.schema.json](../agent-tasks.config.schema.json).

\`agent-tasks config set FIELD VALUE\` prints the file with another value in one field, such as \`subagents[0].timeoutSeconds\`. With \`--write\` it changes the file. Comments and the rest of the text stay, and a
result that is not valid is refused. A file that had to be trusted has to be trusted again.`

/** Returns the page, and a problem for each setting without a description. */
export function configurationPage(): { readonly page: string; readonly problems: readonly string[] } {
  const problems: string[] = []
  const server = z.toJSONSchema(serverConfigSchema, { io: 'input', unrepresentable: 'any' }) as Schema
  const page = [
    intro,
    serverIntro,
    serverTable(server, problems),
    agentIntro,
    ...agentTables('', agentConfigJsonSchema(), problems),
  ]
  return { page: `${page.join('\n\n')}\n`, problems }
}

function serverTable(schema: Schema, problems: string[]): string {
  const rows = (part: Schema, above: string): string[][] =>
    Object.entries(part.properties ?? {}).flatMap(([key, setting]) => {
      const name = above + key
      if (setting.properties !== undefined) return rows(setting, `${name}.`)
      const { env, expected = '', description = '' } = setting
      if (description === '') problems.push(`the server's setting ${name} has no description`)
      const { value, meaning } = splitDefault(description)
      const fallback = setting.default === undefined ? value : shown(setting.default)
      return [[`\`${name}\``, env === undefined ? '' : `\`${env}\``, expected, fallback, meaning]]
    })
  return table(['setting', 'variable', 'value', 'default', 'meaning'], rows(schema, ''))
}

function agentTables(path: string, { properties = {}, required = [] }: Schema, problems: string[]): string[] {
  const inner: string[] = []
  const rows = Object.entries(properties).map(([key, setting]) => {
    const name = path === '' ? key : `${path}.${key}`
    if ((setting.description ?? '') === '' && setting.properties === undefined && setting.items === undefined) {
      problems.push(`the setting ${name} has no description`)
    }
    const { value, meaning } = splitDefault(setting.description ?? setting.items?.description ?? '')
    const object = setting.properties === undefined ? setting.items : setting
    if (object?.properties !== undefined) {
      const title = object === setting ? name : `${name}[]`
      inner.push(`### \`${title}\``, ...(meaning === '' ? [] : [meaning]), ...agentTables(title, object, problems))
    }
    const isGiven = setting.default !== undefined && !isEmptyObject(setting.default)
    const literal = isGiven ? undefined : literalOf(value)
    if (literal !== undefined && inCode.get(key)?.has(literal) !== true) {
      problems.push(`the setting ${name} is described with the default ${literal}, which the code does not have`)
    }
    const fallback = isGiven ? shown(setting.default) : required.includes(key) ? 'required' : value
    return [`\`${key}\``, fallback, meaning]
  })
  return [table(['setting', 'default', 'meaning'], rows), ...inner]
}

/** The defaults of settings whose schema does not have them. */
const inCode = defaultsIn(['src/mcp/backend.ts'])

const isEmptyObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0

const shown = (value: unknown): string => `\`${JSON.stringify(value)}\``
