/**
 * `agent-tasks hook EVENT --client NAME`: the command that clients run as a hook. It reads the hook's JSON from standard input, asks the server of the
 * same conversation, and prints the answer in the client's form. It has to start fast, so it loads little. Without a server it prints `{}`.
 */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { parseJson } from '../../data/parse-json.js'
import { readStat } from '../../system/process-stat.js'
import { argumentsOf } from './client-process.js'
import { HOOK_CLIENTS } from './clients.js'
import { CLIENT_NAMES, NOTHING, type HookOutput } from './hook-client.js'
import {
  ancestorsOf,
  findServer,
  hookFolder,
  MAX_LINE_BYTES,
  readServerFiles,
  type HookRequest,
  type HookServerFile,
} from './hook-folder.js'

/** The fields that a server reads. A prompt is cut at its beginning, because a message has its delivery id at its end. */
const FIELDS = ['session_id', 'sessionId', 'transcript_path', 'transcriptPath', 'stop_hook_active', 'prompt'] as const

/** The maximum length of the prompt that is sent, in characters. */
const MAX_PROMPT_CHARS = 8000

/** Events with which a conversation may begin. */
const BEGINNINGS: readonly string[] = ['start', 'prompt']

/** Runs the command. Never throws: a hook that fails would disturb its client. */
export async function runHookCommand(
  args: readonly string[],
  { folder = hookFolder(), readText = () => readFileSync(0, 'utf8') } = {},
): Promise<HookOutput> {
  try {
    const [event = ''] = args
    const client = args[args.indexOf('--client') + 1] ?? ''
    const input = inputIn(readText())
    const server = findServer(
      readServerFiles(folder).map(([, file]) => file),
      {
        client,
        sessionId: textOf(input['session_id']) ?? textOf(input['sessionId']),
        taskId: process.env['AGENT_TASK_ID'],
        mayBegin: BEGINNINGS.includes(event),
        ancestors: ancestorsOf(process.pid, (pid) => readStat(pid)?.parent),
        isClient: (pid) => runsClient(client, pid),
      },
    )
    return server === undefined ? NOTHING : await ask(server, event, input)
  } catch {
    return NOTHING
  }
}

/** Whether a process runs the client, and is not a shell with the command line of this hook. */
function runsClient(client: string, pid: number): boolean {
  const known = CLIENT_NAMES.find((name) => name === client)
  const args = argumentsOf(pid)
  return known !== undefined && HOOK_CLIENTS[known].isProgram(args) && !args.some((each) => each.includes('--client'))
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

function inputIn(text: string): Readonly<Record<string, unknown>> {
  const parsed = parseJson(text, 100)
  return 'value' in parsed ? (Object(parsed.value) as Record<string, unknown>) : {}
}

function ask(
  { socket: path, token, client }: HookServerFile,
  event: string,
  input: Readonly<Record<string, unknown>>,
): Promise<HookOutput> {
  const { prompt } = input
  const fields = {
    ...Object.fromEntries(FIELDS.map((name) => [name, input[name]])),
    ...(typeof prompt === 'string' && { prompt: prompt.slice(-MAX_PROMPT_CHARS) }),
  }
  const request: HookRequest = { token, client, event, input: fields }
  const line = JSON.stringify(request)
  if (Buffer.byteLength(line) >= MAX_LINE_BYTES) return Promise.resolve(NOTHING)
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(path, () => socket.write(`${line}\n`))
    socket.setEncoding('utf8')
    socket.on('error', () => undefined)
    socket.on('data', (chunk: string) => (text += chunk))
    socket.on('close', () => resolve(outputOf(text)))
  })
}

function outputOf(line: string): HookOutput {
  const parsed = parseJson(line, 10)
  const { stdout, stderr, exitCode } = Object('value' in parsed ? parsed.value : {}) as Partial<HookOutput>
  if (typeof stdout !== 'string') return NOTHING
  return {
    stdout,
    ...(typeof stderr === 'string' && { stderr }),
    ...(typeof exitCode === 'number' && { exitCode }),
  }
}
