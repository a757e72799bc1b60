/** Anthropic's Messages API. */
import { fieldOf, isObject, listOf, textOf, type Json } from './json.js'
import type { Answer, Entry, ModelRequest } from './script.js'
import type { Dialect } from './dialect.js'

const USAGE = { input_tokens: 100, output_tokens: 20, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }

function entriesOf(message: unknown): readonly Entry[] {
  const role = fieldOf(message, 'role') === 'assistant' ? 'assistant' : 'user'
  const content = fieldOf(message, 'content')
  if (typeof content === 'string') return [{ role, text: content }]
  const parts = listOf(content)
  const results = parts.filter((part) => fieldOf(part, 'type') === 'tool_result')
  const text = parts.map((part) => textOf(fieldOf(part, 'text'))).join('\n')
  return results.length > 0 ? [{ role: 'tool', text: JSON.stringify(results) }] : [{ role, text }]
}

function read(body: Json): ModelRequest {
  return {
    model: textOf(body['model']),
    isStreamed: body['stream'] === true,
    tools: listOf(body['tools'])
      .filter(isObject)
      .map((tool) => ({ name: textOf(tool['name']), parameters: (tool['input_schema'] ?? {}) as Json })),
    entries: listOf(body['messages']).flatMap(entriesOf),
  }
}

function blockOf(answer: Answer, id: string): Json {
  return answer.kind === 'call'
    ? { type: 'tool_use', id: `toolu_${id}`, name: answer.name, input: answer.input }
    : { type: 'text', text: answer.kind === 'text' ? answer.text : '' }
}

function whole(answer: Answer, { model }: ModelRequest, id: string): Json {
  return {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [blockOf(answer, id)],
    stop_reason: answer.kind === 'call' ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: USAGE,
  }
}

function events(answer: Answer, request: ModelRequest, id: string): readonly Json[] {
  const message = { ...whole(answer, request, id), content: [], stop_reason: null }
  const block = blockOf(answer, id)
  const [start, delta] =
    answer.kind === 'call'
      ? [
          { ...block, input: {} },
          { type: 'input_json_delta', partial_json: JSON.stringify(answer.input) },
        ]
      : [
          { type: 'text', text: '' },
          { type: 'text_delta', text: block['text'] },
        ]
  return [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: start },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: answer.kind === 'call' ? 'tool_use' : 'end_turn', stop_sequence: null },
      usage: { output_tokens: USAGE.output_tokens },
    },
    { type: 'message_stop' },
  ]
}

const ERRORS: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

export const anthropic: Dialect = {
  path: /^\/v1\/messages$/,
  read,
  whole,
  events: (answer, request, id) =>
    events(answer, request, id).map((event) => `event: ${textOf(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`),
  error: (status, message) => ({ type: 'error', error: { type: ERRORS[status] ?? 'api_error', message } }),
}
