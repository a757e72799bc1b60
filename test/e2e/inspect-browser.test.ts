/**
 * The inspector in a real browser: a page with the built package watches its own tasks, by way of Stately's relay and in a window that
 * holds the viewer. Stately's site stands aside for a page of the test with Stately's own receiver in it.
 */
import type { StatelyInspectionEvent } from '@statelyai/inspect'
import { beforeEach, describe, expect, it } from 'vitest'
import { command, evaluated, openDriver, type Command, type Perform } from '../support/browser.js'
import { servePages, type BrowserPages } from '../support/browser-pages.js'
import { startRelay } from '../support/inspector-relay.js'
import { storyOf, treeOf } from '../unit/observability/inspect/inspected.js'

interface PageState {
  readonly stats: {
    readonly isConnected: boolean
    readonly sent: number
    readonly failed: number
    readonly dropped: number
  }
  readonly turns: readonly string[]
  /** What the inspector reported. */
  readonly reported: readonly string[]
  /** Errors and rejections that nobody caught. */
  readonly uncaught: readonly string[]
}

const STATELY = '@statelyai/inspect'
const evaluate = (code: string): Command => command('browser_evaluate', { function: `async () => (${code}) ?? null` })
const openTab = (index: number): Command => command('browser_tabs', { action: 'select', index })
const CONSOLE = command('browser_console_messages', { level: 'warning', all: true })

let perform: Perform

beforeEach(async () => {
  perform = await openDriver('watcher')
})

const call = async (code: string): Promise<unknown> => evaluated((await perform(evaluate(code)))[0] ?? '')

/** What the page has said on its console, warnings and errors alone: uncaught ones among them. */
const complaints = async (): Promise<string[]> => {
  const [text = ''] = await perform(CONSOLE)
  return text.split('\n').filter((line) => /^\[(ERROR|WARNING)\]|^\w*Error:/.test(line))
}

const openPage = async (pages: BrowserPages): Promise<void> => {
  await perform(command('browser_navigate', { url: pages.urlOf('watched-page') }))
}

const launchTwo = `page.launch('a'), page.launch('b')`
const finishTwo = `page.finish('a'), page.finish('b'), page.ended()`
const ENDS = ['a completed: OUTPUT for PROMPT of a', 'b completed: OUTPUT for PROMPT of b']

/** What a task's viewer is told from its launch to its end. */
const TASK_STORY = [
  'made {"active":"running"}',
  'xstate.init',
  'is {"active":"running"}',
  'task.complete',
  'is "completed"',
]

/** Two tasks in one registry that ended, were told, and kept to themselves what they were about. */
function expectWholeStory(messages: readonly StatelyInspectionEvent[]): void {
  const received = { messages: [...messages], until: () => Promise.reject(new Error('all of it is here')) }
  expect(treeOf(received).slice(0, 4)).toEqual(['registry', 'delivery.main', 'registry > task.a', 'registry > task.b'])
  for (const id of ['a', 'b']) expect(storyOf(received, `task.${id}`)).toEqual(TASK_STORY)
  expect(storyOf(received, 'registry').filter((what) => what.startsWith('xstate.done.actor.task.'))).toEqual([
    'xstate.done.actor.task.a',
    'xstate.done.actor.task.b',
  ])
  expect(storyOf(received, 'delivery.main').at(-1)).toBe('is "detached"')
  const known = new Set<string>()
  for (const message of messages) {
    if (message.type === '@xstate.actor') known.add(message.sessionId)
    expect(known, 'an actor is told of before its events').toContain(message.sessionId)
    expect(message._version).toMatch(/^\d+\.\d+\.\d+$/)
  }
  const task = messages.find((message) => message.type === '@xstate.actor' && message.name === 'task.a')
  expect(JSON.parse(String((task as { definition?: unknown }).definition))).toMatchObject({
    id: 'asyncTask',
    initial: 'active',
    states: { active: { initial: 'running' }, completed: { type: 'final' } },
  })
  const text = JSON.stringify(messages)
  expect(text).toContain('[redacted]')
  for (const secret of ['PROMPT', 'OUTPUT', 'PRINTED']) expect(text).not.toContain(secret)
}

