/** agent-tasks.config.json: errors name the file and the field; the published schema is up to date. */
import { mkdtempSync, realpathSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { ConfigFileError } from '../../../src/errors.js'
import { loadAgentConfig, parseAgentConfig } from '../../../src/mcp/config-file.js'
import { trustFile } from '../../../src/mcp/trust.js'
import { configuredSubagents } from '../../../src/mcp/configured-subagents.js'
import { agentConfigJsonSchema, agentConfigSchema } from '../../../src/protocol/agent-config.js'
import type { OutputObject } from '../../../machines/records.js'
import { systemClock } from '../../../src/system/clock.js'
import { createRunContext, runInput } from '../../support/run-context.js'

const subagent = { name: 'a', description: 'd', command: 'node' }

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'agent-tasks-config-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

it('K7: gives a subagent its policy', () => {
  const retry = { attempts: 2, on: ['interrupted'] } as const
  const config = parseAgentConfig(
    {
      subagents: [
        { ...subagent, retry },
        { ...subagent, name: 'b' },
      ],
    },
    'file',
  )
  const subagents = configuredSubagents(config, { folder: '/', projectFolder: '/' }, systemClock)
  expect([...subagents.values()].map((definition) => definition.retry)).toEqual([retry, undefined])
})

describe('the configuration file', () => {
  it.each([
    [[], 'the file: got an empty array, expected an object.'],
    [{ subagent: [] }, 'subagent: unknown field; did you mean subagents?'],
    [{ subagents: [{ ...subagent, command: '' }] }, 'subagents[0].command: got "", expected at least 1 character(s).'],
    [{ subagents: [{ name: 'a', description: 'd' }] }, 'subagents[0].command: got undefined, expected a string.'],
    [{ subagents: [{ ...subagent, arg: [] }] }, 'subagents[0].arg: unknown field; did you mean args?'],
    [{ schedules: { zzzz: 's3cret' } }, 'schedules.zzzz: unknown field; the fields are '],
    [{ subagents: [{ ...subagent, args: '{goal}' }] }, 'subagents[0].args: got "{goal}", expected an array.'],
    [
      { subagents: [{ ...subagent, output: 'xml' }] },
      'subagents[0].output: got "xml", expected one of "text", "json-last-line", "json".',
    ],
    [{ subagents: [{ ...subagent, retry: { on: ['interrupted'] } }] }, 'subagents[0].retry.attempts: got undefined'],
    [
      { subagents: [{ ...subagent, retry: { attempts: 0, on: ['interrupted'] } }] },
      'subagents[0].retry.attempts: got 0, expected at least 1',
    ],
    [
      { subagents: [{ ...subagent, retry: { attempts: 2, on: ['always'] } }] },
      'subagents[0].retry.on[0]: got "always", expected one of "interrupted"',
    ],
    [{ subagents: [subagent, subagent] }, 'subagents[1].name: got "a", expected a name that no other entry has.'],
    [{ subagents: [{ ...subagent, name: 'a b' }] }, 'subagents[0].name: got "a b", expected letters, digits'],
    [
      { subagents: [{ ...subagent, timeoutSeconds: 0 }] },
      'subagents[0].timeoutSeconds: got 0, expected a number of seconds > 0',
    ],
    [
      { subagents: [{ ...subagent, timeoutSeconds: 9999 }] },
      'subagents[0].timeoutSeconds: got 9999, expected at most maxTimeoutSeconds, which is 1800.',
    ],
    [{ defaultTimeoutSeconds: -1 }, 'defaultTimeoutSeconds: got -1, expected at most maxTimeoutSeconds'],
    [
      { commands: { allow: [], defaultTimeoutSeconds: 7200 } },
      'commands.defaultTimeoutSeconds: got 7200, expected at most maxTimeoutSeconds, which is 1800',
    ],
    [
      { commands: { allow: [], defaultTimeoutSeconds: 7200, maxTimeoutSeconds: 3600 } },
      'commands.defaultTimeoutSeconds: got 7200, expected at most maxTimeoutSeconds, which is 3600',
    ],
    [{ commands: { allow: [], maxTimeoutSeconds: 0 } }, 'commands.maxTimeoutSeconds: got 0, expected an integer >= 1'],
    [{ instances: [{ id: 'i' }] }, 'instances[0]: got {"id":"i"}, expected either a command or a url.'],
    [{ instances: [{ id: 'i', command: 'c', url: 'http://x' }] }, 'expected either a command or a url.'],
    [{ instances: [{ id: 'i', url: 'http://x', args: [] }] }, 'expected no args, env or cwd next to a url.'],
    [{ instances: [{ id: 'i', url: 'ftp://x' }] }, 'instances[0].url: got "ftp://x", expected'],
    [{ http: { port: 70_000 } }, 'http.port: got 70000, expected at most 65535.'],
    [{ http: { tokens: ['two words'] } }, 'http.tokens[0]: got (not shown), expected visible ASCII characters.'],
  ])('may not be %j', (content, message) => {
    const problem = (() => {
      try {
        return parseAgentConfig(content, '/home/me/agent-tasks.config.json')
      } catch (error) {
        return error as Error
      }
    })()
    expect(problem).toBeInstanceOf(ConfigFileError)
    expect((problem as Error).message).toContain('/home/me/agent-tasks.config.json: ')
    expect((problem as Error).message).toContain(message)
  })

  it('is read from the given path, from the working directory, or not at all', () => {
    const cwd = folder()
    expect(loadAgentConfig(undefined, cwd)).toMatchObject({
      file: undefined,
      path: join(cwd, 'agent-tasks.config.json'),
      folder: cwd,
      config: { subagents: [] },
    })
    writeFileSync(join(cwd, 'agent-tasks.config.json'), `\uFEFF${JSON.stringify({ maxAsyncTasks: 2 })}`)
    const file = join(cwd, 'agent-tasks.config.json')
    const env = { HOME: cwd }
    expect(loadAgentConfig(undefined, cwd, env)).toMatchObject({ file: undefined, untrusted: { file } })
    trustFile(file, env, () => undefined)
    expect(loadAgentConfig(undefined, cwd, env).config.maxAsyncTasks).toBe(2)
    expect(loadAgentConfig(file, cwd, {}).config.maxAsyncTasks).toBe(2)
    writeFileSync(join(cwd, 'other.json'), '{}')
    expect(loadAgentConfig('other.json', cwd)).toMatchObject({ file: join(cwd, 'other.json'), folder: cwd })
  })

  it('must exist when a path is given, and must be JSON', () => {
    const cwd = folder()
    expect(() => loadAgentConfig('none.json', cwd)).toThrow(
      `${join(cwd, 'none.json')}: cannot be read (ENOENT). To write a working example, run \`npx --no-install agent-tasks mcp --init --config "${join(cwd, 'none.json')}"\``,
    )
    writeFileSync(join(cwd, 'bad.json'), '{')
    expect(() => loadAgentConfig('bad.json', cwd)).toThrow(`${join(cwd, 'bad.json')}: is not JSON`)
  })

  it('has an up-to-date published schema (npm run config-schema writes it)', () => {
    const published = new URL('../../../agent-tasks.config.schema.json', import.meta.url)
    expect(JSON.parse(readFileSync(published, 'utf8'))).toEqual(agentConfigJsonSchema())
  })

  it('has a published schema that accepts valid files, and refuses a misspelt field', () => {
    const schema = z.fromJSONSchema(agentConfigJsonSchema())
    expect(schema.safeParse({ subagents: [subagent] }).success).toBe(true)
    expect(schema.safeParse({ subagents: [{ ...subagent, comand: 'x' }] }).success).toBe(false)
    expect(schema.safeParse({}).success).toBe(true)
  })
})

describe('a configured subagent', () => {
  const run = async (more: object, goal: string, cwd?: string) => {
    const config = agentConfigSchema.parse({ subagents: [{ ...subagent, command: process.execPath, ...more }] })
    const definition = configuredSubagents(config, { folder: folder(), projectFolder: tmpdir() }, systemClock).get('a')!
    const request = { ...runInput(goal), subagent_name: 'a', goal_prompt: goal, cwd }
    return (await definition.run(request, createRunContext())) as OutputObject
  }

  it('gets the goal as one argument, whatever it contains', async () => {
    const goal = 'say "hi"; $(rm -rf /) {name}\n* 100%'
    const output = await run({ args: ['-p', 'process.argv[1]', '--', '{goal}'] }, goal)
    expect(output).toEqual({ final_message: goal })
  })

  it.each([
    ['text', { final_message: '1\n{"a":2}' }],
    ['json-last-line', { emitted_vars: { a: 2 } }],
  ])('is read as %s', async (output, expected) => {
    expect(await run({ output, args: ['-e', `console.log('1'); console.log('{"a":2}')`] }, 'g')).toEqual(expected)
  })

  it('runs with variables added and removed', async () => {
    const script = 'console.log(JSON.stringify({ a: process.env.A, home: process.env.HOME ?? null }))'
    const output = await run({ output: 'json', args: ['-e', script], env: { A: 'x', HOME: null } }, 'g')
    expect(output.emitted_vars).toEqual({ a: 'x', home: null })
  })

  it('runs in its cwd, relative to the file, or in the project, or where the request says', async () => {
    const where = { args: ['-e', 'console.log(process.cwd())'] }
    const project = realpathSync(tmpdir())
    expect((await run({ ...where, cwd: '.' }, 'g')).final_message).toContain('agent-tasks-config-')
    expect((await run(where, 'g')).final_message).toBe(project)
    expect((await run({ ...where, cwd: '.' }, 'g', project)).final_message).toBe(project)
  })
})

describe('the documentation', () => {
  const root = new URL('../../../', import.meta.url)
  const blocks = ['README.md', 'docs/mcp.md'].flatMap((file) =>
    [...readFileSync(new URL(file, root), 'utf8').matchAll(/```json\n(.*?)```/gs)].map(([, block = '']) => [
      file,
      block,
    ]),
  )

  it.each(blocks.filter(([, block]) => block!.includes('"subagents"')))(
    'of %s shows a configuration that is taken',
    (_file, block) => {
      expect(parseAgentConfig(JSON.parse(block), 'it').subagents.length).toBeGreaterThan(2)
    },
  )

  it('has an example that runs without an agent CLI', async () => {
    const { config, folder: at } = loadAgentConfig(
      fileURLToPath(new URL('docs/examples/mcp/agent-tasks.config.json', root)),
    )
    const counter = configuredSubagents(config, { folder: at, projectFolder: '/' }, systemClock).get('word-count')!
    const request = { ...runInput('word-count.mjs'), subagent_name: 'word-count', goal_prompt: 'word-count.mjs' }
    const context = createRunContext()
    expect(await counter.run(request, context)).toMatchObject({ final_message: 'Counted 1 file(s)' })
    expect(context.output()).toContain('word-count.mjs: ')
  })
})
