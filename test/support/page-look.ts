/** The page in Chromium as a person sees it. Each part has content. The size and colour scheme of the window can be chosen. */
import { createRequire } from 'node:module'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { AxeResults } from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import type { PNG } from 'pngjs'
import { PART_NAMES, type Part } from '../../src/page/app/addresses.js'
import { startPageHost } from './page-host.js'

export interface Window {
  readonly width: number
  readonly height: number
  readonly scheme: 'light' | 'dark'
}

/** A height at which nothing has to be scrolled, in px. */
const TALL = 6000

const resolve = createRequire(import.meta.url).resolve
const layoutProbe = fileURLToPath(new URL('programs/look-probe.mjs', import.meta.url))

/** Starts a host in which each part of the page has something to show: tasks in many states, a busy agent, and an instance that runs a command. */
export async function startBusyHost() {
  const host = await startPageHost({ agent: { isAgentBusy: () => true, triggerAgentTurn: () => undefined } })
  const launched = {
    written: await host.launch('writer', 'Write the minutes of the meeting: {"pages":3,"tags":["minutes","may"]}'),
    failed: await host.launch('clumsy', 'Build a tower of cards'),
    painted: await host.launch('painter', 'Paint the harbour'),
    asking: await host.launch('asker', 'Move the archive'),
    talking: await host.launch('talker', 'Read the log aloud'),
    sleeping: await host.launch('sleeper', `A goal without a space: ${'abcdefghij'.repeat(30)}`),
  }
  const answered = await host.launch('asker', 'Store the archive')
  const content = { region: 'eu', copies: 2, urgent: true, note: 'In the cellar,\nbehind the stairs' }
  await poll(() => host.manager.getTask(answered.slice('async:'.length))?.questions?.length === 1)
  host.manager.answerTask(answered.slice('async:'.length), 'question-1', { action: 'accept', content })
  await host.launch('planner', 'Paint the house')
  const add = { tool_name: 'add', args: { a: 1, b: 2 } }
  const wait = { tool_name: 'wait', args: { seconds: 3600 } }
  const cancelled = host.taskManager.submitTask({ task_name: 'Add, wait and add', commands: [add, wait, add] })
  const cancelledId = 'taskId' in cancelled ? cancelled.taskId : ''
  await poll(() => host.taskManager.getTask(cancelledId)?.commands[1]?.status === 'running')
  host.taskManager.cancelTask(cancelledId, 'The desk is needed')
  host.taskManager.submitTask({ task_name: 'Add up', commands: [add, add, add] })
  host.taskManager.submitTask({ task_name: 'Wait', commands: [add, wait] })
  host.taskManager.submitTask({ task_name: 'Wait for the desk', commands: [add] })
  host.tasks.pause('another agent', { deliveries: 'hold', by: '/pause' })
  host.tasks.schedule({ in: 3_600_000, message: `Look at the build, and at ${'abcdefghij'.repeat(30)}` })
  host.tasks.schedule({ every: 7_200_000, launch: { subagent: 'writer', goal: 'Write a letter' } })
  host.tasks.monitor(
    { taskId: launched.sleeping.slice('async:'.length) },
    { match: ['error', 'w'.repeat(400)], description: 'errors' },
  )
  return { ...host, launched: { ...launched, answered, cancelled: `command:${cancelledId}` } }
}

export type BusyHost = Awaited<ReturnType<typeof startBusyHost>>

/** Waits until the host has done something by itself. */
async function poll(isSo: () => boolean): Promise<void> {
  while (!isSo()) await pause(5)
}

