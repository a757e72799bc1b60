/**
 * Browsers behind a server, from end to end: the client submits, the server queues, Playwright's MCP server drives Chromium, and a site
 * that the test serves sees what was done and in which order.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  createTaskClient,
  type TaskClient,
  type TaskCompleteMessage,
  type TaskMessage,
} from '../../src/client/index.js'
import { startTaskServer, type TaskServer } from '../../src/server/index.js'
import {
  GONE_MS,
  command,
  openBrowser,
  refOf,
  textOf,
  type Browser,
  type BrowserOptions,
  type Command,
} from '../support/browser.js'
import { readBlocks } from '../../scripts/doc-blocks.js'
import { openOrderSite, type OrderSite } from '../support/order-site.js'
import { createProcessFamily } from '../support/process-family.js'
import { watchTask, type WatchedTask } from '../support/watched-task.js'

interface Stage {
  readonly server: TaskServer
  readonly client: TaskClient
  readonly site: OrderSite
  readonly browsers: Readonly<Record<string, Browser>>
  /** Every `task_complete` of the server, in order. */
  readonly ends: TaskCompleteMessage[]
  readonly submit: (instanceId: string, ...commands: Command[]) => Promise<WatchedTask>
}

/** A site, a server with browsers, and a client. When the test has finished, all is closed. */
async function openStage(ids: readonly string[], options?: BrowserOptions): Promise<Stage> {
  const site = await openOrderSite()
  onTestFinished(() => site.close())
  const opened = await Promise.all(ids.map((id) => openBrowser(id, options)))
  const server = await startTaskServer({
    port: 0,
    tasks: { wsPort: 0 },
    logLevel: 'silent',
    env: {},
    instances: opened.map(({ instance }) => instance),
  })
  const client = createTaskClient({ url: server.httpUrl })
  onTestFinished(async () => {
    // Those that have no mark are known by their parents, while these live.
    for (const { family } of opened) family.alive()
    await client.close()
    await server.close({ drainMs: 0 })
  })
  const ends: TaskCompleteMessage[] = []
  server.taskManager.on('complete', (message) => ends.push(message))
  return {
    server,
    client,
    site,
    ends,
    browsers: Object.fromEntries(opened.map((browser) => [browser.instance.id, browser])),
    submit: async (instanceId, ...commands) => {
      const { taskId } = await client.submit({ task_name: `On ${instanceId}`, instanceId, commands })
      return watchTask(client, taskId)
    },
  }
}

/** The commands that fill in the form of an order, send it, and wait for the receipt. */
function order(site: OrderSite, id: string, name: string): Command[] {
  return [
    command('browser_navigate', { url: site.formOf(id) }),
    command('browser_fill_form', {
      fields: [
        { name: 'Name', type: 'textbox', target: '[name=name]', value: name },
        { name: 'Size', type: 'combobox', target: '[name=size]', value: 'large' },
        { name: 'Gift', type: 'checkbox', target: '[name=gift]', value: 'true' },
      ],
    }),
    command('browser_click', { element: 'Send order', target: 'role=button[name="Send order"]' }),
    command('browser_wait_for', { text: `Receipt for ${name}` }),
  ]
}

/** What is told of a task whose commands all succeed. */
const storyOf = (commands: number): string[] => [
  ...Array.from({ length: commands }, (_, index) => [`${index} running`, `${index} success`]).flat(),
  'completed',
]

const told = (events: readonly TaskMessage[]): string[] =>
  events.map((event) => (event.type === 'task_progress' ? `${event.commandIndex} ${event.status}` : event.status))

