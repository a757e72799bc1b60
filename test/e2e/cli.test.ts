// The program as a process: signals, pipes, and servers that it starts.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { startRelay } from '../support/inspector-relay.js'
import { openLifelines } from '../support/lifelines.js'

const everything = 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'
const pidServer = 'test/support/programs/pid-server.mjs'
const program = ['dist/src/cli/main.js']

interface Started {
  readonly child: ChildProcess
  readonly exited: Promise<unknown>
  readonly stdout: Promise<string>
  readonly stderr: Promise<string>
}

function start(args: readonly string[], env: Record<string, string> = {}, stdin?: string): Started {
  const child = spawn(process.execPath, [...program, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  child.stdin.end(stdin)
  return {
    child,
    exited: once(child, 'exit').then(([code, signal]) => (code ?? signal) as unknown),
    stdout: text(child.stdout),
    stderr: text(child.stderr),
  }
}

interface Serving {
  readonly url: string
  readonly child: ChildProcess
  readonly exited: Promise<unknown>
  readonly stderr: Promise<string>
}

async function serve(...args: string[]): Promise<Serving> {
  const child = spawn(process.execPath, [...program, 'serve', '--port', '0', '--ws-port', '0', '--json', ...args], {
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const exited = once(child, 'exit').then(([code, signal]) => (code ?? signal) as unknown)
  const stderr = text(child.stderr)
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { url: (JSON.parse(line) as { httpUrl: string }).httpUrl, child, exited, stderr }
}

it('runs tools of the MCP servers that it starts, and stops them', async () => {
  const { url, child, exited } = await serve('--instance', `everything=${process.execPath} ${everything} stdio`)
  const task = { task_name: 'Sum', commands: [{ tool_name: 'get-sum', args: { a: 20, b: 22 } }] }
  const { stdout, stderr, exited: ended } = start(['submit', '-'], { AGENT_TASKS_URL: url }, JSON.stringify(task))
  expect([await ended, await stdout]).toEqual([0, 'The sum of 20 and 22 is 42.\n'])
  // A pipe gets no colour and nothing drawn over.
  expect(await stderr).not.toContain('\u001b')
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
})

it('starts an MCP server again whose process has died, and logs it', async () => {
  const { url, child, exited, stderr } = await serve('--instance', `pid=${process.execPath} ${pidServer}`)
  const task = { task_name: 'Pid', commands: [{ tool_name: 'pid' }] }
  const submit = () => start(['submit', '-'], { AGENT_TASKS_URL: url }, JSON.stringify(task)).stdout
  const first = Number(await submit())
  process.kill(first, 'SIGKILL')
  await expect.poll(async () => Number(await submit()), { timeout: 30_000 }).toBeGreaterThan(0)
  expect(Number(await submit())).not.toBe(first)
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
  const lines = (await stderr).split('\n').filter((line) => line.includes('instance pid'))
  expect(lines).toEqual([
    expect.stringMatching(/^agent-tasks warn: instance pid was lost: .*; it is started again in 1 s$/),
    'agent-tasks info: instance pid is connected again',
  ])
})

it('cancels its task at Ctrl-C', async () => {
  const { url } = await serve('--demo')
  const task = { task_name: 'Slow', commands: [{ tool_name: 'slow', args: { seconds: 600, steps: 600 } }] }
  const submit = start(['submit', '-', '--json'], { AGENT_TASKS_URL: url }, JSON.stringify(task))
  await once(submit.child.stdout!, 'data')
  submit.child.kill('SIGINT')
  expect(await submit.exited).toBe(130)
  expect(await submit.stderr).toMatch(/^task_\S+ was cancelled\.\n$/)
  const list = start(['tasks', 'list', '--json'], { AGENT_TASKS_URL: url })
  expect(JSON.parse(await list.stdout)).toMatchObject({ name: 'Slow', status: 'cancelled' })
})

it('watches all tasks until Ctrl-C, a line for each change', async () => {
  const { url } = await serve('--demo')
  const watch = start(['tasks', 'watch', '--interval', '50'], { AGENT_TASKS_URL: url })
  const lines = createInterface({ input: watch.child.stdout! })[Symbol.asyncIterator]()
  const task = { task_name: 'Slow', commands: [{ tool_name: 'slow', args: { seconds: 0.5, steps: 1 } }] }
  await start(['submit', '-'], { AGENT_TASKS_URL: url }, JSON.stringify(task)).exited
  let last = ''
  while (!last.includes('completed')) last = String((await lines.next()).value)
  expect(last).toMatch(/^task_\S+ calc completed 1\/1$/)
  watch.child.kill('SIGINT')
  expect(await watch.exited).toBe(130)
})

it('reports an MCP server that does not start, and leaves nothing running', async () => {
  const bad = start(['serve', '--instance', `x=${process.execPath} -e 'console.error("no key"); process.exit(3)'`])
  expect(await bad.exited).toBe(2)
  expect(await bad.stderr).toMatch(/no key[^]*Run the command on its own/)
})

it.each([[['submit', '-']], [['submit', '-', '--json']]])(
  'ends with 3 and the id of the task when the server dies: %j',
  async (args) => {
    const { url, child } = await serve('--demo')
    const task = { task_name: 'Slow', commands: [{ tool_name: 'slow', args: { seconds: 600, steps: 600 } }] }
    const submit = start([...args, '--reconnect', '100'], { AGENT_TASKS_URL: url }, JSON.stringify(task))
    await once(args.length > 2 ? submit.child.stdout! : submit.child.stderr!, 'data')
    child.kill('SIGKILL')
    expect(await submit.exited).toBe(3)
    expect(await submit.stderr).toMatch(/(task_\S+) may still run: agent-tasks tasks watch \1/)
  },
)

it('ends quietly when the reader of its output has gone', async () => {
  const { url } = await serve('--demo')
  const task = JSON.stringify({ task_name: 'Add', commands: [{ tool_name: 'add', args: { a: 2, b: 3 } }] })
  await start(['submit', '-'], { AGENT_TASKS_URL: url }, task).exited
  const watch = start(['tasks', 'watch', '--interval', '50', '--json'], { AGENT_TASKS_URL: url })
  await once(watch.child.stdout!, 'data')
  watch.stdout.catch(() => undefined)
  watch.child.stdout!.destroy()
  await start(['submit', '-'], { AGENT_TASKS_URL: url }, task).exited
  expect(await watch.exited).toBe(141)
  expect(await watch.stderr).toBe('')
})

it('leaves no MCP server running when Ctrl-C comes while it starts', async () => {
  const lifelines = await openLifelines()
  onTestFinished(lifelines.close)
  const [script, spec] = lifelines.argumentsOf({ name: 'starting', ignoresSigterm: true })
  // It never answers, so that its start does not end.
  const { child, exited } = start(['serve', '--instance', `x=${process.execPath} ${script} '${spec}'`])
  const starting = await lifelines.program('starting')
  child.kill('SIGINT')
  await starting.gone
  expect(await exited).toBe(0)
})

it('completes its commands in bash', async () => {
  const { stdout: script } = await promisify(execFile)(process.execPath, [...program, 'completion', 'bash'])
  expect(script).toContain('agent-tasks')
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...program,
    'complete',
    '--',
    'tasks',
    'list',
    '--st',
  ])
  expect(stdout).toContain('--status')
  // Bash without the package bash-completion, and agent-tasks as this program.
  const completed = async (...words: string[]): Promise<string[]> => {
    const lines = [
      `agent-tasks() { ${[process.execPath, ...program].map((word) => `'${word}'`).join(' ')} "$@"; }`,
      ...[script, `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})`, `COMP_CWORD=${words.length - 1}`],
      ...['__agent_tasks_complete_or_file', `printf '%s\\n' "\${COMPREPLY[@]}"`],
    ]
    const { stdout: found } = await promisify(execFile)('bash', ['--norc', '-c', lines.join('\n')])
    return found.trim().split('\n')
  }
  expect(await completed('agent-tasks', 'sub')).toEqual(['submit'])
  expect(await completed('agent-tasks', 'submit', 'package.j')).toEqual(['package.json'])
  expect(await completed('agent-tasks', 'mcp', '--config', 'package.j')).toEqual(['package.json'])
})

it('shows live actors in a viewer, through the given relay', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { url, child, exited } = await serve('--demo', '--inspect', relay.url)
  const task = { task_name: 'Add', commands: [{ tool_name: 'add', args: { a: 2, b: 3 } }] }
  expect(await start(['submit', '-'], { AGENT_TASKS_URL: url }, JSON.stringify(task)).stdout).toBe('5\n')
  await received.until(({ type, sessionId }) => type === '@xstate.actor' && sessionId !== '')
  const ended = await received.until(
    (message) => message.type === '@xstate.snapshot' && JSON.stringify(message.snapshot).includes('"completed"'),
  )
  // What a tool was given is nobody's business.
  expect(JSON.stringify(ended)).not.toContain('"a":2')
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
})