/** Views of the page other than its parts. */
export const VIEWS = {
  'a task that was answered': async (page, { launched }) => {
    await showPart(page, 'task', `#/task/${encodeURIComponent(launched.answered)}`)
  },
  'a task whose commands were cancelled': async (page, { launched }) => {
    await showPart(page, 'task', `#/task/${encodeURIComponent(launched.cancelled)}`)
    await page.locator('.commands summary').first().click()
  },
  'a task beside the timeline, with its machine': async (page, { launched }) => {
    await page.evaluate(`location.hash = ${JSON.stringify(`#/timeline?task=${encodeURIComponent(launched.talking)}`)}`)
    await page.locator('.task-panel summary', { hasText: 'running' }).click()
  },
  'the tasks in a state of a machine': async (page) => {
    await showPart(page, 'machines', '#/machines')
    await page
      .getByRole('link', { name: /^active / })
      .getByText('active', { exact: true })
      .click()
    await page.getByRole('heading', { name: / in active$/ }).waitFor()
  },
  'a submission of two commands': async (page) => {
    await showPart(page, 'instances', '#/instances')
    await page.getByRole('button', { name: 'Submit …' }).click()
    await page.getByRole('button', { name: 'Add a command' }).click()
    await page.getByRole('button', { name: 'Submit', exact: true }).click()
  },
  'a question before a live task runs again': async (page, { launched }) => {
    await showPart(page, 'task', `#/task/${encodeURIComponent(launched.talking)}`)
    await page.getByRole('button', { name: 'Run again …' }).click()
  },
  'a question before many tasks are cancelled': async (page) => {
    await showPart(page, 'tasks', '#/tasks')
    await page.getByRole('button', { name: /^Cancel \d+ …/ }).click()
  },
  'the report after tasks were run again': async (page) => {
    await showPart(page, 'tasks', '#/tasks?text=tower')
    await page.getByRole('button', { name: /^Run \d+ again …/ }).click()
    await page.getByRole('button', { name: 'Start them' }).click()
    await page.locator('.bulk-report').waitFor()
  },
  'a launch with what is wrong with it': async (page) => {
    await showPart(page, 'launch', '#/launch/shipper')
    await page.locator('main summary').click()
    await page.getByLabel('Deadline in seconds').fill('soon')
    await page.getByRole('button', { name: 'Launch', exact: true }).click()
  },
} as const satisfies Readonly<Record<string, (page: Page, host: BusyHost) => Promise<void>>>

/** The address of a part, as a fragment. For `task`: the address of the task that asks a question. */
export function fragmentOf(part: Part, { launched }: Pick<BusyHost, 'launched'>): string {
  return part === 'task' ? `#/task/${encodeURIComponent(launched.asking)}` : `#/${part}`
}

/** Opens the page in a new window. */
export async function openWindow(browser: Browser, url: string, { width, height, scheme }: Window): Promise<Page> {
  const context: BrowserContext = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    reducedMotion: 'reduce',
  })
  // The script is added from outside the page, so the page keeps its content security policy.
  await context.addInitScript({ path: resolve('axe-core/axe.min.js') })
  await context.addInitScript({ path: layoutProbe })
  const page = await context.newPage()
  await page.goto(url)
  await page.waitForSelector('main[data-stale="false"]')
  return page
}

/** Goes to a part and waits until it is drawn. */
export async function showPart(page: Page, part: Part, fragment: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(fragment)}`)
  await page.locator('main h1', { hasText: new RegExp(`^${PART_NAMES[part]}$`) }).waitFor()
  if (part === 'task') await page.locator('main svg.chart').waitFor()
  await page.waitForTimeout(300)
}

/** Makes the window so high that nothing has to be scrolled, because axe and the layout probe look only at what is visible. */
export async function unscroll(page: Page): Promise<void> {
  await page.setViewportSize({ width: page.viewportSize()?.width ?? 0, height: TALL })
  await page.waitForTimeout(300)
}

/** The problems that axe finds, as texts. */
export async function axeViolations(page: Page): Promise<string[]> {
  const { violations } = await page.evaluate<AxeResults>('axe.run(document)')
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary = '' }) => `${id} (${help}): ${target.join(' ')}: ${failureSummary}`),
  )
}

/** The problems of the layout, as texts (programs/look-probe.mjs). */
export async function layoutProblems(page: Page): Promise<string[]> {
  return page.evaluate<string[]>('lookProblems()')
}

/** The mean brightness of a screenshot, from 0 to 1. */
export function brightnessOf({ data }: PNG): number {
  let sum = 0
  for (let at = 0; at < data.length; at += 4) sum += (data[at] ?? 0) + (data[at + 1] ?? 0) + (data[at + 2] ?? 0)
  return sum / ((data.length / 4) * 3 * 255)
}