describe('by way of the relay', { timeout: 180_000 }, () => {
  it('shows what the tasks of a page do, and needs no package besides those that are installed with ours', async () => {
    const pages = await servePages(['watched-page'])
    expect(pages.filesWith('createBrowserInspector(')).toHaveLength(1) // the place that would load it
    expect(pages.filesWith('"@statelyai.connected"')).toEqual([])
    const relay = await startRelay()
    const received = await relay.received()
    await openPage(pages)
    await call(`page.start('${relay.url}'), ${launchTwo}`)
    expect(await call(finishTwo)).toEqual(ENDS)
    const end = (await call('page.close()')) as PageState
    await received.until(() => received.messages.length >= end.stats.sent)

    expectWholeStory(received.messages)
    expect(end).toMatchObject({ stats: { failed: 0, dropped: 0 }, reported: [], uncaught: [] })
    expect(end.turns.join('\n')).toContain('OUTPUT for PROMPT of a')
    expect(await complaints()).toEqual([])
  })

  it('goes on with the tasks when the relay goes away, and shows what lives when it is back', async () => {
    const pages = await servePages(['watched-page'])
    const relay = await startRelay()
    const received = await relay.received()
    await openPage(pages)
    await call(`page.start('${relay.url}'), ${launchTwo}`)
    await received.until((message) => message.type === '@xstate.actor' && message.name === 'task.b')
    await relay.stop()
    expect(await call(`page.finish('a'), page.launch('c')`)).toBeNull()

    const back = await startRelay(relay.port)
    const again = await back.received()
    await again.until((message) => message.type === '@xstate.actor' && message.name === 'task.c')
    await back.stop()
    expect(await call(`page.finish('b'), page.finish('c'), page.ended()`)).toEqual([
      ...ENDS,
      'c completed: OUTPUT for PROMPT of c',
    ])
    const end = (await call('page.close()')) as PageState
    expect(end.uncaught).toEqual([])
    expect(end.turns.join('\n')).toContain('OUTPUT for PROMPT of c')
    expect(end.reported).toEqual(Array(2).fill(expect.stringContaining('was lost (1006). Retrying')))
    // The browser itself says which connections could not be made; nobody else says anything.
    for (const line of await complaints()) expect(line).toContain(`WebSocket connection to '${relay.url}/' failed`)
  })
})

describe('in a window that holds the viewer', { timeout: 180_000 }, () => {
  it('is opened by a click, loads the package of Stately only then, and is sent all in their format', async () => {
    const pages = await servePages(['watched-page'], [STATELY])
    const viewer = await servePages(['viewer'], [STATELY])
    await openPage(pages)
    const before = [...pages.requests]
    const loaded = pages.filesWith('"@statelyai.connected"')
    expect(loaded).toHaveLength(1)
    expect(before).not.toContain(loaded[0])
    await perform(clickWatch(viewer)[0], clickWatch(viewer)[1])
    await call(launchTwo)
    await perform(openTab(1), evaluate(`viewer.until('@xstate.snapshot')`), openTab(0))
    expect(pages.requests).toEqual([...before, ...loaded])
    expect(await call(finishTwo)).toEqual(ENDS)
    const end = (await call('page.close()')) as PageState
    expect(end).toMatchObject({ stats: { failed: 0, dropped: 0 }, reported: [], uncaught: [] })
    expect(await complaints()).toEqual([])

    const [, , messages = '', posted = ''] = await perform(
      openTab(1),
      evaluate(`viewer.until('@statelyai.disconnected')`),
      evaluate('viewer.received()'),
      evaluate('viewer.posted()'),
    )
    const received = evaluated(messages) as StatelyInspectionEvent[]
    expectWholeStory(received)
    expect(received).toHaveLength(end.stats.sent)
    expect(new Set((evaluated(posted) as { origin: string }[]).map(({ origin }) => origin))).toEqual(
      new Set([new URL(pages.urlOf('')).origin]),
    )
    expect(await complaints()).toEqual([])
  })

  it('goes on with the tasks when it is closed', async () => {
    const pages = await servePages(['watched-page'], [STATELY])
    const viewer = await servePages(['viewer'], [STATELY])
    await openPage(pages)
    await perform(...clickWatch(viewer))
    await call(launchTwo)
    await perform(
      openTab(1),
      evaluate(`viewer.until('@xstate.snapshot')`),
      command('browser_tabs', { action: 'close' }),
    )
    expect(await call(finishTwo)).toEqual(ENDS)
    const end = (await call('page.close()')) as PageState
    expect(end).toMatchObject({ stats: { failed: 0 }, reported: [], uncaught: [] })
    expect(end.turns.join('\n')).toContain('OUTPUT for PROMPT of b')
    expect(await complaints()).toEqual([])
  })
})

describe('what only Node can do', { timeout: 180_000 }, () => {
  it('says so when it is asked for', async () => {
    await openPage(await servePages(['watched-page']))
    expect(await call('page.startProgram()')).toEqual({
      name: 'ProcessError',
      code: 'PROCESS_NOT_STARTED',
      message: 'Command "ls" cannot be started: only Node can start programs, and this is not Node.',
    })
    expect(await complaints()).toEqual([])
  })
})

const clickWatch = (viewer: BrowserPages): [Command, Command] => [
  evaluate(`document.querySelector('button').dataset.origin = '${viewer.urlOf('')}'`),
  command('browser_click', { target: 'button' }),
]
