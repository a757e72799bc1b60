/** What the page says of tasks, in Chromium: families, answers, commands, long results, and where the focus is. */
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { PART_NAMES } from '../../src/page/app/addresses.js'
import { createTaskPage } from '../../src/page/index.js'
import { goTo, isLive, startHost, usePageBrowser } from '../support/page-browser.js'

const open = usePageBrowser()
const idOf = (key: string): string => key.slice('async:'.length)
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const section = (page: Page, name: string) => page.getByRole('region', { name, exact: true })

async function openTask(host: Awaited<ReturnType<typeof startHost>>, key: string, options = {}): Promise<Page> {
  const page = await open(host.url, options)
  await isLive(page)
  await goTo(page, `/task/${key}`)
  await page.getByRole('group', { name: 'Actions' }).waitFor()
  return page
}

describe('a family', () => {
  it('stays under the row of the task that launched it, whoever owns it', async () => {
    const host = await startHost()
    const key = await host.launch('planner', 'Paint the house')
    await host.launch('writer', 'Something later')
    const page = await open(host.url)
    await isLive(page)
    const rows = async (): Promise<string[]> =>
      Promise.all(
        (await page.getByRole('treeitem').all()).map(
          async (row) =>
            `${await row.getAttribute('aria-level')} ${(await row.getAttribute('aria-label'))?.split(',')[0]}`,
        ),
      )
    const family = [
      ...['1 Running', '2 main', '3 Paint the house', '4 Measure the walls', '4 List the paints'],
      ...['1 Ended', '2 main', '3 Something later'],
    ]
    await expect.poll(rows).toEqual(family)
    host.manager.sendToTask(idOf(key), 'white')
    await page.getByRole('treeitem', { name: /^Paint the house, Completed/ }).waitFor()
    // What is not ended goes on, for the owner of the one that has.
    await expect.poll(() => host.manager.getAllTasks().map(({ owner }) => owner)).toEqual(Array(4).fill('main'))
    expect(await rows()).toEqual(family)
    await page.getByRole('treeitem', { name: /^List the paints/ }).click()
    await page.getByRole('tree').focus()
    await page.keyboard.press('ArrowLeft')
    await expect
      .poll(() => page.getByRole('treeitem', { selected: true }).getAttribute('aria-label'))
      .toMatch(/^Paint the house/)
  })
})

describe('an answer', () => {
  it('stays to be read: the question, what it was and who gave it', async () => {
    const host = await startHost()
    const keys = [await host.launch('asker', 'Store the archive'), await host.launch('asker', 'Move the archive')]
    const page = await openTask(host, keys[0]!)
    await page.getByLabel('Region').selectOption('America')
    await page.getByLabel('Note').fill('Two lines\nof text')
    await button(page, 'Answer').click()
    const answer = section(page, 'Answer')
    await answer.getByText('Answered by a person, on the page').waitFor()
    await answer.getByText('Where shall it go?').waitFor()
    expect(await answer.getByRole('group', { name: 'Answer' }).innerText()).toMatch(
      /region us\s*copies 2\s*note\s*Two lines\nof text/,
    )
    // The form had the focus, and is gone.
    await expect.poll(() => page.locator(':focus').textContent()).toBe('Task')
    host.manager.answerTask(idOf(keys[1]!), 'question-1', { action: 'decline' })
    await goTo(page, `/task/${keys[1]}`)
    await section(page, 'Answer').getByText('Declined by the host or its agent').waitFor()
    await page.getByRole('cell', { name: /^declined/ }).waitFor()
  })
})

describe('a command task', () => {
  it('says which command was cancelled, and which were not run', async () => {
    const host = await startHost()
    const wait = { tool_name: 'wait', args: { seconds: 3600 } }
    const add = { tool_name: 'add', args: { a: 1, b: 2 } }
    const submitted = host.taskManager.submitTask({ task_name: 'Wait', commands: [add, wait, add] })
    const page = await openTask(host, `command:${'taskId' in submitted ? submitted.taskId : ''}`)
    await page.locator('.task-state').getByText('2 of 3: wait').waitFor()
    await button(page, 'Cancel …').click()
    await button(page, 'Cancel the task').click()
    const states = (): Promise<string[]> =>
      section(page, 'Commands').locator('.commands > li > details > summary').allInnerTexts()
    await expect
      .poll(async () => (await states()).map((text) => text.replace(/\s*\d.*$/s, '')))
      .toEqual(['add completed', 'wait cancelled', 'add not run'])
  })
})

describe('a long result', () => {
  it('has its lines, stays unfolded while its task changes, and can be copied and downloaded as a whole', async () => {
    const host = await startHost()
    const value = { text: 'one\ntwo', list: Array.from({ length: 30_000 }, (_, index) => `entry ${index}`), end: 'x' }
    const key = await host.launch('writer', `Give back: ${JSON.stringify(value)}`)
    const page = await openTask(host, key, { permissions: ['clipboard-read', 'clipboard-write'] })
    const result = page.getByRole('group', { name: 'Result', exact: true })
    // It is cut, and yet a tree with real lines.
    expect(await result.getByText(/^one\s+two$/).innerText()).toBe('one\ntwo')
    await result.getByText(/^\[\d+\]$/).click()
    await button(page, 'Show more').first().click()
    await result.getByText('[30000]').waitFor()
    expect(await result.getByText('entry 0', { exact: true }).count()).toBe(1)
    host.manager.markNotified(idOf(key))
    await page.getByRole('cell', { name: 'delivered' }).waitFor()
    expect(await result.getByText('[30000]').count()).toBe(1)
    expect(await result.getByText('entry 0', { exact: true }).count()).toBe(1)
    const whole = { final_message: expect.any(String) as string, ...value }
    await button(page, 'Copy: Result').click()
    await page.getByText('Copied').waitFor()
    expect(JSON.parse(await page.evaluate('navigator.clipboard.readText()'))).toEqual(whole)
    const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Download: Result').click()])
    expect(download.suggestedFilename()).toBe(`${idOf(key)}-result.json`)
    expect(JSON.parse(await readFile(await download.path(), 'utf8'))).toEqual(whole)
  })
})

