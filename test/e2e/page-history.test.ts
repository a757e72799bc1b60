/** The part History of the page in Chromium: by keyboard, from a link, and on a host whose memory keeps less than its history. */
import type { Page } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, functionRunner } from '../../src/index.js'
import { createTaskPage } from '../../src/page/index.js'
import { memoryStore } from '../../src/store/index.js'
import { createDesk } from '../support/page-host.js'
import { goTo, isLive, startHost as startFullHost, usePageBrowser } from '../support/page-browser.js'

const open = usePageBrowser()

const runner = functionRunner(({ goal }) =>
  goal.startsWith('fail')
    ? Promise.reject(new Error(`cannot ${goal}`))
    : Promise.resolve({ final_message: `result of ${goal}\n\u202ereversed` }),
)

/** A host that has run so many tasks, and the page on it. */
async function startHost(count: number) {
  const tasks = createAgentTasks({ store: memoryStore(), subagents: { agent: runner } })
  const { manager } = tasks
  for (let at = 0; at < count; at += 1) {
    const goalPrompt = at === 3 ? 'fail at the login' : `goal number ${at}`
    const { id } = manager.launch({ subagentName: 'agent', goalPrompt }, runner)
    await manager.waitFor([id])
    manager.markNotified(id)
  }
  const served = await createTaskPage({ tasks, port: 0 })
  onTestFinished(async () => {
    await served.close()
    await tasks.dispose()
  })
  return { manager, url: served.url }
}

const items = (page: Page) => page.locator('.past-task')

it('finds a task of long ago by keyboard alone, shows its result, and runs it again', async () => {
  const { manager, url } = await startHost(70)
  const page = await open(url)
  await isLive(page)
  await page.getByRole('link', { name: 'History', exact: true }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'History' }).waitFor()
  await expect.poll(() => items(page).count()).toBe(50)
  await page.getByRole('button', { name: 'Show more' }).focus()
  await page.keyboard.press('Enter')
  await expect.poll(() => items(page).count()).toBe(70)
  // Only a task that memory still has can be opened.
  expect(await items(page).first().getByRole('link').count()).toBe(1)
  expect(await items(page).last().getByRole('link').count()).toBe(0)

  await page.getByRole('searchbox', { name: 'Search' }).focus()
  await page.keyboard.type('number 7')
  await expect.poll(() => items(page).count()).toBe(1)
  expect(new URL(page.url()).hash).toBe('#/history?text=number+7')
  await page.keyboard.press('Tab')
  await page.getByText('Result', { exact: true }).focus()
  await page.keyboard.press('Enter')
  await expect.poll(() => page.locator('.past-result').textContent()).toBe('result of goal number 7\n\\u202ereversed')
  await page.getByRole('button', { name: 'Run again: goal number 7' }).focus()
  const before = manager.getAllTasks().length
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Task' }).waitFor()
  await expect.poll(() => manager.getAllTasks().length).toBeGreaterThan(before)
  expect(manager.getAllTasks().at(-1)).toMatchObject({ goalPrompt: 'goal number 7', owner: 'main' })
})

it('opens from a link, and says when nothing matches', async () => {
  const { url, manager } = await startHost(5)
  const page = await open(url)
  await isLive(page)
  await goTo(page, '/history?text=login&status=failed')
  await expect.poll(() => items(page).count()).toBe(1)
  await items(page).getByText('cannot fail at the login').waitFor()
  await page.getByLabel('State').selectOption({ label: 'Completed' })
  await page.getByText('No task matches the search').waitFor()
  await page.getByRole('searchbox').fill('')
  await expect.poll(() => items(page).count()).toBe(4)
  const { id } = manager.launch({ subagentName: 'other', goalPrompt: 'another one', owner: 'ada' }, runner)
  await manager.waitFor([id])
  await page.getByLabel('Subagent').selectOption({ label: 'other' })
  await expect.poll(() => items(page).count()).toBe(1)
  await page.getByLabel('Owner').selectOption({ label: 'main' })
  await page.getByText('No task matches the search').waitFor()
  await page.getByLabel('Owner').selectOption({ label: 'ada' })
  await items(page).getByRole('link', { name: 'another one' }).click()
  await page.getByRole('heading', { level: 1, name: 'Task' }).waitFor()
})

it('has the tasks of instances, and no filter of the other kind of task', async () => {
  const host = await startFullHost()
  host.connect(createDesk('shelf'))
  await host.launch('writer', 'Apples')
  host.submit('desk', 'add', { a: 1, b: 2 })
  host.submit('shelf', 'wait', { seconds: 0 })
  const page = await open(host.url)
  await isLive(page)
  await goTo(page, '/history?owner=main&subagent=writer')
  await items(page).getByRole('heading', { name: 'Apples' }).waitFor()
  await page.getByLabel(/^Of/).selectOption({ label: 'Tasks of instances' })
  await items(page).getByRole('heading', { name: 'add' }).waitFor()
  expect(new URL(page.url()).hash).toBe('#/history?kind=command')
  await page.getByLabel(/^Instance/).selectOption({ label: 'desk' })
  await expect.poll(() => new URL(page.url()).hash).toBe('#/history?kind=command&instance=desk')
  await expect.poll(() => items(page).count()).toBe(1)
  await page.getByLabel(/^Of/).selectOption({ label: 'Tasks of agents' })
  await items(page).getByRole('heading', { name: 'Apples' }).waitFor()
  expect(await page.getByRole('alert').count()).toBe(0)
})

it('is read when the server is there again', async () => {
  const host = await startFullHost()
  await host.launch('writer', 'Apples')
  const page = await open(host.url)
  await isLive(page)
  await host.stopPage()
  await page.locator('[data-connection=lost]').waitFor()
  await goTo(page, '/history')
  await page.getByText('The history appears when the server is connected').waitFor()
  await host.startPage()
  await items(page).getByText('Apples').first().waitFor()
})

it('gives up a request when its part is left', async () => {
  const host = await startFullHost()
  const page = await open(host.url)
  await isLive(page)
  await page.route('**/api/history?text=slow', () => undefined)
  const [asked, failed] = [page.waitForEvent('request'), page.waitForEvent('requestfailed', { timeout: 10_000 })]
  await goTo(page, '/history?text=slow')
  await asked
  await goTo(page, '/timeline')
  expect((await failed).url()).toContain('/api/history?text=slow')
})
