/** Launch on the page in Chromium: by keyboard alone, with what is wrong at its field, and where there is nothing to launch. */
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { goTo, isLive, startHost, usePageBrowser } from '../support/page-browser.js'
import { focused, tabTo } from '../support/page-keyboard.js'

const open = usePageBrowser()

const wordsAt = async (page: Page, label: string): Promise<string> => {
  const ids = (await page.getByLabel(label).getAttribute('aria-describedby')) ?? ''
  return (await Promise.all(ids.split(' ').map((id) => page.locator(`[id="${id}"]`).textContent()))).join(' ')
}

describe('Launch', () => {
  it.each([390, 1280])(
    'starts a task with the fields of its subagent and opens it, by keyboard at %i px',
    async (width) => {
      const host = await startHost()
      const page = await open(host.url, { viewport: { width, height: 800 } })
      await isLive(page)
      await tabTo(page, /^a Launch$/)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Launch' }).waitFor()
      await tabTo(page, /^select Subagent/)
      await page.keyboard.type('shipper')
      await expect.poll(() => new URL(page.url()).hash).toBe('#/launch/shipper')
      await tabTo(page, /^textarea Goal/)
      await page.keyboard.type('Ship the archive')
      await tabTo(page, /^select region/)
      await page.keyboard.type('us')
      await tabTo(page, /^input copies/)
      await page.keyboard.press('Control+a')
      await page.keyboard.type('7')
      await tabTo(page, /^summary More options/)
      await page.keyboard.press('Enter')
      await tabTo(page, /^input Deadline in seconds/)
      await page.keyboard.type('90')
      await tabTo(page, /^button Launch/)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Task' }).waitFor()
      await page.locator('.task-title').getByText('Ship the archive').waitFor()
      await page.locator('.task-state').getByText('Completed').waitFor()
      expect(host.manager.getAllTasks()).toMatchObject([
        { subagentName: 'shipper', owner: 'main', timeoutMs: 90_000, output: { region: 'us', copies: 7 } },
      ])
    },
  )

  it('says at each field what is wrong, by itself and after the server has said it', async () => {
    const host = await startHost()
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, '/launch/shipper')
    await page.getByLabel('copies').fill('many')
    const launch = page.getByRole('button', { name: 'Launch', exact: true })
    await launch.click()
    expect(await wordsAt(page, 'Goal')).toContain('Fill this in.')
    expect(await wordsAt(page, 'region')).toContain('Fill this in.')
    expect(await wordsAt(page, 'copies')).toContain('A number is needed, not many.')
    await expect.poll(() => focused(page)).toMatch(/^textarea Goal/)
    await page.getByLabel('Goal').fill('Ship it')
    await page.getByLabel('region').selectOption('eu')
    await page.getByLabel('copies').fill('3')
    await page.getByLabel('label').fill('small')
    await launch.click()
    await expect.poll(() => wordsAt(page, 'label')).toContain('body.context.label')
    expect(await page.getByLabel('label').getAttribute('aria-invalid')).toBe('true')
    await page.getByLabel('label').fill('Small')
    await page.locator('main summary').click()
    await page.getByLabel('Deadline in seconds').fill('0')
    await page.locator('main summary').click()
    await launch.click()
    // What is wrong is not hidden.
    await expect.poll(() => wordsAt(page, 'Deadline in seconds')).toContain('a number of seconds > 0')
    await page.getByLabel('Deadline in seconds').waitFor()
    expect(host.manager.getAllTasks()).toEqual([])
    await page.getByLabel('Deadline in seconds').fill('')
    await launch.click()
    await page.locator('.task-state').getByText('Completed').waitFor()
  })

  it('says that no slot is free, and that the host has no such subagent', async () => {
    const host = await startHost({ agent: { maxAsyncTasks: 0 } })
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, '/launch/nobody')
    await page.getByRole('alert').getByText('no subagent nobody').waitFor()
    await goTo(page, '/launch/writer')
    await page.getByLabel('Goal').fill('Write')
    await page.getByLabel('Context').fill('[1]')
    await page.getByRole('button', { name: 'Launch', exact: true }).click()
    expect(await wordsAt(page, 'Context')).toContain('An object is needed')
    await page.getByLabel('Context').fill('{"tone":"kind"}')
    await page.getByRole('button', { name: 'Launch', exact: true }).click()
    await page.getByRole('alert').getByText('Max async tasks (0) reached').waitFor()
  })

  it('forgets the context when another subagent is chosen, and keeps the goal', async () => {
    const host = await startHost()
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, '/launch/writer')
    await page.getByLabel('Goal').fill('Write')
    await page.getByLabel('Context').fill('{"tone":"kind"}')
    await page.getByLabel('Subagent').selectOption('clumsy')
    await expect.poll(() => new URL(page.url()).hash).toBe('#/launch/clumsy')
    await expect.poll(() => page.getByLabel('Context').inputValue()).toBe('')
    expect(await page.getByLabel('Goal').inputValue()).toBe('Write')
  })

  it('reads the subagents when the server is there again', async () => {
    const host = await startHost()
    const page = await open(host.url)
    await isLive(page)
    await host.stopPage()
    await page.locator('[data-connection=lost]').waitFor()
    await goTo(page, '/launch')
    await page.getByText('The subagents appear when the server is connected').waitFor()
    await host.startPage()
    await page.getByLabel('Subagent').waitFor()
  })

  it('is not offered where the host has no subagents, and says why', async () => {
    const host = await startHost({ agent: { subagents: {} } })
    const page = await open(host.url)
    await isLive(page)
    expect(await page.getByRole('link', { name: 'Launch', exact: true }).count()).toBe(0)
    await goTo(page, '/launch')
    await page.getByText('This page cannot launch tasks').waitFor()
    await page.getByText('The page offers the subagents that your code passes to createAgentTasks').waitFor()
  })

  it('says on the page of a task server that there is no agent host', async () => {
    const host = await startHost({ page: { tasks: undefined as never } })
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, '/launch')
    await page.getByText('This page has no agent host').waitFor()
  })
})
