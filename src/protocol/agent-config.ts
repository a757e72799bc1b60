/**
 * The schema of `agent-tasks.config.json`: the subagents, instances and limits of the MCP server. It is published as JSON Schema, so every
 * field has a description.
 */
import { z } from 'zod'
import { acpPermissionsSchema } from './acp-permissions.js'
import { ACCESS_LEVELS, agentPresetSchema } from './agents/agent-preset.js'
import { AGENT_NAMES } from './agents/presets.js'
import { MAX_RATE_LIMIT, type SubagentTerms } from './async-tasks.js'
import { programSessionSchema } from './program-session.js'
import { monitorLimitTypes } from './monitors.js'
import { backoffTypes, RETRY_REASONS } from './retry-policy.js'
import { scheduleOptionTypes } from './schedules.js'
import { strictObject } from './strict-object.js'

/** The default name of the configuration file. */
export const CONFIG_FILE_NAME = 'agent-tasks.config.json'

/** The maximum length of a session key, in characters. */
export const MAX_SESSION_KEY = 1000

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

const { initialMs, maxMs, factor, jitter } = backoffTypes

const subagentSchema = strictObject({
  name: name.describe('The name that the model uses.'),
  description: z
    .string()
    .min(1)
    .max(2000)
    .describe('What the subagent is good at. The model chooses a subagent by this text.'),
  command: argument.min(1).describe('The program: a name in PATH, or a path.'),
  args: z
    .array(argument)
    .default(['{goal}'])
    .describe(
      'The arguments of the program, passed without a shell. {goal} is replaced by the goal of the call, with its instructions and ' +
        'context below it, {goal:file} by the path of a file with the same text, {results} by the results of the tasks in "after" (default: they follow the goal), {name} by the name of the ' +
        'subagent, and {id} by the ID of the task.',
    ),
  acp: strictObject({
    permissions: acpPermissionsSchema()
      .default('ask')
      .describe(
        'How requests of the agent for permission are answered: one policy for all tools, or one for each kind of tool. allow and deny answer at ' +
          'once. ask passes the request on as a question. A kind without a policy has the policy of "default", or else ask.',
      ),
  })
    .optional()
    .describe(
      'Set if the program is an agent that speaks the Agent Client Protocol. The goal is sent as its prompt, so args has no {goal} (default: no ' +
        'arguments). Needs the package @agentclientprotocol/sdk.',
    ),
  agent: z
    .union([z.enum(AGENT_NAMES), agentPresetSchema()])
    .optional()
    .describe(
      'Set if the program is a coding agent: the name of a preset, or a preset of your own. It has the arguments, and says what the output means. args ' +
        'are further arguments then (default: none).',
    ),
  access: z
    .enum(ACCESS_LEVELS)
    .optional()
    .describe(
      'What the agent may do, by its own options: read, write (also change files of its folder) or full (everything that its user may do). Default: ' +
        'read. Needs "agent".',
    ),
  trust: z
    .boolean()
    .optional()
    .describe(
      'Whether the agent may work in a folder that it would refuse, because it is not trusted or in no git repository. Needs "agent".',
    ),
  cwd: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The working directory, relative to the folder of this file. Default: the client's project (its first MCP root, over stdio), or the " +
        'working directory of the server.',
    ),
  cwdPerCall: z
    .boolean()
    .default(false)
    .describe('Whether a call of the tool "task" may name another working directory (cwd).'),
  env: z
    .record(z.string(), argument.nullable())
    .default({})
    .describe('Variables added to the environment of the server; null removes one.'),
  timeoutSeconds: seconds
    .optional()
    .describe('The deadline of calls that set none, in seconds; -1 for no deadline. Default: defaultTimeoutSeconds.'),
  output: z
    .enum(['text', 'json-last-line', 'json'])
    .default('text')
    .describe('The format of the stdout of the program: any text, JSON in the last line, or nothing but JSON.'),
  maxOutputBytes: integer(1, 1024 ** 3)
    .default(8 * 1024 * 1024)
    .describe('How much of the stdout of the program is kept, in bytes.'),
  graceMs: integer(0, DAY_MS)
    .default(4000)
    .describe('How long the program may take to stop before it is killed, in ms.'),
  endDetached: z
    .boolean()
    .optional()
    .describe(
      'Whether processes that have left the process group of the program, such as daemons, are ended when the program has ended by itself. Default: ' +
        'true with "session" or "acp", otherwise false.',
    ),
  retry: strictObject({
    attempts: integer(1, 100).describe('How many runs a task may have in all, the first one included.'),
    on: z
      .array(z.enum(RETRY_REASONS))
      .min(1)
      .describe(
        'After which failures a task is run again. interrupted: the server ended while the task ran (needs a store). start-failed: the program ' +
          'could not be started. exit-code: the program failed (see exitCodes). timeout: the deadline passed. rate-limited: the program reported ' +
          'a rate limit. agent-error: a coding agent said that it has failed (needs "agent"). error: any other failure.',
      ),
    backoff: strictObject({
      initialMs: z.number().min(0).default(initialMs.default).describe('The wait before the second run, in ms.'),
      maxMs: z.number().min(0).default(maxMs.default).describe('The longest wait, in ms.'),
      factor: z.number().min(1).default(factor.default).describe('Each wait is the previous wait times this number.'),
      jitter: z.boolean().default(jitter.default).describe('Whether each wait is between half and all of that.'),
    })
      .optional()
      .describe('How long to wait between runs.'),
    exitCodes: z
      .array(integer(1, 255))
      .min(1)
      .optional()
      .describe('The exit codes to which exit-code applies. Default: every code but 0.'),
  })
    .optional()
    .describe('When a task of this subagent is run again instead of failing. Default: never.'),
  maxConcurrent: integer(1, 10_000)
    .optional()
    .describe('How many tasks of this subagent run at once, for all clients together. Others wait. Default: no limit.'),
  rate: strictObject({
    limit: integer(1, MAX_RATE_LIMIT).describe('How many runs may start within perMs.'),
    perMs: integer(1, 365 * DAY_MS).describe('The period of the rate, in ms.'),
  })
    .optional()
    .describe('How often runs of this subagent may start, repeated runs included. Others wait. Default: no limit.'),
  maxRunSeconds: z
    .number()
    .positive()
    .optional()
    .describe(
      'How long all runs of a task together may take, in seconds. After that the run is asked to conclude, and then stopped. Default: no limit.',
    ),
  maxIdleSeconds: z
    .number()
    .min(0.001)
    .optional()
    .describe(
      'How long a run may be without output and progress, in seconds. After that it is asked to conclude, and then stopped. Default: no limit.',
    ),
  survivesHost: z
    .boolean()
    .default(false)
    .describe(
      'Whether the program keeps running when the server is killed. The next server of the session then follows the program to its end. Needs a ' +
        'store; not on Windows.',
    ),
  isolation: z
    .enum(['none', 'worktree'])
    .default('none')
    .describe(
      'worktree: each task runs in a git worktree of its own, on the branch agent-tasks/ID. The worktree is kept if something has changed in it. ' +
        'Needs git 2.36. none: tasks run in the working directory.',
    ),
  keep: z
    .enum(['changes', 'always'])
    .default('changes')
    .describe('With isolation "worktree": which worktrees are kept after the task: those with changes, or always.'),
  session: programSessionSchema()
    .optional()
    .describe('How the tool "send_to_task" continues a task of this subagent. Default: its tasks cannot be continued.'),
  asks: z
    .boolean()
    .default(false)
    .describe('Whether the program may ask questions, with "agent-tasks ask". Not on Windows.'),
  runsOn: z
    .enum(['server', 'workers'])
    .default('server')
    .describe(
      'server: the server runs the tasks. workers: the tasks are sent to the workers ("agent-tasks worker" with the same file), over the Redis ' +
        'of "workers".',
    ),
  stdin: z
    .enum(['none', 'goal', 'messages'])
    .default('none')
    .describe(
      'goal: what {goal} stands for is written to the stdin of the program, and may be longer than an argument. messages: each message that the ' +
        'model sends with the tool "send_to_task" is written there as one line; not with survivesHost. none: stdin is empty.',
    ),
})
  .check(({ value, issues }) => {
    const { survivesHost, stdin, runsOn, session, acp, output, isolation, asks, agent, access, trust } = value
    const refuse = (field: keyof typeof value, message: string): void => {
      issues.push({ code: 'custom', input: value[field], path: [field], message })
    }
    if (agent === undefined) {
      if (access !== undefined) refuse('access', 'no value without agent')
      if (trust !== undefined) refuse('trust', 'no value without agent')
    } else {
      if (session !== undefined) refuse('session', 'no value, because agent is set')
      if (output !== 'text') refuse('output', 'no value, because agent is set')
      if (runsOn === 'workers') refuse('runsOn', 'server, because agent is set')
    }
    if (acp !== undefined) {
      const isUsed = {
        survivesHost,
        stdin: stdin !== 'none',
        runsOn: runsOn !== 'server',
        session: session !== undefined,
        agent: agent !== undefined,
        output: output !== 'text',
        isolation: isolation !== 'none',
        asks,
      }
      for (const [field, used] of Object.entries(isUsed)) {
        const input = value[field as keyof typeof isUsed]
        if (used) issues.push({ code: 'custom', input, path: [field], message: 'no value, because acp is set' })
      }
      return
    }
    if (session !== undefined && runsOn === 'workers') {
      issues.push({ code: 'custom', input: runsOn, path: ['runsOn'], message: 'server, because session is set' })
    }
    if (!survivesHost) return
    if (stdin === 'messages') {
      const message = 'none or goal, because survivesHost is true'
      issues.push({ code: 'custom', input: stdin, path: ['stdin'], message })
    }
    if (runsOn === 'workers') {
      const message =
        'server, because survivesHost is true. A program of a worker keeps running without the server anyway'
      issues.push({ code: 'custom', input: runsOn, path: ['runsOn'], message })
    }
  })
  .describe('A program that the tool "task" can start.')

