/** Configurations near the schema: each is used as it says, or refused with the field, what was found there and what is expected. Nothing is started. */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { ConfigFileError } from '../../src/errors.js'
import { parseAgentConfig, parseConfigBytes } from '../../src/mcp/config-file.js'
import type { AgentConfig } from '../../src/protocol/agent-config.js'

const texts = fc.oneof(
  fc.constantFrom(
    '',
    'a',
    'text',
    'json',
    '{goal}',
    '__proto__',
    'constructor',
    'a\u0000b',
    '\u001b]52;c;aGk=\u0007',
    '\u202e',
    '\ud800',
    '9'.repeat(400),
  ),
  fc.constantFrom(100_000, 1_000_000).map((length) => 'x'.repeat(length)),
  fc.string({ unit: 'binary' }),
)

/** JSON texts of values. */
const values: fc.Arbitrary<string> = fc.oneof(
  texts.map((text) => JSON.stringify(text)),
  fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value)),
  fc.constantFrom('null', 'true', '0', '-1', '1e308', '1e999', '0.5'),
  fc.integer({ min: 1, max: 100_000 }).map((depth) => '['.repeat(depth) + ']'.repeat(depth)),
)

/** A valid configuration with every part, of which one place is replaced. */
const sound = {
  subagents: [
    {
      name: 'a',
      description: 'd',
      command: 'touch',
      args: ['MARK', 'https://host/**/x', ',]'],
      env: { TOKEN: 'x' },
      output: 'text',
      retry: { attempts: 2, on: ['interrupted'] },
    },
  ],
  instances: [{ id: 'x', command: 'touch', args: ['MARK'], env: { TOKEN: 'x' } }],
  commands: { allow: ['touch'] },
  http: { tokens: ['0123456789abcdef0123456789abcdef'] },
  store: 'store',
}

type Path = readonly (string | number)[]
const pathsOf = (value: unknown, path: Path = []): Path[] => [
  path,
  ...(typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, part]) => pathsOf(part, [...path, Array.isArray(value) ? Number(key) : key]))
    : []),
]

/** The text of the configuration with another value at a place, or with a field more there. Written by hand: `__proto__` is a field like any other. */
function textWith(
  value: unknown,
  path: Path,
  change: { readonly to: string; readonly field: string | undefined },
): string {
  const [key, ...rest] = path
  if (key === undefined) {
    if (change.field === undefined) return change.to
    const text = JSON.stringify(value)
    const added = `${JSON.stringify(change.field)}:${change.to}`
    return text.startsWith('{') ? `${text.slice(0, -1)}${text === '{}' ? '' : ','}${added}}` : `{${added}}`
  }
  const write = (name: string | number, part: unknown): string =>
    name === key ? textWith(part, rest, change) : JSON.stringify(part)
  if (Array.isArray(value)) return `[${value.map((part, at) => write(at, part)).join()}]`
  return `{${Object.entries(value as object)
    .map(([name, part]) => `${JSON.stringify(name)}:${write(name, part)}`)
    .join()}}`
}

const near = fc
  .record({ path: fc.constantFrom(...pathsOf(sound)), to: values, field: fc.option(texts, { nil: undefined }) })
  .map(({ path, to, field }) => textWith(sound, path, { to, field }))

/** Texts of configurations: near the schema, any JSON, JSON that was cut, or no JSON. */
const configTexts: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: near },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: near.chain((text) => fc.nat(text.length).map((length) => text.slice(0, length))) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 100 }) },
)

/** The longest message of an error: it quotes no more than the beginning of what it found. */
const MAX_MESSAGE = 2000

/** Writes comments and a last comma into the text of a configuration, which is an object. */
const withComments = (text: string): string =>
  `\uFEFF// a "\n${text.replace(/\s*\}\s*$/, (end) => `${/^\{\s*\}\s*$/.test(text) ? '' : ', /* ] */'}${end}// b`)}`

/** F13: what a configuration holds is used as it says, or refused in words. */
export function hostileConfigsProperty(
  parse: typeof parseConfigBytes = parseConfigBytes,
): fc.IPropertyWithHooks<[string]> {
  return fc.property(configTexts, (text) => {
    let config: AgentConfig | undefined
    try {
      config = parse(Buffer.from(text), '/folder/agent-tasks.config.json')
      if (Object.getPrototypeOf(config) !== Object.prototype) throw new Error('its prototype was replaced')
    } catch (error) {
      if (!(error instanceof ConfigFileError)) throw error
      const { message } = error
      if (!message.includes('/folder/agent-tasks.config.json')) {
        throw new Error(`it does not name the file: ${message}`, { cause: error })
      }
      if (message.length > MAX_MESSAGE) throw new Error('its message is long', { cause: error })
      // eslint-disable-next-line no-control-regex -- that is what is looked for
      if (/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(message)) {
        throw new Error('its message has control characters', { cause: error })
      }
      const says =
        /is not JSON|: got [\s\S]*, expected |: unknown field; (?:did you mean|the fields are|there are none)/
      if (!says.test(message)) {
        throw new Error(`it does not say what is expected: ${message}`, { cause: error })
      }
    }
    if (config !== undefined) {
      const expected = parseAgentConfig(JSON.parse(text), 'file')
      for (const content of [config, parse(Buffer.from(withComments(text)), 'file')]) {
        if (!isDeepStrictEqual(content, expected)) throw new Error('it was read as something else')
      }
    }
    if (Object.hasOwn(Object.prototype, 'polluted')) throw new Error('a prototype was changed')
  })
}
