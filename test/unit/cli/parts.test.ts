// Parsers and formatters of the command line.
import { EMPTY } from 'rxjs'
import { readFile, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseInstanceOption, parseInstanceOptions } from '../../../src/cli/instance-option.js'
import { describeError } from '../../../src/cli/failures.js'
import { followTask } from '../../../src/cli/follow.js'
import { introduce } from '../../../src/cli/introduction.js'
import { formatAge, formatTable, oneLine } from '../../../src/cli/table.js'
import { findTaskId } from '../../../src/cli/tasks/task-list.js'
import { createTaskView } from '../../../src/cli/task-view.js'
import { createTerminal, type Line, type Terminal } from '../../../src/cli/terminal.js'
import type { TaskMessage } from '../../../src/client/session.js'
import type { TaskClient } from '../../../src/client/task-client.js'
import type { TaskCompleteMessage } from '../../../src/protocol/command-tasks.js'
import type { TaskServer } from '../../../src/server/index.js'
import { startCommandLine } from './command-line.js'

describe('--instance', () => {
  it.each([
    ['a=node', { id: 'a', command: 'node', args: [] }],
    [
      `b.1=npx x --name 'two words' "and 'more'"`,
      { id: 'b.1', command: 'npx', args: ['x', '--name', 'two words', "and 'more'"] },
    ],
    ['c=http://127.0.0.1:1/mcp?a=b', { id: 'c', url: 'http://127.0.0.1:1/mcp?a=b' }],
    ['d=HTTPS://localhost/mcp', { id: 'd', url: 'HTTPS://localhost/mcp' }],
    ['e=node a://b', { id: 'e', command: 'node', args: ['a://b'] }],
  ])('reads %s', (value, expected) => {
    expect(parseInstanceOption(value)).toEqual(expected)
  })

  it.each(['', 'a', '=node', 'a b=node', 'a=', 'a=   '])('rejects %j', (value) => {
    expect(() => parseInstanceOption(value)).toThrow('--instance')
  })

  it.each(['a=ftp://host/mcp', 'a=ws://host', 'a=FILE:///x'])('rejects the URL of another kind in %j', (value) => {
    expect(() => parseInstanceOption(value)).toThrow(`--instance: got "${value}", expected an http or https URL.`)
  })

  it('rejects a name that is used twice', () => {
    expect(parseInstanceOptions(['a=x', 'b=y']).map(({ id }) => id)).toEqual(['a', 'b'])
    expect(() => parseInstanceOptions(['a=x', 'a=y'])).toThrow('--instance: got "a"')
  })
})

describe('tables', () => {
  it('pad all columns but the last', () => {
    expect(
      formatTable(
        ['A', 'LONG', 'C'],
        [
          ['one', 'b', ''],
          ['x', 'y', 'z'],
        ],
      ),
    ).toEqual(['A    LONG  C', 'one  b', 'x    y     z'])
  })

  it.each([
    [0, '0s'],
    [119_000, '119s'],
    [180_000, '3m'],
    [7_200_000, '2h'],
    [4 * 86_400_000, '4d'],
    [-5000, '0s'],
  ])('format %d ms as %s', (age, text) => {
    expect(formatAge(1_000_000_000_000, 1_000_000_000_000 + age)).toBe(text)
  })

  it('make one line of a text, without control characters', () => {
    expect(oneLine('a\r\n\tb\u001b[1mc\u009b', 20)).toBe('a b [1mc')
    expect(oneLine('0123456789', 8)).toBe('01234...')
  })
})

