/** Machines in Chromium: the tasks that are in a state, by mouse and by keyboard. */
import { describe, expect, it } from 'vitest'
import { goTo, isLive, startHost, usePageBrowser } from '../support/page-browser.js'

const open = usePageBrowser()

describe('a state of a task', () => {
  it.each([1280, 390])('lists the tasks that are in it, each a link, at %i px', async (width) => {
    const host = await startHost()
    const key = await host.launch('sleeper', 'Guard the door')
    await host.launch('clumsy', 'Build a tower')
    const page = await open(host.url, { viewport: { width, height: 800 } })
    await isLive(page)
    await goTo(page, '/machines')
    const running = page.getByRole('link', { name: 'running 1', exact: true })
    await running.click()
    expect(new URL(page.url()).hash).toBe('#/machines?machine=asyncTask&state=active.running')
    const list = page.getByRole('complementary', { name: '1 in running' })
    await list.getByRole('link', { name: 'Guard the door' }).waitFor()
    expect(await list.getByRole('link').count()).toBe(1)
    expect(await page.evaluate('document.activeElement.textContent')).toBe('1 in running')

    host.manager.cancelTask(key.slice('async:'.length))
    await page.getByRole('heading', { name: '0 in running' }).waitFor()
    await page.getByText('No task is in this state now.').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('complementary').waitFor({ state: 'detached' })
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('state-asyncTask-active.running')
  })

  it('is opened with Enter, and leads to a task', async () => {
    const host = await startHost()
    const submitted = host.submit('desk', 'wait', { seconds: 3600 })
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, '/machines')
    const link = page.getByRole('link', { name: 'running 1', exact: true })
    await link.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: '1 in running' }).waitFor()
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Close the list')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Task' }).waitFor()
    expect(decodeURIComponent(new URL(page.url()).hash)).toBe(`#/task/${submitted}`)
    await page.goBack()
    await page.getByRole('heading', { name: '1 in running' }).waitFor()
  })

  it('lists 100 of its tasks, and 100 more at each step', async () => {
    const host = await startHost()
    for (let at = 0; at < 205; at += 1) {
      host.manager.registerTask({ id: `t${at}`, subagentName: 'host', goalPrompt: `Task ${at}` })
    }
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, '/machines?machine=asyncTask&state=active.running')
    const links = page.getByRole('complementary', { name: '205 in running' }).getByRole('link')
    await expect.poll(() => links.count()).toBe(100)
    await page.getByRole('button', { name: 'Show more of 205' }).click()
    await expect.poll(() => links.count()).toBe(200)
    await page.getByRole('button', { name: 'Show more of 205' }).click()
    await expect.poll(() => links.count()).toBe(205)
    expect(await page.getByRole('button', { name: /^Show more/ }).count()).toBe(0)
  })

  it('is no link where its machine is not one of tasks', async () => {
    const host = await startHost()
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, '/machines?machine=delivery&state=dormant')
    await page.getByRole('group', { name: /^asyncTask:/ }).waitFor()
    await page.getByRole('img', { name: /^delivery:/ }).waitFor()
    expect(await page.getByRole('complementary').count()).toBe(0)
  })
})
