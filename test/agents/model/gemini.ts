/** Gemini's API: `models/NAME:generateContent` and `:streamGenerateContent`. */
import { fieldOf, isObject, listOf, textOf, type Json } from './json.js'
import type { Answer, Entry, ModelRequest } from './script.js'
import type { Dialect } from './dialect.js'

const USAGE = { promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 }

const PATH = /^\/v1(?:beta)?\/models\/([^/:]+):(generateContent|streamGenerateContent)$/

/** Each text of a user is an entry: after a resumed session, one content has the prompt that was interrupted and the new one. */
function entriesOf(content: unknown): readonly Entry[] {
  const parts = listOf(fieldOf(content, 'parts'))
  if (fieldOf(content, 'role') === 'model') return [{ role: 'assistant', text: '' }]
  if (parts.some((part) => fieldOf(part, 'functionResponse') !== undefined)) {
    return [{ role: 'tool', text: JSON.stringify(parts) }]
  }
  return parts.map((part) => ({ role: 'user', text: textOf(fieldOf(part, 'text')) }))
}

function read(body: Json, path: string): ModelRequest {
  const [, model = '', method] = PATH.exec(path) ?? []
  return {
    model,
    isStreamed: method === 'streamGenerateContent',
    tools: listOf(body['tools'])
      .flatMap((tool) => listOf(fieldOf(tool, 'functionDeclarations')))
      .filter(isObject)
      .map((tool) => ({
        name: textOf(tool['name']),
        parameters: (tool['parametersJsonSchema'] ?? tool['parameters'] ?? {}) as Json,
      })),
    entries: listOf(body['contents']).flatMap(entriesOf),
  }
}

function whole(answer: Answer, { model }: ModelRequest, id: string): Json {
  const part =
    answer.kind === 'call'
      ? { functionCall: { id, name: answer.name, args: answer.input } }
      : { text: answer.kind === 'text' ? answer.text : '' }
  return {
    candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
    usageMetadata: USAGE,
    modelVersion: model,
    responseId: id,
  }
}

const STATUS: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
}

export const gemini: Dialect = {
  path: PATH,
  read,
  whole,
  events: (answer, request, id) => [`data: ${JSON.stringify(whole(answer, request, id))}\n\n`],
  error: (code, message) => ({ error: { code, message, status: STATUS[code] ?? 'UNAVAILABLE' } }),
}
