/**
 * `agent-tasks.config.json`: the subagents, instances and limits of the MCP server. The schema is also published as JSON
 * Schema, so every field says what it is for.
 */
import { z } from 'zod'

/** The name of the file that is looked for when none is named. */
export const CONFIG_FILE_NAME = 'agent-tasks.config.json'

const DAY_MS = 86_400_000

const name = z
  .string()
  .max(64)
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, 'letters, digits, ".", "_" and "-", beginning with a letter or digit')

const argument = z.string().refine((value) => !value.includes('\0'), 'text without null characters')

const seconds = z
  .number()
  .max(2 ** 31)
  .refine((value) => value > 0 || value === -1, 'a number of seconds > 0, or -1 for no deadline')

const integer = (least: number, most: number) => z.int().min(least).max(most)

const subagentSchema = z
  .strictObject({
    name: name.describe('What the model calls it by.'),
    description: z.string().min(1).max(2000).describe('What it is good at: the model chooses by this.'),
    command: argument.min(1).describe('The program: a name that is looked up in PATH, or a path.'),
    args: z
      .array(argument)
      .default(['{goal}'])
      .describe(
        'Its arguments, each handed over as it is: no shell is involved. {goal}, {name} and {id} are replaced by the goal ' +
          'with its instructions, the name of the subagent and the ID of the task.',
      ),
    cwd: z
      .string()
      .min(1)
      .optional()
      .describe('The directory it runs in; a relative one starts at the folder of this file. Default: that folder.'),
    env: z
      .record(z.string(), argument.nullable())
      .default({})
      .describe('Variables that are added to the environment of the server; null takes one away.'),
    timeoutSeconds: seconds
      .optional()
      .describe('Its deadline when a call names none, in seconds; -1 for none. Default: defaultTimeoutSeconds.'),
    output: z
      .enum(['text', 'json-last-line', 'json'])
      .default('text')
      .describe('How its stdout is read: as text, as JSON in its last line, or as JSON altogether.'),
    maxOutputBytes: integer(1, 1024 ** 3)
      .default(8 * 1024 * 1024)
      .describe('How much of its stdout is kept to be read, in bytes.'),
    graceMs: integer(0, DAY_MS).default(4000).describe('How long it may take to stop before it is killed, in ms.'),
  })
  .describe('A program that the tool "task" can start.')

const instanceSchema = z
  .strictObject({
    id: name.describe('What the model calls it by.'),
    command: argument.min(1).optional().describe('The program of an MCP server that speaks over stdio.'),
    args: z.array(argument).optional().describe('The arguments of the program.'),
    cwd: z.string().min(1).optional().describe('The directory it runs in, as for subagents.'),
    env: z
      .record(z.string(), argument)
      .optional()
      .describe('Variables that are added to the few that are safe to inherit.'),
    url: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('Instead of a command: the URL of an MCP server that speaks streamable HTTP.'),
    headers: z.record(z.string(), z.string()).optional().describe('For a url: sent with every request.'),
    startTimeoutMs: integer(1, DAY_MS).default(30_000).describe('How long it may take to be ready, in ms.'),
  })
  .refine(({ command, url }) => (command === undefined) !== (url === undefined), {
    message: 'either a command or a url',
  })
  .refine(({ url, args, env, cwd }) => url === undefined || (args ?? env ?? cwd) === undefined, {
    message: 'no args, env or cwd next to a url',
  })
  .refine(({ command, headers }) => command === undefined || headers === undefined, {
    message: 'no headers next to a command',
  })
  .describe('An MCP server that the tool "submit_commands" runs commands on.')

/** Two of one name would hide each other. */
const unique =
  <T>(keyOf: (item: T) => string, key: string) =>
  (context: z.core.ParsePayload<T[]>): void => {
    const seen = new Set<string>()
    context.value.forEach((item, index) => {
      if (seen.has(keyOf(item))) {
        const message = `a ${key} that no other has`
        context.issues.push({ code: 'custom', input: context.value, path: [index, key], message })
      }
      seen.add(keyOf(item))
    })
  }

