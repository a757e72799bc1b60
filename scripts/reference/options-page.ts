/**
 * Makes docs/options.md: the options of `createAgentTasks`, `startTaskServer`, `connectInstance` and `createTaskClient`, from their TSDoc comments, with
 * the defaults in the code.
 */
import { managerOptionTypes } from '../../src/async-tasks/manager-options.js'
import { autoTriggerOptionTypes } from '../../src/features/delivery/auto-trigger.js'
import { settingDefinitions } from '../../src/async-tasks/settings.js'
import { agentTasksOptionTypes } from '../../src/host/agent-tasks-options.js'
import type { OptionType } from '../../src/protocol/option-checks.js'
import { commandPolicyTypes } from '../../src/tools/command-policy.js'
import { defaultsIn, literalOf, splitDefault } from './defaults.js'
import { commentOf, interfaceIn, membersOf, typeOfMember, type Documented } from './source.js'
import { table } from './table.js'

/** A table of options. */
interface OptionGroup {
  readonly title: string
  readonly intro: string
  /** The interfaces that have the options. If two have the same option, the first one is used. */
  readonly interfaces: readonly (readonly [file: string, name: string])[]
  /** What the code accepts, and the defaults. Without it, the table has no such column. */
  readonly types?: Readonly<Record<string, OptionType>>
  /** Options of the interfaces that are in another table. */
  readonly except?: readonly string[]
  /** Without `types`: the files whose code has the defaults. */
  readonly defaults?: readonly string[]
}

const managerFile = 'src/async-tasks/manager-options.ts'
const hostFile = 'src/host/agent-tasks-options.ts'

/** The groups of options of a manager, such as `queue`. The TSDoc of the interface of a group is the text above its table. */
const managerGroups: readonly OptionGroup[] = Object.entries<OptionType>(managerOptionTypes).flatMap(
  ([name, { types }]) => {
    const type = typeOfMember(managerFile, 'AsyncTaskManagerOptions', name)
    if (types === undefined || type === undefined) return []
    return { title: `\`${name}\``, intro: linked(commentOf(interfaceIn(...type))), interfaces: [type], types }
  },
)

const groups: readonly OptionGroup[] = [
  {
    title: '`createAgentTasks`',
    intro:
      'Exported by `agent-tasks`. All options may be left out. `AsyncTaskManager` takes those that concern no tools and no agent.',
    interfaces: [
      [hostFile, 'AgentTasksOptions'],
      [managerFile, 'AsyncTaskManagerOptions'],
    ],
    types: agentTasksOptionTypes,
    except: ['maxCommands'],
  },
  ...managerGroups,
  {
    title: '`commands`',
    intro: 'Which programs the tool `run_command` may start. See [MCP](mcp.md).',
    interfaces: [
      [hostFile, 'CommandsOptions'],
      ['src/tools/command-policy.ts', 'CommandPolicy'],
    ],
    types: { ...commandPolicyTypes, maxCommands: managerOptionTypes.maxCommands },
  },
  {
    title: '`autoTrigger`',
    intro: 'The timing of deliveries.',
    interfaces: [['src/features/delivery/auto-trigger.ts', 'AutoTriggerOptions']],
    types: autoTriggerOptionTypes,
    except: ['owner'],
    // The default of `maxWaitMs` depends on another option.
    defaults: ['src/features/delivery/auto-trigger.ts'],
  },
]

const serverGroup: OptionGroup = {
  title: '`startTaskServer`',
  intro:
    'Exported by `agent-tasks/server`. It takes these options, and every setting of [the server](configuration.md#the-task-server), such as ' +
    '`{ port: 0, tasks: { wsPort: 0 } }`.',
  interfaces: [['src/server/start-task-server.ts', 'TaskServerOptions']],
  defaults: ['src/server/start-task-server.ts'],
}

const clientGroups: readonly OptionGroup[] = [
  {
    title: '`connectInstance`',
    intro: 'Exported by `agent-tasks/client`: a [worker](write-an-instance.md) of a server.',
    interfaces: [['src/client/connect-instance.ts', 'ConnectInstanceOptions']],
    defaults: ['src/client/connect-instance.ts'],
  },
  {
    title: '`createTaskClient`',
    intro: 'Exported by `agent-tasks/client`: a client of a server.',
    interfaces: [['src/client/task-client.ts', 'TaskClientOptions']],
    defaults: ['src/client/task-client.ts'],
  },
]

/** Makes links of the documents that a comment names, such as `docs/schedules.md`. */
function linked(text: string): string {
  return text.replace(/\bdocs\/(([\w-]+)\.md(?:#[\w-]+)?)/g, '[$2]($1)')
}

/** Returns the page, and the problems of the descriptions. */
export function optionsPage(): { readonly page: string; readonly problems: readonly string[] } {
  const problems: string[] = []
  const settings = table(
    ['setting', 'default', 'meaning'],
    Object.entries(settingDefinitions).map(([name, { description, default: value }]) => [
      `\`${name}\``,
      `\`${value}\``,
      description,
    ]),
  )
  const [first, ...others] = groups.map((group) => section(group, problems))
  const page = [
    '# Options',
    '<!-- Made by `npm run docs:options` from the sources. Change the TSDoc there and run it again. -->',
    'The options of the functions with which most programs begin. The API reference (`npm run docs:api`) has those of all others, with their types.',
    first,
    '### `settings`',
    'Fields of the option `settings`. They suit values of a settings file: a number may also be a text, such as `"5"`.',
    settings,
    ...others.map((text) => `#${text}`),
    section(serverGroup, problems),
    ...clientGroups.map((group) => section(group, problems)),
  ]
  return { page: `${page.join('\n\n')}\n`, problems }
}

function section(
  { title, intro, interfaces, types, except = [], defaults = [] }: OptionGroup,
  problems: string[],
): string {
  const inCode = defaultsIn(defaults)
  const members = new Map<string, Documented>()
  for (const [file, name] of [...interfaces].reverse()) {
    for (const member of membersOf(file, name)) if (!except.includes(member.name)) members.set(member.name, member)
  }
  const unknown = types === undefined ? [] : Object.keys(types).filter((name) => !members.has(name))
  for (const name of unknown) if (!except.includes(name)) problems.push(`${title} accepts ${name}, which has no TSDoc`)
  const rows = [...members.values()].map(({ name, text }) => {
    const { value, meaning } = splitDefault(text)
    const literal = literalOf(value)
    if (text === '') problems.push(`${title}: ${name} has no description`)
    const inTable = types?.[name]?.default
    const found = isScalar(inTable) ? [String(inTable)] : [...(inCode.get(name) ?? [])]
    if (literal !== undefined && !found.includes(literal)) {
      problems.push(
        `${title}: ${name} is documented with the default ${literal}; the code has ${found.join(', ') || 'none'}`,
      )
    }
    const fallback = value === '' && isScalar(inTable) ? `\`${String(inTable)}\`` : value
    return [`\`${name}\``, ...(types === undefined ? [] : [types[name]?.expected ?? '']), fallback, meaning]
  })
  const head = ['option', ...(types === undefined ? [] : ['value']), 'default', 'meaning']
  return [`## ${title}`, intro, table(head, rows)].join('\n\n')
}

const isScalar = (value: unknown): value is string | number | boolean =>
  value !== undefined && typeof value !== 'object'
