/** OpenAI's Responses API. */
import { fieldOf, isObject, listOf, textOf, type Json } from './json.js'
import type { Answer, Entry, ModelRequest, OfferedTool } from './script.js'
import type { Dialect } from './dialect.js'

const USAGE = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 10 },
  output_tokens: 20,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 120,
}

function entryOf(item: unknown): readonly Entry[] {
  const type = textOf(fieldOf(item, 'type'))
  if (type.endsWith('_output')) return [{ role: 'tool', text: JSON.stringify(item) }]
  if (type.endsWith('_call')) return [{ role: 'assistant', text: '' }]
  const role = fieldOf(item, 'role')
  if (role !== 'user' && role !== 'developer' && role !== 'assistant') return []
  const content = fieldOf(item, 'content')
  const text = typeof content === 'string' ? content : listOf(content).map((part) => textOf(fieldOf(part, 'text')))
  return [{ role: role === 'assistant' ? role : 'user', text: typeof text === 'string' ? text : text.join('\n') }]
}

/** Separates the name of a namespace from that of a tool in it. Codex offers the tools of MCP servers in namespaces. */
const SEPARATOR = '__'

const toolsIn = (tool: Json): readonly OfferedTool[] => {
  const { name, type, tools, parameters = {} } = tool
  if (type !== 'namespace') return [{ name: textOf(name), parameters: parameters as Json }]
  return listOf(tools)
    .filter(isObject)
    .flatMap(toolsIn)
    .map((inside) => ({ ...inside, name: `${textOf(name)}${SEPARATOR}${inside.name}` }))
}

/** The namespace and the name of a tool of an MCP server. */
function qualified(name: string): { readonly name: string; readonly namespace?: string } {
  const at = name.lastIndexOf(SEPARATOR)
  return name.startsWith('mcp__') && at > 'mcp'.length
    ? { namespace: name.slice(0, at), name: name.slice(at + SEPARATOR.length) }
    : { name }
}

function read(body: Json): ModelRequest {
  const { input } = body
  return {
    model: textOf(body['model']),
    isStreamed: body['stream'] === true,
    tools: listOf(body['tools']).filter(isObject).flatMap(toolsIn),
    entries: typeof input === 'string' ? [{ role: 'user', text: input }] : listOf(input).flatMap(entryOf),
  }
}

function itemOf(answer: Answer, id: string): Json {
  if (answer.kind === 'call') {
    const { name, input } = answer
    const call = { id: `fc_${id}`, call_id: `call_${id}`, ...qualified(name), arguments: JSON.stringify(input) }
    return { type: 'function_call', status: 'completed', ...call }
  }
  const text = answer.kind === 'text' ? answer.text : ''
  const content = [{ type: 'output_text', text, annotations: [] }]
  return { type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed', content }
}

function whole(answer: Answer, { model }: ModelRequest, id: string): Json {
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: 0,
    status: 'completed',
    model,
    output: [itemOf(answer, id)],
    usage: USAGE,
  }
}

function events(answer: Answer, request: ModelRequest, id: string): readonly Json[] {
  const response = whole(answer, request, id)
  const item = itemOf(answer, id)
  return [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [], usage: null } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress' } },
    ...(answer.kind === 'text'
      ? [
          {
            type: 'response.output_text.delta',
            item_id: item['id'],
            output_index: 0,
            content_index: 0,
            delta: answer.text,
          },
        ]
      : []),
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response },
  ]
}

export const responses: Dialect = {
  path: /^(\/v1)?\/responses$/,
  read,
  whole,
  events: (answer, request, id) =>
    events(answer, request, id).map((event, sequence_number) => {
      const type = textOf(event['type'])
      return `event: ${type}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`
    }),
  error: (status, message) => ({ error: { message, type: 'scripted_error', param: null, code: String(status) } }),
}
