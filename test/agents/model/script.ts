/**
 * What the scripted model does next. The script is in the prompt, so a test reads as a conversation, and the server keeps no state: the step is the number
 * of answers that the conversation has after the prompt.
 *
 *     [[shell sleep 60]] [[write notes.txt hello]] [[tool Name {"a":1}]] [[ask Name {"a":1}]] [[say done]]
 *     [[error 429 1]] [[hang]] [[slow 2000]] [[big 20000]]
 *
 * `ask` calls a tool only if the agent offers it. `error STATUS TIMES` refuses so many requests of this prompt, all of them without TIMES. `slow MS` and
 * `error` belong to the step after them.
 */

/** One part of a conversation, whatever the API calls it. */
export interface Entry {
  readonly role: 'user' | 'assistant' | 'tool'
  readonly text: string
}

/** A tool that the agent offers to the model. */
export interface OfferedTool {
  readonly name: string
  readonly parameters: Readonly<Record<string, unknown>>
}

/** A request in the words that all APIs share. */
export interface ModelRequest {
  readonly model: string
  readonly isStreamed: boolean
  readonly tools: readonly OfferedTool[]
  readonly entries: readonly Entry[]
}

/** What the model answers. */
export type Answer =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'call'; readonly name: string; readonly input: Readonly<Record<string, unknown>> }
  | { readonly kind: 'error'; readonly status: number }
  | { readonly kind: 'hang' }

export interface Step {
  readonly answer: Answer
  readonly waitMs: number
  /** How the conversation goes so far. Requests that are repeated have the same key. */
  readonly key: string
}

const COMMAND = /\[\[(\w+)(?: ([^\]]*(?:\](?!\])[^\]]*)*))?\]\]/g

interface Command {
  readonly verb: string
  readonly rest: string
}

/** Notifications of this package quote the goal of a task, which may be a script for another agent. */
const QUOTED_GOAL = /goal "(?:[^"\\]|\\.)*"/g

const commandsOf = (text: string): readonly Command[] =>
  [...text.replaceAll(QUOTED_GOAL, '').matchAll(COMMAND)].map(([, verb = '', rest = '']) => ({ verb, rest }))

/** @param refusals how many requests with this key were refused before */
export function nextStep(request: ModelRequest, refusals: (key: string) => number): Step {
  const { entries, tools } = request
  const at = entries.findLastIndex(({ role, text }) => role === 'user' && commandsOf(text).length > 0)
  const prompt = entries[at]?.text
  // Agents also ask for titles and summaries of a prompt. Such a request offers no tools.
  if (prompt === undefined || tools.length === 0) return { answer: { kind: 'text', text: 'ok' }, waitMs: 0, key: '' }
  const done = entries.slice(at + 1).filter(({ role }) => role === 'assistant').length
  return stepAfter(done, commandsOf(prompt), `${done} ${prompt}`, tools, refusals)
}

function stepAfter(
  done: number,
  commands: readonly Command[],
  key: string,
  tools: readonly OfferedTool[],
  refusals: (key: string) => number,
): Step {
  let waitMs = 0
  let step = 0
  let last = 'done'
  for (const { verb, rest } of commands) {
    if (verb === 'slow') {
      if (step === done) waitMs += Number(rest)
      continue
    }
    if (verb === 'error') {
      const [status = 500, times = Infinity] = rest.split(' ').map(Number)
      if (step === done && refusals(key) < times) return { answer: { kind: 'error', status }, waitMs, key }
      continue
    }
    if (verb === 'say') last = rest
    if (step === done) return { answer: answerTo({ verb, rest }, tools), waitMs, key }
    step += 1
  }
  return { answer: { kind: 'text', text: last }, waitMs, key }
}

function answerTo({ verb, rest }: Command, tools: readonly OfferedTool[]): Answer {
  switch (verb) {
    case 'hang':
      return { kind: 'hang' }
    case 'big':
      return { kind: 'text', text: 'x'.repeat(Number(rest)) }
    case 'shell':
      return shellCall(rest, tools)
    case 'write': {
      const [file = '', ...words] = rest.split(' ')
      return writeCall(file, words.join(' '), tools)
    }
    case 'ask':
    case 'tool': {
      const [name = '', ...json] = rest.split(' ')
      if (verb === 'ask' && !tools.some((tool) => tool.name === name)) return noTool('questions', tools)
      return { kind: 'call', name, input: JSON.parse(json.join(' ')) as Record<string, unknown> }
    }
    default:
      return { kind: 'text', text: rest }
  }
}

/** The shell tools of the agents, and the parameter with the command line. */
const SHELLS: readonly (readonly [name: string, parameter: string])[] = [
  ['Bash', 'command'],
  ['bash', 'command'],
  ['exec_command', 'cmd'],
  ['shell_command', 'command'],
  ['run_shell_command', 'command'],
]

function shellCall(line: string, tools: readonly OfferedTool[]): Answer {
  const shell = SHELLS.find(([name]) => tools.some((tool) => tool.name === name))
  if (shell === undefined) return noTool('a shell', tools)
  const [name, parameter] = shell
  const { properties = {} } = parametersOf(name, tools)
  return {
    kind: 'call',
    name,
    input: {
      [parameter]: line,
      ...('description' in properties && { description: 'Runs what the test asks for' }),
      ...('is_background' in properties && { is_background: false }),
    },
  }
}

/** The tools that write a file, and their parameters for the path and the text. */
const WRITERS: readonly (readonly [name: string, path: string, text: string])[] = [
  ['Write', 'file_path', 'content'],
  ['write', 'filePath', 'content'],
  ['write_file', 'file_path', 'content'],
  ['create', 'path', 'file_text'],
]

function writeCall(file: string, text: string, tools: readonly OfferedTool[]): Answer {
  const writer = WRITERS.find(([name]) => tools.some((tool) => tool.name === name))
  if (writer === undefined) return shellCall(`printf %s '${text}' > ${file}`, tools)
  const [name, path, content] = writer
  return { kind: 'call', name, input: { [path]: file, [content]: text } }
}

const noTool = (what: string, tools: readonly OfferedTool[]): Answer => ({
  kind: 'text',
  text: `no tool for ${what} among: ${tools.map(({ name }) => name).join(', ')}`,
})

const parametersOf = (name: string, tools: readonly OfferedTool[]): { properties?: Record<string, unknown> } =>
  tools.find((tool) => tool.name === name)?.parameters ?? {}
