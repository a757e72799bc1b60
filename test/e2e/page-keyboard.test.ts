/** The page without a mouse, in Chromium: every action by keyboard alone. */
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { isLive, startHost, usePageBrowser } from '../support/page-browser.js'

const open = usePageBrowser()

/** The role and the name of what has the focus, nearly as a screen reader says them. */
const focused = (page: Page): Promise<string> =>
  page.evaluate(`(() => {
    const { ariaLabel, labels, textContent, role, localName } = document.activeElement
    return (role ?? localName) + ' ' + (ariaLabel ?? labels?.[0]?.textContent ?? textContent).trim()
  })()`)

/** The row that a list or a tree has chosen, in words. */
const activeRow = (page: Page): Promise<string | null> =>
  page.evaluate(`(() => {
    const id = document.activeElement.getAttribute('aria-activedescendant')
    return id === null ? null : document.getElementById(id)?.getAttribute('aria-label') ?? null
  })()`)

/** Presses Tab until something has the focus. */
async function tabTo(page: Page, wanted: RegExp): Promise<void> {
  const passed: string[] = []
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press('Tab')
    const at = await focused(page)
    if (wanted.test(at)) return
    passed.push(at)
  }
  throw new Error(`No ${String(wanted)} among:\n${passed.join('\n')}`)
}