const instanceSchema = strictObject({
  id: name.describe('The name that the model uses.'),
  command: argument.min(1).optional().describe('The program of an MCP server that uses stdio.'),
  args: z.array(argument).optional().describe('The arguments of the program.'),
  cwd: z.string().min(1).optional().describe('The working directory, relative to the folder of this file.'),
  env: z
    .record(z.string(), argument)
    .optional()
    .describe(
      'Environment variables of the program. From the environment of the server it inherits only a few safe ones, such as PATH.',
    ),
  url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('In place of a command: the URL of an MCP server that uses streamable HTTP.'),
  headers: z.record(z.string(), z.string()).optional().describe('With a url: the HTTP headers of every request.'),
  startTimeoutMs: integer(1, DAY_MS)
    .default(30_000)
    .describe('How long the MCP server may take to start and connect, in ms.'),
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
  .describe('An MCP server on which the tool "submit_commands" runs commands.')

/** Refuses two items with the same name. */
const unique =
  <T>(keyOf: (item: T) => string, key: string) =>
  (context: z.core.ParsePayload<T[]>): void => {
    const seen = new Set<string>()
    context.value.forEach((item, index) => {
      if (seen.has(keyOf(item))) {
        const message = `a ${key} that no other entry has`
        context.issues.push({ code: 'custom', input: context.value, path: [index, key], message })
      }
      seen.add(keyOf(item))
    })
  }

/** A name in PATH, or an absolute path without `.`, `..` and empty parts, because a call must repeat the same text. */
const program = argument
  .min(1)
  .refine(
    (value) =>
      !/[\\/]/.test(value)
        ? value !== '.' && value !== '..'
        : /^([A-Za-z]:)?[\\/]/.test(value) && !/[\\/](\.{0,2}[\\/]|\.{0,2}$)/.test(value),
    'the name of a program in PATH, or a normal absolute path',
  )

const commandsSchema = strictObject({
  allow: z
    .array(program)
    .optional()
    .describe(
      'The programs: names in the PATH of the server, or absolute paths. A call must name one of them exactly. Allowing a program allows all ' +
        'that it can start.',
    ),
  shell: z
    .boolean()
    .default(false)
    .describe(
      'In place of "allow": whether a call gives a command line, which /bin/sh -c runs. It can start any program.',
    ),
  env: z
    .array(argument.regex(/^[^=]+$/, 'the name of a variable'))
    .optional()
    .describe('The names of the variables that a call may set. Default: none.'),
  cwd: z
    .union([argument.min(1), z.array(argument.min(1)).min(1)])
    .optional()
    .describe(
      'The folder or folders in which programs may be started, relative to the folder of this file. A call that names no folder uses the first one. ' +
        "Default: the client's project (its first MCP root, over stdio), or the working directory of the server.",
    ),
  maxCommands: integer(-1, 100)
    .default(5)
    .describe('The most commands of one client that run at once; -1 for no limit.'),
  defaultTimeoutSeconds: seconds
    .optional()
    .describe(
      'The deadline of calls that set none, in seconds; -1 for no deadline. Default: the deadline of tasks; in the background, none.',
    ),
  maxTimeoutSeconds: z
    .int()
    .max(2 ** 31)
    .refine((value) => value > 0 || value === -1, 'an integer >= 1, or -1 for no limit')
    .optional()
    .describe(
      'The longest deadline that a call may set, in seconds; -1 for no limit. Default: the limit of tasks; in the background, none.',
    ),
})
  .refine(({ allow, shell }) => shell !== (allow !== undefined), {
    message: 'either programs to allow, or shell: true, which can start any program',
  })
  .describe('What the tool "run_command" can start. The tool exists only with this setting.')

const schedulesSchema = strictObject({
  maxPerOwner: integer(0, 10_000)
    .default(scheduleOptionTypes.maxPerOwner.default)
    .describe('The most schedules of one client.'),
  minPeriodSeconds: z
    .number()
    .min(1)
    .max(86_400)
    .default(scheduleOptionTypes.minPeriodMs.default / 1000)
    .describe('The shortest time between two firings of one schedule, in seconds.'),
}).describe('Limits of the tool "schedule". The tool exists only with this setting.')
const monitorsSchema = strictObject({
  files: z
    .array(argument.min(1))
    .optional()
    .describe(
      'The files that may be monitored, and the folders whose files may be monitored, relative to the folder of this file. Default: none.',
    ),
  maxPerOwner: integer(0, 1000)
    .default(monitorLimitTypes.maxPerOwner.default)
    .describe('The most monitors of one client.'),
  maxSeconds: integer(1, 86_400)
    .default(monitorLimitTypes.maxSeconds.default)
    .describe('The longest that a monitor may run, in seconds.'),
  maxEvents: integer(1, 100_000).default(monitorLimitTypes.maxEvents.default).describe('The most events of a monitor.'),
}).describe('What the tool "monitor" may read. The tool exists only with this setting.')

const httpSchema = strictObject({
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('The address to listen on. An address that other machines can reach requires tokens.'),
  port: integer(0, 65_535).default(3500).describe('The port; 0 picks a free one.'),
  path: z
    .string()
    .regex(/^\/[^?#\s]*$/, 'a path that begins with /')
    .default('/mcp')
    .describe('The path of the MCP endpoint.'),
  tokens: z
    .array(z.string().regex(/^[\x21-\x7e]{1,4096}$/, 'visible ASCII characters'))
    .default([])
    .describe('If there are any, a client must send one of them as a bearer token. Each token identifies one client.'),
  allowedHosts: z.array(z.string().min(1)).default([]).describe('Further host names that requests may use.'),
  allowedOrigins: z.array(z.string().min(1)).default([]).describe('Origins of web pages that may use the server.'),
  sessionIdleMs: integer(1, 365 * DAY_MS)
    .default(1_800_000)
    .describe('How long a session without running tasks stays open without requests, in ms.'),
}).describe('The server over streamable HTTP (--http).')

const workersSchema = strictObject({
  connection: z
    .string()
    .min(1)
    .optional()
    .describe(
      'The URL of the Redis, redis:// or rediss://. Default: the environment variable AGENT_TASKS_CONNECTION, which keeps the password out of this file.',
    ),
  allowNoPassword: z
    .boolean()
    .default(false)
    .describe(
      'Whether a Redis without a password may be used although other machines can reach it. Each of them can then run programs on the workers.',
    ),
  lockMs: integer(100, DAY_MS)
    .default(15_000)
    .describe(
      'How long after the death of a worker its tasks are given up, in ms. Servers and workers need the same value.',
    ),
  concurrency: integer(1, 1000).default(1).describe('How many tasks of each subagent one worker runs at once.'),
  drainSeconds: integer(0, 86_400)
    .optional()
    .describe(
      'How long a worker that is asked to end waits for its running tasks, in seconds. Default: until all of them have ended.',
    ),
}).describe('The workers that run subagents with "runsOn": "workers".')

const tasksSchema = strictObject({
  retentionMs: integer(0, 365 * DAY_MS)
    .default(3_600_000)
    .describe('How long the result of a task is kept, in ms.'),
  pollIntervalMs: integer(1, DAY_MS)
    .default(1000)
    .describe('The polling interval that clients are asked to use, in ms.'),
}).describe('The Tasks extension (io.modelcontextprotocol/tasks).')

/** How long a call waits for its task by default, in seconds. Most clients give up a call after 60 seconds. */
const DEFAULT_BACKGROUND_AFTER = 45

/** The whole file. */
export const agentConfigSchema = strictObject({
  $schema: z.string().optional().describe('The JSON Schema of this file, for editors.'),
  maxAsyncTasks: integer(-1, 100)
    .default(5)
    .describe('The most background tasks of one client that run at once; -1 for no limit.'),
  maxAsyncTasksOfAllClients: integer(-1, 10_000)
    .optional()
    .describe(
      'The most background tasks of all clients together that run at once; -1 for no limit. Default: 50, or maxAsyncTasks if that is more.',
    ),
  whenFull: z
    .enum(['refuse', 'queue'])
    .default('refuse')
    .describe('What happens to a background task for which no slot is free: it is refused, or waits for one.'),
  queueMax: integer(0, 10_000).default(100).describe('The most tasks of all clients together that wait for a slot.'),
  limits: z
    .record(z.string().min(1).max(512), integer(1, 10_000))
    .default({})
    .describe('How many tasks with the same concurrency_key run at once, for each key. Default: one.'),
  defaultTimeoutSeconds: seconds
    .default(900)
    .describe('The deadline of tasks that set none, in seconds; -1 for no deadline.'),
  maxTimeoutSeconds: seconds
    .default(1800)
    .describe('The longest deadline that a task may set, in seconds; -1 for no limit.'),
  backgroundAfterSeconds: seconds
    .default(DEFAULT_BACKGROUND_AFTER)
    .describe(
      'How long a call waits for its task, in seconds. After that the task continues in the background. -1 for no limit. ' +
        'Most clients give up a call after 60 seconds.',
    ),
  maxMessageChars: integer(200, 10_000_000).default(20_000).describe('The maximum length of a result, in characters.'),
  subagents: z
    .array(subagentSchema)
    .default([])
    .check(unique(({ name: key }) => key, 'name'))
    .describe('The subagents that the tool "task" can start.'),
  instances: z
    .array(instanceSchema)
    .default([])
    .check(unique(({ id }) => id, 'id'))
    .describe('The instances on which the tool "submit_commands" can run commands.'),
  commands: commandsSchema.optional(),
  schedules: schedulesSchema.optional(),
  monitors: monitorsSchema.optional(),
  store: argument
    .min(1)
    .optional()
    .describe(
      'The folder in which tasks and their results are kept when the server ends, relative to the folder of this file. `agent-tasks mcp` also takes ' +
        'the URL of a PostgreSQL database (postgres://USER@HOST/DATABASE). Default: none.',
    ),
  session: z
    .string()
    .min(1)
    .max(MAX_SESSION_KEY)
    .optional()
    .describe(
      'With a store: the name of the session to which the tasks belong. A server takes over the tasks that earlier servers of the same session left. ' +
        'Default: the working directory.',
    ),
  workers: workersSchema.prefault({}),
  http: httpSchema.prefault({}),
  tasks: tasksSchema.prefault({}),
})
  .check((context) => {
    const { maxTimeoutSeconds: most, defaultTimeoutSeconds, subagents, commands } = context.value
    const isTooLong = (value: number, limit = most): boolean => limit !== -1 && (value === -1 || value > limit)
    const report = (path: (string | number)[], limit = most): void => {
      const message = `at most maxTimeoutSeconds, which is ${limit}`
      context.issues.push({ code: 'custom', input: context.value, path, message })
    }
    if (isTooLong(defaultTimeoutSeconds)) report(['defaultTimeoutSeconds'])
    const { defaultTimeoutSeconds: ofCommands, maxTimeoutSeconds: mostOfCommands = most } = commands ?? {}
    if (ofCommands !== undefined && isTooLong(ofCommands, mostOfCommands)) {
      report(['commands', 'defaultTimeoutSeconds'], mostOfCommands)
    }
    subagents.forEach(({ timeoutSeconds }, index) => {
      if (timeoutSeconds !== undefined && isTooLong(timeoutSeconds)) report(['subagents', index, 'timeoutSeconds'])
    })
  })
  .meta({ title: 'Configuration of agent-tasks' })

/**
 * The settings of a configuration file of `agent-tasks`, with the defaults for those that the file omits.
 * @useDeclaredType
 */
export type AgentConfig = z.output<typeof agentConfigSchema>

/** The settings as a configuration file of `agent-tasks` may contain them. Settings with a default may be absent. */
export type AgentConfigInput = z.input<typeof agentConfigSchema>

export type SubagentConfig = AgentConfig['subagents'][number]

/** Returns the terms of a configured subagent. */
export const configuredTerms = ({
  maxRunSeconds,
  maxIdleSeconds,
}: Pick<SubagentConfig, 'maxRunSeconds' | 'maxIdleSeconds'>): SubagentTerms => ({
  budget: maxRunSeconds === undefined ? undefined : { seconds: maxRunSeconds },
  idleMs: maxIdleSeconds === undefined ? undefined : maxIdleSeconds * 1000,
})

export type InstanceConfig = AgentConfig['instances'][number]

/** Returns the JSON Schema of the file, for editors. */
export function agentConfigJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(agentConfigSchema, { io: 'input', unrepresentable: 'any' })
  return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
}