describe('a followed task', () => {
  const output = () => {
    const written = { text: '' }
    return { written, stream: { isTTY: true, columns: 100, write: (text: string) => (written.text += text) } }
  }
  const complete = (result: unknown): TaskCompleteMessage => ({
    type: 'task_complete',
    taskId: 't1',
    instanceId: 'calc',
    status: 'completed',
    timestamp: 0,
    summary: { totalCommands: 1, successfulCommands: 1, duration: 1 },
    results: [{ commandId: 'cmd_1', status: 'success', result }],
  })
  const follow = async (events: readonly TaskMessage[]) => {
    const { written, stream } = output()
    const io = {
      stdout: stream,
      stderr: { write: () => true },
      env: {},
      readStdin: () => Promise.resolve(''),
    }
    const watch = async function* () {
      for (const event of events) yield await Promise.resolve(event)
    }
    const options = {
      terminal: createTerminal(io, 'stderr'),
      isJson: false,
      signal: new AbortController().signal,
    }
    const exitCode = await followTask({ watch, connection$: EMPTY } as unknown as TaskClient, 't1', options)
    return { exitCode, text: written.text }
  }

  it('prints text results as text, and others as JSON', async () => {
    expect(
      await follow([
        complete({
          content: [
            { type: 'text', text: '5' },
            { type: 'image', data: '' },
          ],
        }),
      ]),
    ).toEqual({
      exitCode: 0,
      text: '5\n{"type":"image","data":""}\n',
    })
    expect((await follow([complete({ odd: 1 })])).text).toBe('{"odd":1}\n')
  })

  it('prints the file of an image, not its base64', async () => {
    const data = Buffer.from('a picture').toString('base64')
    const image = { type: 'image', data, mimeType: 'image/png' }
    const { text } = await follow([complete({ content: [image, { ...image, mimeType: 'image/../x' }] })])
    const paths = text.trimEnd().split('\n')
    expect(paths).toEqual([expect.stringMatching(/t1-1\.png$/), expect.stringMatching(/t1-2\.bin$/)])
    onTestFinished(() => rm(dirname(paths[0]!), { recursive: true }))
    expect(await readFile(paths[0]!, 'utf8')).toBe('a picture')
    expect((await stat(paths[0]!)).mode & 0o777).toBe(0o600)
    expect(dirname(paths[1]!)).toBe(dirname(paths[0]!))
  })

  it('is an error when the events end before the task', async () => {
    await expect(follow([])).rejects.toThrow('The watch of t1 ended before the task.')
  })

  it('has a bar for a command without a snapshot, and for those before it', () => {
    const { written, stream } = output()
    const terminal = createTerminal(
      { stdout: stream, stderr: stream, env: { NO_COLOR: '1' }, readStdin: () => Promise.resolve('') },
      'stderr',
    )
    const view = createTaskView(terminal)
    view.show({
      type: 'task_progress',
      taskId: 't1',
      instanceId: 'calc',
      commandId: 'cmd_2',
      commandIndex: 1,
      totalCommands: 2,
      status: 'running',
      timestamp: 0,
      tool_name: 'slow',
      intention: '',
      progress: 1,
      total: 4,
      message: 'a bit',
    })
    view.end()
    expect(written.text).toContain('     [....................] pending')
    expect(written.text).toContain('slow [=====...............] running 1/4 a bit')
  })

  it('shows the running command when there are more than the screen has lines', () => {
    const drawn: (readonly Line[])[] = []
    const live = { rows: 23, draw: (lines: readonly Line[]) => drawn.push(lines), done: () => undefined }
    const view = createTaskView({ live } as unknown as Terminal)
    const commands = Array.from({ length: 40 }, (_, index) => ({
      tool_name: `tool ${index + 1}`,
      status: index < 30 ? ('success' as const) : index === 30 ? ('running' as const) : ('pending' as const),
    }))
    view.snapshot({ commands })
    const text = JSON.stringify(drawn.at(-1))
    expect(drawn.at(-1)).toHaveLength(23)
    expect(text).toContain('tool 31')
    expect(text).toContain('commands 19 to 40 of 40')
  })

  it('has colours depending on FORCE_COLOR', () => {
    const printed = (env: Record<string, string>): string => {
      const { written, stream } = output()
      const io = { stdout: { ...stream, isTTY: false }, stderr: stream, env, readStdin: () => Promise.resolve('') }
      createTerminal(io, 'stdout').print([{ text: 'x', colour: 'red' }])
      return written.text
    }
    expect(printed({ FORCE_COLOR: '1' })).toBe('\u001b[31mx\u001b[39m\n')
    expect([printed({ FORCE_COLOR: '0' }), printed({})]).toEqual(['x\n', 'x\n'])
  })

  it('has lines that are cut by what is shown of them, so that their colour ends', () => {
    const { written, stream } = output()
    const io = { stdout: stream, stderr: stream, env: { FORCE_COLOR: '1' }, readStdin: () => Promise.resolve('') }
    createTerminal(io, 'stdout').live?.draw([['x'.repeat(98), { text: 'yyy', colour: 'red' }, 'z']])
    expect(written.text).toContain(`${'x'.repeat(98)}\u001b[31my\u001b[39m\n`)
  })
})

