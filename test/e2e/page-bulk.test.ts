/** Actions on all tasks that the filter shows, in Chromium: by keyboard alone, with the report of what was not done. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { goTo, isLive, startHost, usePageBrowser } from '../support/page-browser.js'
import { focused, tabTo } from '../support/page-keyboard.js'

const open = usePageBrowser()

const report = (page: Page) => page.locator('.bulk-report')

it.each([390, 1280])('cancels what the filter shows, after a question, by keyboard at %i px', async (width) => {
  const host = await startHost()
  for (const gate of ['north gate', 'south gate', 'old tower']) await host.launch('sleeper', `Guard the ${gate}`)
  await host.launch('writer', 'Draw the gate')
  const page = await open(host.url, { viewport: { width, height: 800 } })
  await isLive(page)
  await goTo(page, '/tasks')
  await page.getByRole('button', { name: 'Cancel 3 …' }).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('gate')
  await page.getByRole('button', { name: 'Cancel 2 …' }).waitFor()
  await tabTo(page, /^button Cancel 2 …/)
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Cancel: 2 tasks' }).waitFor()
  await expect.poll(() => focused(page)).toMatch(/^textarea Reason/)
  await page.keyboard.press('Escape')
  await page.locator('dialog').waitFor({ state: 'detached' })
  expect(host.manager.getRunningTasks()).toHaveLength(3)
  await page.keyboard.press('Enter')
  await expect.poll(() => focused(page)).toMatch(/^textarea Reason/)
  await page.keyboard.type('The gates are shut')
  await tabTo(page, /^button Cancel them/)
  await page.keyboard.press('Enter')
  await report(page).getByText('2 tasks cancelled.').waitFor()
  expect(host.manager.getRunningTasks().map(({ goalPrompt }) => goalPrompt)).toEqual(['Guard the old tower'])
  expect(host.manager.getAllTasks()[0]).toMatchObject({ cancelReason: 'The gates are shut' })
  await tabTo(page, /^button Close the report/)
  await page.keyboard.press('Enter')
  await report(page).waitFor({ state: 'detached' })
})

it('runs again what the filter shows, and says why some were not', async () => {
  const host = await startHost({ agent: { maxAsyncTasks: 2 } })
  await host.launch('writer', 'Letter one')
  await host.launch('writer', 'Letter two')
  await expect.poll(() => host.manager.getRunningTasks().length).toBe(0)
  await host.launch('sleeper', 'Letter three')
  host.manager.registerTask({ id: 'own', subagentName: 'host', goalPrompt: 'Letter four' })
  host.manager.failTask('own', 'no ink')
  const page = await open(host.url)
  await isLive(page)
  await goTo(page, '/tasks?text=letter')
  await page.getByRole('button', { name: 'Run 3 again …' }).click()
  await page.getByRole('dialog', { name: 'Run again: 3 tasks' }).waitFor()
  await page.getByRole('button', { name: 'Start them' }).click()
  await report(page)
    .getByText(/tasks? run again, \d not:/)
    .waitFor()
  await report(page).getByText('1 × Its host runs it, or has no subagent "host"').waitFor()
  await report(page).getByText('Which').last().click()
  await report(page).getByRole('link').first().click()
  await page.getByRole('heading', { level: 1, name: 'Task' }).waitFor()
})

it('takes the first 200 at a time, and says so', async () => {
  const host = await startHost()
  for (let at = 0; at < 205; at += 1) {
    host.manager.registerTask({ id: `t${at}`, subagentName: 'host', goalPrompt: `Task ${at}` })
  }
  const page = await open(host.url)
  await isLive(page)
  await goTo(page, '/tasks')
  await page.getByRole('button', { name: 'Cancel 205 …' }).click()
  await page
    .getByText('One request takes 200 tasks: the first ones of the table. 5 further tasks can follow.')
    .waitFor()
  await page.getByRole('button', { name: 'Cancel them' }).click()
  await report(page).getByText('200 tasks cancelled.').waitFor()
  await page.getByRole('button', { name: 'Cancel 5 …' }).waitFor()
  expect(host.manager.getRunningTasks().map(({ id }) => id)).toEqual(['t0', 't1', 't2', 't3', 't4'])
})
