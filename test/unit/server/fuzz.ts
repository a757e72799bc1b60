/** Random requests and frames, biased to almost valid ones. A failing run prints its seed. */
import fc from 'fast-check'
import { seed } from '../../support/property.js'
import { rawRequest, type RawRequest } from './fuzz-raw.js'

const text = fc.oneof(
  { weight: 10, arbitrary: fc.string({ maxLength: 30 }) },
  {
    weight: 10,
    arbitrary: fc.constantFrom('', 'calc', 'add', 'task_1_1', '__proto__', 'constructor', 'toString', '\u0000', '�'),
  },
  // Ids that are longer than any may be.
  { weight: 1, arbitrary: fc.integer({ min: 257, max: 5000 }).map((length) => 'x'.repeat(length)) },
)
const anything = fc.oneof(
  fc.anything({ maxDepth: 3, withNullPrototype: false }),
  text,
  fc.constantFrom(null, -1, Infinity, [], {}, '[]'),
)
const mayBe = (value: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 6, arbitrary: value }, { weight: 1, arbitrary: anything })

const command = fc.record(
  {
    tool_name: mayBe(text),
    intention: mayBe(text),
    args: mayBe(fc.dictionary(text, fc.jsonValue())),
    timeout: mayBe(fc.integer()),
  },
  { requiredKeys: [] },
)
const task = fc.record(
  {
    task_name: mayBe(text),
    task_intention: mayBe(text),
    instanceId: mayBe(text),
    commands: mayBe(fc.array(mayBe(command), { maxLength: 4 })),
    metadata: anything,
  },
  { requiredKeys: ['task_name', 'commands'] },
)
const types = [
  'authenticate',
  'task_submit',
  'task_list',
  'task_status',
  'task_cancel',
  'subscribe_task',
  'subscribe_instance',
  'unsubscribe_task',
  'unsubscribe_instance',
]
const message = fc
  .tuple(
    fc.record(
      {
        type: mayBe(fc.constantFrom(...types)),
        requestId: anything,
        taskId: mayBe(text),
        instanceId: mayBe(text),
        status: anything,
        limit: mayBe(fc.integer()),
        cursor: mayBe(text),
      },
      { requiredKeys: ['type'] },
    ),
    fc.option(task),
  )
  .map(([fields, more]) => ({ ...more, ...fields }))

const asJson = (value: unknown): string => {
  try {
    // What has no JSON, such as a function, is not even text then.
    const replacer = (_key: string, inner: unknown) => (typeof inner === 'bigint' ? Number(inner) : inner)
    const text: unknown = JSON.stringify(value, replacer)
    return typeof text === 'string' ? text : 'undefined'
  } catch {
    return '{"type":'
  }
}
const broken = fc
  .tuple(message.map(asJson), fc.nat(), text)
  .map(([json, at, more]) => json.slice(0, at % (json.length + 1)) + more)
/** JSON text, because an object literal cannot have such keys. */
const inherited = fc
  .tuple(
    message.map(asJson).filter((json) => json.startsWith('{"')),
    fc.constantFrom(
      '"__proto__":{"type":"task_list"}',
      '"__proto__":null',
      '"constructor":{"prototype":{"polluted":1}}',
    ),
  )
  .map(([json, key]) => `{${key},${json.slice(1)}`)
/** Valid JSON beyond the nesting limit. */
const deep = fc
  .integer({ min: 1, max: 5000 })
  .map((depth) => `{"type":"task_submit","task_name":"t","metadata":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`)
const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array))

/** A frame for the client socket. */
const frame: fc.Arbitrary<string | Buffer> = fc.oneof(
  { weight: 8, arbitrary: message.map(asJson) },
  { weight: 2, arbitrary: broken },
  { weight: 1, arbitrary: anything.map(asJson) },
  { weight: 1, arbitrary: bytes },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 2000 }).map((depth) => '['.repeat(depth)) },
  { weight: 1, arbitrary: inherited },
  { weight: 1, arbitrary: deep },
)

const paths = [
  '/',
  '//',
  '/tasks',
  '/tasks/',
  '/tasks/a',
  '/tasks/task_1_1',
  '/tasks/a/cancel',
  '/tasks/a/events',
  '/instances',
  '/register',
  '/health',
  '/metrics',
  '/openapi.json',
  '/docs',
  '/tasks/%00',
  '/tasks/%E0%A4%A/cancel',
  '/tasks/__proto__',
  '/tasks/constructor/cancel',
  `/tasks/${'x'.repeat(5000)}`,
  '//evil.example/tasks',
  '/./tasks/../tasks',
]
const query = fc
  .dictionary(fc.constantFrom('instanceId', 'status', 'limit', 'cursor', '__proto__'), text)
  .map((fields) => `?${new URLSearchParams(fields).toString()}`)

export interface FuzzedRequest {
  readonly path: string
  readonly init: RequestInit
}

const request: fc.Arbitrary<FuzzedRequest> = fc
  .tuple(
    fc.constantFrom(...paths),
    fc.oneof(query, fc.constant('')),
    fc.constantFrom('GET', 'POST', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'),
    fc.oneof({ weight: 4, arbitrary: task.map(asJson) }, broken, bytes, inherited, deep),
    fc.constantFrom(
      'application/json',
      'application/json; charset=utf-8',
      'text/plain',
      'application/xml',
      'multipart/form-data',
    ),
    fc.option(fc.constantFrom('0', '1', 'x', '-1', '1e9')),
  )
  .map(([path, more, method, body, type, last]) => ({
    path: path + more,
    init: {
      method,
      headers: { 'content-type': type, ...(last !== null && { 'last-event-id': last }) },
      ...(method !== 'GET' && method !== 'HEAD' && { body }),
    },
  }))

export interface Fuzz {
  readonly seed: number
  frames(count: number): (string | Buffer)[]
  requests(count: number): FuzzedRequest[]
  raw(count: number): RawRequest[]
}

export function createFuzz(): Fuzz {
  return {
    seed,
    frames: (count) => fc.sample(frame, { numRuns: count, seed }),
    requests: (count) => fc.sample(request, { numRuns: count, seed }),
    raw: (count) => fc.sample(rawRequest, { numRuns: count, seed }),
  }
}
