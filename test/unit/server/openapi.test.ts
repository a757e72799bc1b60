// The OpenAPI document: valid, with every route, response and schema, each schema once.
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { startTestServer } from './test-server.js'

interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly tags?: readonly string[]
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: object }>>
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

async function readDocument(): Promise<Document> {
  const server = await startTestServer()
  const { status, body } = await server.call('/openapi.json')
  expect(status).toBe(200)
  return body as unknown as Document
}

const operationsOf = ({ paths }: Document) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })),
  )

/** Every object in a document, with its path. */
function* objectsIn(value: unknown, at = '#'): Generator<[at: string, object: Readonly<Record<string, unknown>>]> {
  if (typeof value !== 'object' || value === null) return
  yield [at, value as Record<string, unknown>]
  for (const [key, inner] of Object.entries(value)) yield* objectsIn(inner, `${at}/${key}`)
}

/** A call of a tool has errors of its own; what is refused before routing has those of every route. */
function errorSchemaOf(name: string, status: string): string {
  if (status === '409' && name.endsWith('/cancel')) return 'TaskNotCancelled'
  const isRefused = ['401', '403', '413', '415'].includes(status)
  return name === 'post /api/tools/{name}' && !isRefused ? 'ToolFailure' : 'Error'
}

describe('GET /openapi.json', () => {
  it('is a valid OpenAPI 3.1 document, whose references resolve', async () => {
    const document = await readDocument()
    const validator = new Validator()
    expect(await validator.validate(document as unknown as Record<string, unknown>)).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
    const known = new Set(Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`))
    const references = [...objectsIn(document)].flatMap(([, { $ref }]) => (typeof $ref === 'string' ? [$ref] : []))
    expect(references.filter((reference) => !known.has(reference))).toEqual([])
    expect(references.length).toBeGreaterThan(40)
  })

  it('describes every route and every response', async () => {
    const operations = operationsOf(await readDocument())
    expect(operations.map(({ name, responses }) => `${name} ${Object.keys(responses).join(' ')}`)).toEqual([
      'post /tasks 201 400 401 403 404 409 413 415 422 429 503',
      'get /tasks 200 400 401 403 429',
      'get /tasks/{id} 200 401 403 404 429',
      'get /tasks/{id}/commands/{index}/result 200 400 401 403 404 429',
      'post /tasks/{id}/cancel 200 401 403 404 409 429 503',
      'get /tasks/{id}/events 200 204 401 403 404 429',
      'get /instances 200 401 403 429',
      'post /instances/{id}/pause 200 401 403 404 429 501 503',
      'post /instances/{id}/resume 200 401 403 404 429 501 503',
      'post /register 201 400 401 403 409 413 415 429 503',
      'get /api/tools 200 401 403 429',
      'post /api/tools/{name} 200 400 401 403 404 409 413 415 429 502 503 504',
      'get /health 200 403 429',
      'get /info 200 403 429',
      'get /metrics 200 401 403 429',
    ])
  })

  it('gives every operation a unique id, a summary and a tag, and every error its codes and its schema', async () => {
    const operations = operationsOf(await readDocument())
    expect(operations.map(({ operationId }) => operationId)).toEqual([
      ...['submitTask', 'listTasks', 'getTask', 'getResult', 'cancelTask', 'followTask'],
      ...[
        'listInstances',
        'pauseInstance',
        'resumeInstance',
        'registerWorker',
        'listTools',
        'callTool',
        'getHealth',
        'getInfo',
        'getMetrics',
      ],
    ])
    for (const { name, summary, tags, responses } of operations) {
      expect([name, typeof summary, tags?.length]).toEqual([name, 'string', 1])
      for (const [status, { description, content }] of Object.entries(responses)) {
        if (Number(status) < 400) continue
        expect([name, status, description]).toEqual([name, status, expect.stringMatching(/`[A-Z_]+`/)])
        const schema = errorSchemaOf(name, status)
        expect([name, status, content]).toEqual([
          name,
          status,
          { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
        ])
      }
    }
  })

  it('contains each object schema once: under components, never in a route', async () => {
    const { paths, components } = await readDocument()
    const inlined = [...objectsIn(paths)].filter(([, object]) => object['type'] === 'object')
    expect(inlined.map(([at]) => at)).toEqual([])
    const written = new Map<string, string>()
    for (const [at, object] of objectsIn(components.schemas)) {
      if (object['type'] !== 'object' || !('properties' in object)) continue
      const text = JSON.stringify(object)
      expect([at, written.get(text)]).toEqual([at, undefined])
      written.set(text, at)
    }
    expect(components.schemas['Task']).toMatchObject({
      properties: {
        commands: { items: { $ref: '#/components/schemas/TaskCommand' } },
        status: { $ref: '#/components/schemas/TaskStatus' },
      },
    })
  })
})