describe('the page by keyboard', () => {
  it('cancels a task from the timeline', async () => {
    const host = await startHost()
    await host.launch('sleeper', 'Guard the gate')
    const key = await host.launch('sleeper', 'Guard the door')
    const page = await open(host.url)
    await isLive(page)
    await page.getByRole('treeitem', { name: /^Guard the door/ }).waitFor()
    await tabTo(page, /^tree Tasks over time/)
    const active = (): Promise<string | null> => activeRow(page)
    await page.keyboard.press('ArrowDown')
    expect(await active()).toBe('Running, 2 tasks')
    await page.keyboard.press('ArrowDown')
    expect(await active()).toBe('main, owner, 2 tasks')
    await page.keyboard.press('ArrowLeft')
    await expect.poll(() => page.getByRole('treeitem').count()).toBe(2)
    await page.keyboard.press('ArrowLeft')
    expect(await active()).toBe('Running, 2 tasks')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowRight')
    await expect.poll(() => page.getByRole('treeitem').count()).toBe(4)
    await page.keyboard.press('ArrowDown')
    await expect.poll(active).toMatch(/^Guard the door, Running/)
    await page.keyboard.press('End')
    await expect.poll(active).toMatch(/^Guard the gate/)
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('h2 Task')
    await tabTo(page, /^button Cancel …/)
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toMatch(/^textarea Reason/)
    await page.keyboard.type('By keyboard')
    await page.keyboard.press('Escape')
    // Not its role, which goes as soon as it closes: what opens it again waits for its end.
    await page.locator('dialog').waitFor({ state: 'detached' })
    // Closing the dialog leaves the panel as it was.
    await expect.poll(() => focused(page)).toBe('button Cancel …')
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toMatch(/^textarea Reason/)
    await page.keyboard.type('By keyboard')
    await tabTo(page, /^button Cancel the task/)
    await page.keyboard.press('Enter')
    await page.locator('.task-state').getByText('Cancelled').waitFor()
    expect(host.manager.getTask(key.slice(6))).toMatchObject({ cancelReason: 'By keyboard' })
    await page.keyboard.press('Escape')
    await page.locator('.task-panel').waitFor({ state: 'detached' })
    await expect.poll(() => focused(page)).toMatch(/^tree Tasks over time/)
  })

  it('answers a question from the table', async () => {
    const host = await startHost()
    const key = await host.launch('asker', 'Store the archive')
    for (let number = 1; number <= 3; number += 1) await host.launch('writer', `Letter ${number}`)
    const page = await open(host.url)
    await isLive(page)
    await tabTo(page, /^a Tasks$/)
    await page.keyboard.press('Enter')
    await page.getByRole('grid', { name: 'Tasks' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('archive')
    await tabTo(page, /^grid Tasks/)
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await tabTo(page, /^select Region/)
    await page.keyboard.press('ArrowDown')
    await tabTo(page, /^input Copies/)
    await page.keyboard.press('Control+a')
    await page.keyboard.type('7')
    await tabTo(page, /^input Urgent/)
    await page.keyboard.press('Space')
    await tabTo(page, /^button Answer/)
    await page.keyboard.press('Enter')
    await page.locator('.task-state').getByText('Completed').waitFor()
    expect(host.manager.getTask(key.slice(6))?.output).toEqual({
      answer: { action: 'accept', content: { region: 'eu', copies: 7, urgent: true } },
    })
  })

  it('submits a command', async () => {
    const host = await startHost()
    const page = await open(host.url)
    await isLive(page)
    await tabTo(page, /^a Instances/)
    await page.keyboard.press('Enter')
    await page.getByRole('article', { name: 'Instance desk' }).waitFor()
    await tabTo(page, /^button Submit …/)
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toMatch(/^select Tool/)
    await tabTo(page, /^input a/)
    await page.keyboard.type('40')
    await tabTo(page, /^input b/)
    await page.keyboard.type('2')
    await page.keyboard.press('Enter')
    await page.locator('.task-state').getByText('Completed').waitFor()
    await page.getByRole('group', { name: 'Result of add' }).getByText('42', { exact: true }).waitFor()
  })

  it.each([390, 1280])('cancels a schedule and a monitor, and pauses and resumes the host, at %i px', async (width) => {
    const host = await startHost()
    const { tasks, manager } = host
    const schedule = tasks.schedule({ in: 3_600_000, message: 'Look at the build' })
    const kept = tasks.schedule({ every: 7_200_000, launch: { subagent: 'writer', goal: 'Write a letter' } })
    const key = await host.launch('sleeper', 'Guard the door')
    const monitor = tasks.monitor({ taskId: key.slice(6) }, { match: 'thief', description: 'thieves' })
    const page = await open(host.url, { viewport: { width, height: 800 } })
    await isLive(page)
    await tabTo(page, /^a Host$/)
    await page.keyboard.press('Enter')
    const rows = page.getByRole('main').getByRole('listitem')
    await expect.poll(() => rows.count()).toBe(3)

    await tabTo(page, new RegExp(`^button Cancel schedule ${schedule.id}$`))
    await page.keyboard.press('Enter')
    await expect.poll(() => rows.count()).toBe(2)
    expect(tasks.schedules().map(({ id }) => id)).toEqual([kept.id])
    await expect.poll(() => focused(page)).toBe('h1 Host')
    await tabTo(page, new RegExp(`^button Cancel monitor ${monitor.id}$`))
    await page.keyboard.press('Space')
    await expect.poll(() => rows.count()).toBe(1)
    expect(tasks.monitors()).toEqual([])
    await expect.poll(() => focused(page)).toBe('h1 Host')

    await tabTo(page, /^input Hold results$/)
    await page.keyboard.press('Space')
    await tabTo(page, /^button Pause all tasks$/)
    await page.keyboard.press('Enter')
    await page
      .getByRole('status')
      .getByText(/^All tasks are paused since .*, by the page; results are held\.$/)
      .waitFor()
    expect(manager.pauses()).toMatchObject([{ deliveries: 'hold', by: 'the page' }])
    await page.getByRole('link', { name: 'Host (paused)' }).waitFor()
    // The same button has the focus, and ends it.
    expect(await focused(page)).toBe('button Resume all tasks')
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('button Pause all tasks')
    expect(manager.pauses()).toEqual([])
    expect(manager.getTask(key.slice(6))?.status).toBe('running')
  })

  it('skips to the content', async () => {
    const host = await startHost()
    const page = await open(host.url)
    await isLive(page)
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('a To the content')
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')
    expect(new URL(page.url()).hash).toBe('#/timeline')
  })
})