const httpSchema = z
  .strictObject({
    host: z
      .string()
      .min(1)
      .default('127.0.0.1')
      .describe('The address to listen at; any but a loopback one needs tokens.'),
    port: integer(0, 65_535).default(3500).describe('The port; 0 picks a free one.'),
    path: z
      .string()
      .regex(/^\/[^?#\s]*$/, 'a path that begins with /')
      .default('/mcp')
      .describe('Where MCP is served.'),
    tokens: z
      .array(z.string().regex(/^[\x21-\x7e]{1,4096}$/, 'visible ASCII characters'))
      .default([])
      .describe('With any, a client must send one as a bearer token. Each is a client of its own.'),
    allowedHosts: z
      .array(z.string().min(1))
      .default([])
      .describe('Names under which the server may be called besides.'),
    allowedOrigins: z.array(z.string().min(1)).default([]).describe('Origins of web pages that may use the server.'),
    sessionIdleMs: integer(1, 365 * DAY_MS)
      .default(1_800_000)
      .describe('After how long without a request a session ends, in ms, if none of its tasks runs.'),
  })
  .describe('The server over streamable HTTP (--http).')

const tasksSchema = z
  .strictObject({
    retentionMs: integer(0, 365 * DAY_MS)
      .default(3_600_000)
      .describe('How long the result of a task is kept, in ms.'),
    pollIntervalMs: integer(1, DAY_MS).default(1000).describe('How often a client should ask, in ms.'),
  })
  .describe('The Tasks extension (io.modelcontextprotocol/tasks).')

/** The whole file. */
export const agentConfigSchema = z
  .strictObject({
    $schema: z.string().optional().describe('Where the schema of this file is, for editors.'),
    maxAsyncTasks: integer(-1, 100).default(5).describe('How many background tasks may run at once; -1 for no limit.'),
    defaultTimeoutSeconds: seconds.default(900).describe('The deadline of a task that names none; -1 for none.'),
    maxTimeoutSeconds: seconds.default(1800).describe('The longest deadline that a task may name; -1 for no bound.'),
    maxMessageChars: integer(200, 10_000_000).default(20_000).describe('The most a result says, in characters.'),
    subagents: z
      .array(subagentSchema)
      .default([])
      .check(unique(({ name: key }) => key, 'name'))
      .describe('What the tool "task" can start.'),
    instances: z
      .array(instanceSchema)
      .default([])
      .check(unique(({ id }) => id, 'id'))
      .describe('What the tool "submit_commands" can run commands on.'),
    http: httpSchema.prefault({}),
    tasks: tasksSchema.prefault({}),
  })
  .check((context) => {
    const { maxTimeoutSeconds: most, defaultTimeoutSeconds, subagents } = context.value
    const isTooLong = (value: number): boolean => most !== -1 && (value === -1 || value > most)
    const report = (path: (string | number)[]): void => {
      const message = `at most maxTimeoutSeconds, which is ${most}`
      context.issues.push({ code: 'custom', input: context.value, path, message })
    }
    if (isTooLong(defaultTimeoutSeconds)) report(['defaultTimeoutSeconds'])
    subagents.forEach(({ timeoutSeconds }, index) => {
      if (timeoutSeconds !== undefined && isTooLong(timeoutSeconds)) report(['subagents', index, 'timeoutSeconds'])
    })
  })
  .meta({ title: 'Configuration of agent-tasks' })

/**
 * Every value, after defaults.
 * @useDeclaredType
 */
export type AgentConfig = z.output<typeof agentConfigSchema>

/**
 * What may be written.
 * @useDeclaredType
 */
export type AgentConfigInput = z.input<typeof agentConfigSchema>

/** A subagent as it is configured. */
export type SubagentConfig = AgentConfig['subagents'][number]

/** An instance as it is configured. */
export type InstanceConfig = AgentConfig['instances'][number]

/** The JSON Schema of the file, for editors. */
export function agentConfigJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(agentConfigSchema, { io: 'input', unrepresentable: 'any' })
  return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
}