describe('the actions on a task', () => {
  it('go at once when it has ended, and the focus goes to the heading', async () => {
    const host = await startHost()
    const key = await host.launch('sleeper', 'Guard the door')
    const page = await openTask(host, key)
    await button(page, 'Cancel …').focus()
    // What is known of the task besides its row comes later.
    await page.route('**/api/tasks/**', () => undefined)
    host.manager.cancelTask(idOf(key))
    await button(page, 'Cancel …').waitFor({ state: 'detached' })
    await expect.poll(() => page.locator(':focus').textContent()).toBe('Task')
    await page.unroute('**/api/tasks/**')
  })

  it('run a live task again only after a question that says what that does', async () => {
    const host = await startHost()
    const page = await openTask(host, await host.launch('sleeper', 'Guard the door'))
    expect(await button(page, 'Run again …').getAttribute('title')).toMatch(/new task with the same goal/)
    await button(page, 'Run again …').click()
    const dialog = page.locator('dialog')
    await dialog.getByText('The first task has not ended, and continues.').waitFor()
    await button(page, 'Leave it').click()
    await dialog.waitFor({ state: 'detached' })
    expect(host.manager.getAllTasks()).toHaveLength(1)
    await button(page, 'Run again …').click()
    await button(page, 'Start another one').click()
    await expect.poll(() => host.manager.getAllTasks().length).toBe(2)
    await dialog.waitFor({ state: 'detached' })
  })
})

describe('the machine of a task', () => {
  it('fits beside a list; in a narrow window it says that it is wider, and can be made to fit', async () => {
    const host = await startHost()
    const key = await host.launch('sleeper', 'Guard the door')
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, `/tasks?task=${encodeURIComponent(key)}`)
    await section(page, 'Machine').locator('summary').first().click()
    const box = page.getByRole('group', { name: 'Drawing of asyncTask' })
    const isWide = (): Promise<boolean> =>
      box.evaluate(
        ({ scrollWidth, clientWidth }: { scrollWidth: number; clientWidth: number }) => scrollWidth > clientWidth,
      )
    await box.waitFor()
    expect(await isWide()).toBe(false)
    await page.setViewportSize({ width: 300, height: 800 })
    await page.getByText('The drawing is wider than this box').waitFor()
    expect(await isWide()).toBe(true)
    await button(page, 'Fit').click()
    await expect.poll(isWide).toBe(false)
    await button(page, 'Full size').click()
    await page.getByText('The drawing is wider than this box').waitFor()
  })
})

describe('the table', () => {
  it('cuts a long error, and not the name of its task, also beside an open task', async () => {
    const clumsy = async () => Promise.reject(new Error('It has failed for a long reason. '.repeat(60)))
    const host = await startHost({ agent: { subagents: { clumsy } } })
    const key = await host.launch('clumsy', 'Tests of the page')
    const page = await open(host.url)
    await isLive(page)
    for (const address of ['/tasks', `/tasks?task=${key}`]) {
      await goTo(page, address)
      const cell = page.locator('.cell.title', { hasText: 'Tests of the page' })
      await cell.locator('.error-text').waitFor()
      await page.locator('.task-panel').waitFor({ state: address === '/tasks' ? 'detached' : 'visible' })
      const isCut = (part: string): Promise<boolean> =>
        cell
          .locator(part)
          .evaluate(
            ({ scrollWidth, clientWidth }: { scrollWidth: number; clientWidth: number }) => scrollWidth > clientWidth,
          )
      expect([await isCut('.text'), await isCut('.error-text')]).toEqual([false, true])
    }
  })

  it('and the navigation have nothing of agents on a server of command tasks', async () => {
    const host = await startHost()
    host.submit('desk', 'add', { a: 1, b: 2 })
    const served = await createTaskPage({ taskManager: host.taskManager, port: 0 })
    onTestFinished(() => served.close())
    const shown = async (url: string) => {
      const page = await open(url)
      await isLive(page)
      await goTo(page, '/tasks')
      await page.getByRole('row', { name: /add/ }).waitFor()
      return {
        parts: await page.getByRole('navigation').getByRole('link').allTextContents(),
        columns: await page.getByRole('columnheader').allTextContents(),
        cells: await page.getByRole('gridcell').count(),
      }
    }
    expect(await shown(served.url)).toEqual({
      parts: ['Timeline', 'Tasks', 'Task', 'History', 'Machines', 'Instances', 'Health'],
      columns: ['State', 'Task', 'Instance', 'Created', 'Total time'],
      cells: 5,
    })
    expect(await shown(host.url)).toEqual({
      parts: Object.values(PART_NAMES),
      columns: ['State', 'Task', 'Owner or instance', 'Subagent', 'Created', 'Total time'],
      cells: 6,
    })
  })
})