describe('the output of a command', () => {
  const evil = 'a\u001b]0;title\u0007b\rc\u009bd\u202ee\nf'
  const printed = (isTTY: boolean, print: (terminal: Terminal) => void): string => {
    let text = ''
    const stream = { isTTY, columns: 100, write: (part: string) => (text += part) }
    const io = { stdout: stream, stderr: stream, env: { NO_COLOR: '1' }, readStdin: () => Promise.resolve('') }
    print(createTerminal(io, 'stdout'))
    return text
  }

  it.each([true, false])('has no control characters of others, on a terminal: %s', (isTTY) => {
    const line = 'a ]0;title b c d e f\n'
    expect(printed(isTTY, ({ print }) => print(evil))).toBe(line)
    expect(printed(isTTY, ({ print }) => print([evil]))).toBe(line)
    expect(printed(isTTY, ({ say }) => say(evil))).toBe(line)
    expect(printed(isTTY, ({ printLines }) => printLines(evil))).toBe('a ]0;title b c d e\nf\n')
    expect(printed(isTTY, ({ printJson }) => printJson(evil))).toBe(
      '"a\\u001b]0;title\\u0007b\\rc\\u009bd\\u202ee\\nf"\n',
    )
  })

  it('has the exact text of a result when it is piped', () => {
    expect(printed(false, ({ printResult }) => printResult(evil))).toBe(`${evil}\n`)
    expect(printed(true, ({ printResult }) => printResult(evil))).toBe('a ]0;title b c d e\nf\n')
  })

  it('has no control characters in lines that are redrawn', () => {
    expect(printed(true, ({ live }) => live?.draw([[evil]]))).toContain('a ]0;title b c d e f\n')
  })
})

describe('a prefix of a task id', () => {
  it('is looked up on all pages', async () => {
    const pages = [
      { tasks: [{ id: 'task_1' }, { id: 'task_2', status: 'running' }], nextCursor: 'next' },
      { tasks: [{ id: 'job_3' }, { id: 'task_20', status: 'failed' }] },
    ]
    const get = () => Promise.resolve(undefined)
    const list = ({ cursor }: { cursor?: string }) => Promise.resolve(pages[cursor === 'next' ? 1 : 0])
    const client = { get, list } as unknown as TaskClient
    expect(await findTaskId(client, 'job')).toBe('job_3')
    await expect(findTaskId(client, 'task_2')).rejects.toMatchObject({
      code: 'TASK_AMBIGUOUS',
      message: 'task_2 could be task_2 (running), task_20 (failed). Write more of the id.',
    })
    expect(await findTaskId(client, 'task_2', ({ status }) => status === 'running')).toBe('task_2')
    await expect(findTaskId(client, '')).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' })
  })
})

describe('the demo instance', () => {
  it('echoes, and reports progress', async () => {
    const { submit } = await startCommandLine()
    const commands = [
      { tool_name: 'echo', args: { a: 1 } },
      { tool_name: 'slow', args: { seconds: 0, steps: 2 } },
    ]
    const { stdout, stderr } = await submit({ task_name: 'Both', commands })
    expect(stdout).toBe('{"a":1}\n0 s in 2 steps\n')
    expect(stderr).toContain('[2/2] slow running: 1/2\n')
  })
})

describe('the introduction of a server', () => {
  const server = (config: object) =>
    ({
      httpUrl: 'https://127.0.0.1:1',
      wsUrl: 'wss://127.0.0.1:2',
      config: { auth: { tokens: [] }, tls: {}, ...config },
    }) as unknown as TaskServer
  const where = 'REST at https://127.0.0.1:1 (try it at https://127.0.0.1:1/docs), sockets at wss://127.0.0.1:2.'

  it('names the instances', () => {
    expect(introduce(server({}), [])).toBe(`${where} No instance is connected yet.`)
    expect(introduce(server({}), ['a', 'b'])).toBe(`${where} Instances: a, b.`)
  })

  it('has examples for the demo instance, without the token and with the certificate', () => {
    const text = introduce(server({ auth: { tokens: ['SECRET'] }, tls: { certPath: '/cert.pem' } }), ['calc'])
    expect(text).toContain(
      `curl -sk https://127.0.0.1:1/tasks -H 'content-type: application/json' -H "authorization: Bearer \${AUTH_TOKENS%%,*}" -d '{"task_name"`,
    )
    expect(text).toContain(`NODE_EXTRA_CA_CERTS='/cert.pem' node --input-type=module -e "`)
    expect(text).not.toContain('SECRET')
    expect(introduce(server({}), ['calc'])).not.toContain('AUTH_TOKENS')
  })
})

describe('an error that is not of this package', () => {
  it('is printed as invalid input', () => {
    expect(describeError(new Error('broken'))).toEqual({ message: 'broken', exitCode: 2 })
    expect(describeError('just text')).toEqual({ message: 'just text', exitCode: 2 })
  })
})
