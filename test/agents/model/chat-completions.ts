/** OpenAI's Chat Completions API. */
import { fieldOf, isObject, listOf, textOf, type Json } from './json.js'
import type { Answer, Entry, ModelRequest } from './script.js'
import type { Dialect } from './dialect.js'

const USAGE = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }

function entryOf(message: unknown): readonly Entry[] {
  const role = fieldOf(message, 'role')
  if (role !== 'user' && role !== 'assistant' && role !== 'tool') return []
  const content = fieldOf(message, 'content')
  const parts = listOf(content).map((part) => textOf(fieldOf(part, 'text')))
  return [{ role, text: typeof content === 'string' ? content : parts.join('\n') }]
}

function read(body: Json): ModelRequest {
  return {
    model: textOf(body['model']),
    isStreamed: body['stream'] === true,
    tools: listOf(body['tools'])
      .map((tool) => fieldOf(tool, 'function'))
      .filter(isObject)
      .map((tool) => ({ name: textOf(tool['name']), parameters: (tool['parameters'] ?? {}) as Json })),
    entries: listOf(body['messages']).flatMap(entryOf),
  }
}

function messageOf(answer: Answer, id: string): Json {
  if (answer.kind !== 'call') {
    return { role: 'assistant', content: answer.kind === 'text' ? answer.text : '' }
  }
  const call = { name: answer.name, arguments: JSON.stringify(answer.input) }
  return {
    role: 'assistant',
    content: null,
    tool_calls: [{ index: 0, id: `call_${id}`, type: 'function', function: call }],
  }
}

const finish = (answer: Answer): string => (answer.kind === 'call' ? 'tool_calls' : 'stop')

function whole(answer: Answer, { model }: ModelRequest, id: string): Json {
  return {
    id: `chatcmpl-${id}`,
    object: 'chat.completion',
    created: 0,
    model,
    choices: [{ index: 0, message: messageOf(answer, id), finish_reason: finish(answer) }],
    usage: USAGE,
  }
}

function events(answer: Answer, { model }: ModelRequest, id: string): readonly Json[] {
  const chunk = { id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: 0, model }
  return [
    { ...chunk, choices: [{ index: 0, delta: messageOf(answer, id), finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: finish(answer) }], usage: USAGE },
  ]
}

export const chatCompletions: Dialect = {
  path: /^(\/v1)?\/chat\/completions$/,
  read,
  whole,
  events: (answer, request, id) => [
    ...events(answer, request, id).map((event) => `data: ${JSON.stringify(event)}\n\n`),
    'data: [DONE]\n\n',
  ],
  error: (status, message) => ({ error: { message, type: 'scripted_error', param: null, code: String(status) } }),
}
