/** Browsers as instances: Debian's Chromium, driven by the MCP server of Playwright. Their processes can be counted. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { createTaskClient, type TaskCompleteMessage, type TaskMessage } from '../../src/client/index.js'
import { mcpInstance, startTaskServer, type Instance } from '../../src/server/index.js'
import { chromiumPath } from './chromium.js'
import { createProcessFamily, type ProcessFamily } from './process-family.js'
import type { TaskSubmission } from '../../src/client/task-client.js'

export interface Browser {
  readonly instance: Instance
  readonly family: ProcessFamily
}

export interface BrowserOptions {
  /** `full`, the default of the server: each result contains a snapshot. `none`: only the result of `browser_snapshot` contains one. */
  readonly snapshotMode?: 'full' | 'none'
}

export type Command = TaskSubmission['commands'][number]

const server = fileURLToPath(new URL('../../node_modules/@playwright/mcp/cli.js', import.meta.url))

/** How long an action may take, in ms. It is longer than any page needs on a busy machine. */
const ACTION_MS = 30_000
/** How long the server waits after an action, in ms. Short, because the commands of the tests wait for the page themselves. */
const SETTLE_MS = 100

/** How long processes may take to exit, in ms. */
export const GONE_MS = 5000

/**
 * Starts the MCP server of a browser. The browser itself starts with the first command, and its user agent is `id`. The caller must pass the instance to
 * a server that closes it. A test fails if it has left a process of the browser.
 * @throws Error when a program is missing, with the command that installs it
 */
export async function openBrowser(id: string, { snapshotMode = 'none' }: BrowserOptions = {}): Promise<Browser> {
  const executable = chromiumPath()
  if (!existsSync(server)) throw new Error('@playwright/mcp is not installed. Install it with: npm ci')
  const output = await mkdtemp(join(tmpdir(), 'agent-tasks-browser-'))
  onTestFinished(() => rm(output, { recursive: true, force: true }))
  const family = createProcessFamily(randomUUID())
  const instance = await mcpInstance({
    id,
    command: process.execPath,
    args: [
      server,
      ...['--headless', '--isolated', '--no-sandbox', '--executable-path', executable],
      ...['--output-dir', output, '--snapshot-mode', snapshotMode],
      ...['--user-agent', id, '--timeout-action', String(ACTION_MS), '--timeout-settle', String(SETTLE_MS)],
    ],
    // A browser that is killed leaves its profile in this folder, too.
    env: { ...family.env, TMPDIR: output },
  })
  onTestFinished(async () => {
    const left = await family.survivors(GONE_MS)
    await instance.close()
    expect(left, `what is left of the processes of ${id}`).toEqual([])
  })
  return { instance, family }
}

/** Runs commands in a browser, all of which must succeed. Returns the text of each result. */
export type Perform = (...commands: Command[]) => Promise<string[]>

/** Starts a browser with a server and a client of its own. All of them close when the test has finished. */
export async function serveBrowser(id: string) {
  const { instance, family } = await openBrowser(id)
  const settings = { port: 0, tasks: { wsPort: 0 }, logLevel: 'silent', env: {} } as const
  const server = await startTaskServer({ ...settings, instances: [instance] })
  const client = createTaskClient({ url: server.httpUrl })
  onTestFinished(async () => {
    // Looks for processes now. A process without the mark can be found only while its parent lives.
    family.alive()
    await client.close()
    await server.close({ drainMs: 0 })
  })
  return { server, client }
}

/** Starts a browser of its own for the test. Returns a function that runs commands in it. */
export async function openDriver(id: string): Promise<Perform> {
  const { client } = await serveBrowser(id)
  return async (...commands) => {
    const { taskId } = await client.submit({ task_name: 'Drive', commands })
    const end = await endOf(client.watch(taskId))
    if (end.status !== 'completed') throw new Error(JSON.stringify(end, null, 2))
    return commands.map((_, index) => textOf(end, index))
  }
}

export async function endOf(events: AsyncIterable<TaskMessage>): Promise<TaskCompleteMessage> {
  for await (const event of events) if (event.type === 'task_complete') return event
  throw new Error('The watch ended without an end.')
}

/** A command for a browser. */
export function command(tool_name: string, args: Record<string, unknown> = {}, timeout?: number): Command {
  return { tool_name, args, ...(timeout !== undefined && { timeout }) }
}

/** The text of a command's result in a task that has ended. */
export function textOf({ results }: TaskCompleteMessage, index: number): string {
  const { content = [] } = Object(results[index]?.result) as { content?: { type: string; text?: string }[] }
  return content.map(({ text = '' }) => text).join('\n')
}

/** The reference of an element in a page snapshot, as in `refOf(snapshot, 'textbox "Name"')`. */
export function refOf(snapshot: string, element: string): string {
  const line = snapshot.split('\n').find((one) => one.trimStart().replace(/^- '?/, '').startsWith(element))
  const ref = /\[ref=(\w+)\]/.exec(line ?? '')?.[1]
  if (ref === undefined) throw new Error(`No reference for ${element} in the snapshot:\n${snapshot}`)
  return ref
}

/** The value in the result text of `browser_evaluate`. */
export function evaluated(text: string): unknown {
  const [, value] = /### Result\n([^]*?)(?:\n### |$)/.exec(text) ?? []
  if (value === undefined) throw new Error(`No result in:\n${text}`)
  return JSON.parse(value)
}