describe('browsers behind a server', { timeout: 180_000 }, () => {
  it('S1, S3, S7: two tasks on one browser never interleave, one on another runs beside them, each is told step by step', async () => {
    const { site, submit, client, ends } = await openStage(['left', 'right'])
    const receipt = site.hold('first')
    const first = await submit('left', ...order(site, 'first', 'Ada'))
    const second = await submit('left', ...order(site, 'second', 'Grace'))
    const other = await submit('right', ...order(site, 'other', 'Edsger'))

    await first.before(receipt.asked)
    expect(await other.ended).toMatchObject({ status: 'completed', instanceId: 'right' })
    expect(site.turnsOf('left')).toEqual(['first'])
    expect((await client.get(second.taskId))?.status).toBe('queued')
    receipt.release()
    expect(await first.ended).toMatchObject({ status: 'completed', instanceId: 'left' })
    expect(await second.ended).toMatchObject({ status: 'completed', instanceId: 'left' })

    expect(site.turnsOf('left')).toEqual(['first', 'second'])
    expect(site.turnsOf('right')).toEqual(['other'])
    for (const task of [first, second, other]) expect(told(task.events)).toEqual(storyOf(4))
    expect(ends.map(({ taskId }) => taskId)).toEqual([other.taskId, first.taskId, second.taskId])
    for (const [id, name] of Object.entries({ first: 'Ada', second: 'Grace', other: 'Edsger' })) {
      const requests = site.requests.filter((request) => request.order === id)
      const steps = requests.map(({ step }) => step)
      expect(steps.filter((step) => step !== 'GET /seen')).toEqual(['GET /order', 'POST /order', 'GET /receipt'])
      expect(steps.filter((step) => step === 'GET /seen')).toHaveLength(3)
      expect(requests.flatMap(({ fields }) => (fields === undefined ? [] : [fields]))).toEqual([
        { name, size: 'large', gift: 'yes' },
      ])
    }
  })

  it.each(['none', 'full'] as const)(
    'a form is filled in by the references of a snapshot, which say so when they are old (snapshots: %s)',
    async (snapshotMode) => {
      const { site, submit } = await openStage(['left'], { snapshotMode })
      const look = await submit(
        'left',
        command('browser_navigate', { url: site.formOf('by-ref') }),
        command('browser_snapshot'),
      )
      const snapshot = textOf(await look.ended, 1)
      const name = refOf(snapshot, 'textbox "Name"')
      const fill = await submit(
        'left',
        command('browser_type', { element: 'Name', target: name, text: 'Barbara' }),
        command('browser_select_option', {
          element: 'Size',
          target: refOf(snapshot, 'combobox "Size"'),
          values: ['large'],
        }),
        command('browser_click', { element: 'Gift', target: refOf(snapshot, 'checkbox "Gift"') }),
        command('browser_click', { element: 'Send order', target: refOf(snapshot, 'button "Send order"') }),
        command('browser_wait_for', { text: 'Receipt for Barbara' }),
      )
      expect(await fill.ended).toMatchObject({ status: 'completed' })
      expect(site.requests.find(({ fields }) => fields)?.fields).toEqual({
        name: 'Barbara',
        size: 'large',
        gift: 'yes',
      })

      const old = await submit('left', command('browser_type', { element: 'Name', target: name, text: 'Barbara' }))
      const { status, error } = await old.ended
      expect([status, error?.message]).toEqual(['failed', expect.stringContaining(`Ref ${name} not found`)])
    },
  )

  it('S2: a click on what is not there fails its task in the words of the tool, skips the rest, and harms no other task', async () => {
    const { site, submit } = await openStage(['left'])
    const [navigate, fill, send, wait] = order(site, 'broken', 'Alan') as [Command, Command, Command, Command]
    const miss = command('browser_click', { element: 'Pay', target: '#pay' })
    const broken = await submit('left', navigate, fill, miss, send, wait)
    const next = await submit('left', ...order(site, 'next', 'Alonzo'))

    const { status, error, summary, results } = await broken.ended
    expect({ status, error, failed: summary.failedCommandIndex }).toEqual({
      status: 'failed',
      error: {
        code: 'EXECUTION_ERROR',
        message: expect.stringContaining('"#pay" does not match any elements') as string,
        commandId: 'cmd_3',
      },
      failed: 2,
    })
    expect(results.map((result) => result.status)).toEqual(['success', 'success', 'error', 'skipped', 'skipped'])
    expect(told(broken.events)).toEqual([
      ...['0 running', '0 success', '1 running', '1 success', '2 running', '2 error', 'failed'],
    ])
    expect(await next.ended).toMatchObject({ status: 'completed' })
    expect(site.requests.flatMap(({ order, fields }) => (fields ? [order] : []))).toEqual(['next'])
  })

  it('S5: a cancel in the middle of a command that waits ends it, and the next task on that browser works', async () => {
    const { site, submit, client, ends } = await openStage(['left'])
    const waiting = await submit(
      'left',
      command('browser_navigate', { url: site.formOf('waiting') }),
      command('browser_wait_for', { text: 'what never comes' }),
    )
    const next = await submit('left', ...order(site, 'next', 'Kurt'))
    await waiting.runs(1)
    expect(await client.cancel(waiting.taskId)).toBe(true)
    const cancelled = await waiting.ended
    expect(cancelled).toMatchObject({
      status: 'cancelled',
      error: { code: 'CANCELLED' },
      results: [{ status: 'success' }, { status: 'skipped' }],
    })
    expect(told(waiting.events)).toEqual(['0 running', '0 success', '1 running', 'cancelled'])
    expect(await next.ended).toMatchObject({ status: 'completed' })
    expect(site.turnsOf('left')).toEqual(['waiting', 'next'])
    expect(ends.map(({ status }) => status)).toEqual(['cancelled', 'completed'])
    // The browser would have waited for half a minute.
    const task = await client.get(next.taskId)
    expect(task!.startedAt! - cancelled.timestamp).toBeLessThan(20_000)
  })

  it('S5: a command that takes too long fails its task as COMMAND_TIMEOUT, and the next task on that browser works', async () => {
    const { site, submit } = await openStage(['left'])
    const slow = await submit(
      'left',
      command('browser_navigate', { url: site.formOf('slow') }),
      command('browser_wait_for', { text: 'what never comes' }, 300),
    )
    const next = await submit('left', ...order(site, 'next', 'Haskell'))
    expect(await slow.ended).toMatchObject({ status: 'failed', error: { code: 'COMMAND_TIMEOUT', commandId: 'cmd_2' } })
    expect(await next.ended).toMatchObject({ status: 'completed' })
  })

  it('S1: a server that closes while a browser waits ends the task as cancelled, and leaves no process of the browser', async () => {
    const { site, submit, server, browsers, ends } = await openStage(['left'])
    const waiting = await submit(
      'left',
      command('browser_navigate', { url: site.formOf('waiting') }),
      command('browser_wait_for', { text: 'what never comes' }),
    )
    await waiting.runs(1)
    const { family } = browsers['left']!
    expect(namesOf(family.alive())).toEqual(expect.arrayContaining(['chromium', 'node']))
    await server.close({ drainMs: 0 })
    expect(await family.survivors(GONE_MS)).toEqual([])
    expect(ends.map(({ status }) => status)).toEqual(['cancelled'])
    expect(await waiting.ended).toMatchObject({ status: 'cancelled' })
  })

  it('S1: an MCP server that is killed fails its task as INSTANCE_DISCONNECTED, and its browser does not outlive it', async () => {
    const { site, submit, browsers, server } = await openStage(['left', 'right'])
    const waiting = await submit(
      'left',
      command('browser_navigate', { url: site.formOf('waiting') }),
      command('browser_wait_for', { text: 'what never comes' }),
    )
    await waiting.runs(1)
    const { family } = browsers['left']!
    const driver = family.alive().find(({ name }) => name === 'node')
    process.kill(driver!.pid, 'SIGKILL')
    expect(await waiting.ended).toMatchObject({ status: 'failed', error: { code: 'INSTANCE_DISCONNECTED' } })
    expect(await family.survivors(GONE_MS)).toEqual([])
    expect(server.instances.list().map(({ id }) => id)).toEqual(['right'])
    const other = await submit('right', ...order(site, 'other', 'Emmy'))
    expect(await other.ended).toMatchObject({ status: 'completed' })
  })
})

it('the example in docs/server.md shows a page, and ends with nothing left', { timeout: 180_000 }, async () => {
  const document = 'docs/server.md'
  const example = readBlocks(document, await readFile(document, 'utf8')).find(({ flags }) => flags.includes('browser'))
  const source = (name: string): string => `'${new URL(`../../src/${name}/index.js`, import.meta.url).href}'`
  const text = example!.text.replace(/'agent-tasks\/(\w+)'/g, (_, name: string) => source(name))
  const family = createProcessFamily(randomUUID())
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', text], {
    env: { ...process.env, ...family.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => {
      printed += part
      family.alive()
    })
  }
  const [code] = (await once(child, 'close')) as [number | null]
  expect({ code, printed }).toEqual({ code: 0, printed: expect.stringContaining('heading \\"agent-tasks') as string })
  expect(printed).toContain('"status": "completed"')
  expect(await family.survivors(GONE_MS)).toEqual([])
})

const namesOf = (members: readonly { readonly name: string }[]): string[] => members.map(({ name }) => name)
