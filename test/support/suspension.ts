/** Ends the service worker of the extension again and again while commands run. Compares the ends of the tasks with what happened. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import type { TaskCompleteMessage } from '../../src/client/index.js'
import { startTaskServer } from '../../src/server/index.js'
import { startExtensionBrowser, waitFor, type ExtensionBrowser } from './extension-browser.js'

export interface SuspensionOptions {
  readonly times: number
  /**
   * How many more times to end the service worker while there is no tab. Then no event of a tab starts it again, but only its alarm, after up to a
   * minute.
   */
  readonly byAlarm?: number
  readonly log?: (line: string) => void
}

export interface SuspensionResult {
  readonly tasks: number
  readonly completed: number
  readonly failed: number
  /** How many tasks were refused because the extension was not connected. */
  readonly refused: number
  /** Tasks that were accepted and have no end, or more than one. */
  readonly lost: readonly string[]
  /** Pages that were visited more than once. */
  readonly doubled: readonly string[]
  /** Commands that succeeded without a visit to their page, and commands that failed for another reason than the end of the service worker. */
  readonly wrong: readonly string[]
  /** The longest time from the end of a service worker to the next connection, in ms. */
  readonly longestMs: number
  readonly longestByAlarmMs: number
  /** How many service workers ran. */
  readonly lives: number
}

const COMMANDS = 3
/** How many tasks are queued or running at the same time. */
const DEPTH = 3
const INSTANCE = 'suspended'
/** Returns a value that differs between service workers. */
const LIFE = 'return performance.timeOrigin'
/** How long a service worker runs at most until it is ended, in ms. */
const LIFE_MS = 600

export async function suspendAgainAndAgain(options: SuspensionOptions): Promise<SuspensionResult> {
  const { times, byAlarm = 0, log = () => undefined } = options
  const pages = await servePages()
  const server = await startTaskServer({ port: 0, tasks: { wsPort: 0 }, logLevel: 'silent', env: {} })
  const browser = await startExtensionBrowser()
  const { taskManager, instances } = server
  const ends = new Map<string, TaskCompleteMessage[]>()
  const commands = new Map<string, readonly string[]>()
  let refused = 0
  let isLoading = true
  taskManager.on('complete', (end) => ends.set(end.taskId, [...(ends.get(end.taskId) ?? []), end]))

  /** Keeps some tasks queued. Each command of a task visits a page. */
  async function load(): Promise<void> {
    let count = 0
    while (isLoading) {
      await pause(5)
      if ([...commands.keys()].filter((taskId) => !ends.has(taskId)).length >= DEPTH) continue
      const visits = Array.from({ length: COMMANDS }, (_, index) => `${count}-${index}`)
      count += 1
      const answer = taskManager.submitTask({
        type: 'task_submit',
        task_name: 'Visit',
        task_intention: '',
        instanceId: INSTANCE,
        commands: visits.map((id) => ({ tool_name: 'browser_navigate', intention: '', args: { url: pages.url(id) } })),
      })
      if ('taskId' in answer) commands.set(answer.taskId, visits)
      else refused += 1
    }
  }

  const serial = (): number | undefined => {
    const entry = instances.get(INSTANCE)
    return entry?.isConnected === true ? entry.serial : undefined
  }

  /**
   * Ends the service worker.
   * @returns how long the extension took to connect again, in ms
   */
  async function suspendOnce(by: 'events' | 'alarm'): Promise<number> {
    const before = serial()
    await browser.suspend()
    const from = performance.now()
    await waitFor(async () => (serial() === before ? undefined : true), 'the end of the connection')
    if (by === 'events') await wake(browser)
    const until = from + 90_000
    while (serial() === undefined && performance.now() < until) await pause(2)
    if (serial() === undefined) throw new Error('It has not connected again.')
    return performance.now() - from
  }

  try {
    await browser.connect(server.httpUrl, { name: INSTANCE })
    await browser.phase('connected')
    const opened = taskManager.submitTask({
      type: 'task_submit',
      task_name: 'Open',
      task_intention: '',
      instanceId: INSTANCE,
      commands: [{ tool_name: 'browser_tabs', intention: '', args: { action: 'new' } }],
    })
    if (!('taskId' in opened)) throw new Error(opened.error)
    await waitFor(async () => ends.get(opened.taskId), 'a tab')
    const loading = load()
    const lives = new Set([await browser.inWorker(LIFE)])
    const longest = { events: 0, alarm: 0 }
    const suspend = async (round: number, by: keyof typeof longest): Promise<void> => {
      const ms = await suspendOnce(by)
      longest[by] = Math.max(longest[by], ms)
      lives.add(await browser.inWorker(LIFE))
      log(`${round}: connected again after ${Math.round(ms)} ms; ${ends.size} tasks have ended`)
    }
    for (let round = 1; round <= times; round += 1) {
      await pause(Math.random() * LIFE_MS)
      await suspend(round, 'events')
    }
    isLoading = false
    await loading
    // This wait fails if a task never ends. The failure is ignored here, because `judge` reports such a task.
    const allEnded = waitFor(
      async () => ([...commands.keys()].every((id) => ends.has(id)) ? true : undefined),
      'all ends',
    )
    await allEnded.catch(() => undefined)
    await browser.takeAllBack()
    for (let round = 1; round <= byAlarm; round += 1) await suspend(times + round, 'alarm')
    const figures = { refused, longestMs: longest.events, longestByAlarmMs: longest.alarm, lives: lives.size }
    return { ...judge(commands, ends, pages.visits), ...figures }
  } finally {
    isLoading = false
    await browser.close()
    await server.close({ drainMs: 0 })
    await pages.close()
  }
}

/** Makes the extension connect at once, as the options page does when the person opens it. */
async function wake(browser: ExtensionBrowser): Promise<void> {
  await browser.inOptions(`await chrome.storage.session.set({ wake: crypto.randomUUID() })`)
}

function judge(
  commands: ReadonlyMap<string, readonly string[]>,
  ends: ReadonlyMap<string, readonly TaskCompleteMessage[]>,
  visits: ReadonlyMap<string, number>,
) {
  const lost: string[] = []
  const wrong: string[] = []
  let completed = 0
  for (const [taskId, ids] of commands) {
    const [end, ...more] = ends.get(taskId) ?? []
    if (end === undefined || more.length > 0) lost.push(`${taskId}: ${ends.get(taskId)?.length ?? 0} ends`)
    if (end?.status === 'completed') completed += 1
    for (const [index, id] of ids.entries()) {
      const { status, error } = end?.results[index] ?? {}
      const seen = visits.get(id) ?? 0
      if (status === 'success' && seen !== 1) wrong.push(`${id}: success with ${seen} visits`)
      if (status === 'error' && error?.code !== 'INTERRUPTED') wrong.push(`${id}: ${JSON.stringify(error)}`)
    }
  }
  const doubled = [...visits].filter(([, count]) => count > 1).map(([id, count]) => `${id}: ${count} visits`)
  return { tasks: commands.size, completed, failed: commands.size - completed, lost, doubled, wrong }
}

async function servePages() {
  const visits = new Map<string, number>()
  const server = createServer((request, response) => {
    const id = new URL(request.url ?? '/', 'http://localhost').searchParams.get('id')
    if (id !== null) visits.set(id, (visits.get(id) ?? 0) + 1)
    response.writeHead(200, { 'content-type': 'text/html', 'cache-control': 'no-store' })
    response.end('<!doctype html><title>Visited</title><link rel="icon" href="data:,">')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    visits,
    url: (id: string) => `http://127.0.0.1:${port}/visit?id=${id}`,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
