/** The page and its server, a process of its own, in Chromium: killed, hung and back; tokens; two pages at once. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTaskPage } from '../../src/page/create-task-page.js'
import { goTo, isLive, startHost, usePageBrowser } from '../support/page-browser.js'

const open = usePageBrowser()
const program = fileURLToPath(new URL('../support/programs/page-host.ts', import.meta.url))
const TOKEN = 'a-token-of-the-tests'

interface HostProcess {
  readonly url: string
  readonly process: ChildProcess
}

/** Its tasks are in its memory: they die with it. */
async function startProcess(port: number, goal: string): Promise<HostProcess> {
  const host = spawn(process.execPath, ['--import', 'tsx', program, String(port), TOKEN, goal], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(async () => {
    if (host.exitCode !== null || host.signalCode !== null) return
    host.kill('SIGKILL')
    await once(host, 'exit')
  })
  for await (const line of createInterface({ input: host.stdout })) return { url: line, process: host }
  throw new Error('The host has ended without an address.')
}

describe('a server that is a process', () => {
  it('is lost when it is killed, and the next one shows its own tasks alone', async () => {
    const first = await startProcess(0, 'Of the first life')
    const page = await open(first.url)
    await isLive(page)
    await goTo(page, '/tasks')
    await page.getByRole('row', { name: /Of the first life/ }).waitFor()
    first.process.kill('SIGKILL')
    await page.locator('[data-connection=lost]').waitFor({ timeout: 2000 })
    await page.getByRole('row', { name: /Of the first life/ }).waitFor()
    await startProcess(Number(new URL(first.url).port), 'Of the second life')
    await isLive(page)
    await page.getByRole('row', { name: /Of the second life/ }).waitFor()
    await page.getByRole('status').getByText('The server was started again.').waitFor()
    await page.getByRole('button', { name: 'Understood' }).click()
    await page.getByText('The server was started again.').waitFor({ state: 'detached' })
    expect(await page.getByRole('row', { name: /Of the first life/ }).count()).toBe(0)
  })

  it('is lost within two seconds when it hangs, and live when it goes on', async () => {
    const host = await startProcess(0, 'Wait for it')
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, '/tasks')
    const length = page.getByRole('row', { name: /Wait for it/ }).locator('.duration')
    await length.waitFor()
    host.process.kill('SIGSTOP')
    const stoppedAt = performance.now()
    await page.locator('[data-connection=lost]').waitFor({ timeout: 2500 })
    expect(performance.now() - stoppedAt).toBeLessThan(2300)
    const frozen = await length.textContent()
    await page.waitForTimeout(1500)
    expect(await length.textContent()).toBe(frozen)
    host.process.kill('SIGCONT')
    await isLive(page)
    await expect.poll(() => length.textContent()).not.toBe(frozen)
  })
})

describe('the token', () => {
  it('leaves the address, and is kept in the storage of this tab alone', async () => {
    const host = await startHost()
    await host.launch('sleeper', 'Guard the door')
    const page = await open(host.url)
    await isLive(page)
    expect(page.url()).not.toContain('token')
    expect(await page.context().cookies()).toEqual([])
    expect(await page.evaluate('localStorage.length')).toBe(0)
    await page.reload()
    await isLive(page)
    const other = await page.context().newPage()
    // A tab that is being closed may still give its token to another one.
    await page.goto('about:blank')
    await page.close()
    await other.goto(host.url.replace(/#.*/, '#/tasks'))
    await other.getByText('No access.').waitFor()
    await other.getByText('This address has no token in it.').waitFor()
    await expect.poll(() => other.title()).toMatch(/^No access · .*127\.0\.0\.1:\d+/)
  })

  it('is given to a new tab by an open one, while the server accepts it', async () => {
    const host = await startHost()
    const key = await host.launch('writer', 'Guard the door')
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, '/history')
    const [other] = await Promise.all([
      page.context().waitForEvent('page'),
      page.getByRole('link', { name: 'Guard the door' }).click({ modifiers: ['ControlOrMeta'] }),
    ])
    await isLive(other)
    await other.getByRole('heading', { name: 'Task', exact: true }).waitFor()
    expect(decodeURIComponent(new URL(other.url()).hash)).toBe(`#/task/${key}`)
    expect(await other.evaluate('localStorage.length')).toBe(0)

    // The next server on this port refuses the token, so the open tabs keep it to themselves.
    await host.stopPage()
    const next = await createTaskPage({ tasks: host.tasks, port: Number(new URL(host.url).port) })
    onTestFinished(() => next.close())
    for (const tab of [page, other]) await tab.locator('[data-connection=refused]').waitFor()
    const stranger = await page.context().newPage()
    await stranger.goto(host.url.replace(/#.*/, ''))
    await stranger.getByText('This address has no token in it.').waitFor()
  })

  it('is taken from a link to a part, and from a link that is pasted into an open tab', async () => {
    const host = await startHost()
    const key = await host.launch('sleeper', 'Guard the door')
    const token = new URL(host.url).hash.slice('#token='.length)
    const id = key.slice('async:'.length)
    for (const name of [key, id]) {
      const page = await open(host.url.replace(/#.*/, `#/task/${name}?token=${token}`))
      await isLive(page)
      await page.locator('.task-title', { hasText: 'Guard the door' }).waitFor()
      await page.locator('.facts').getByText(id).waitFor()
      expect(decodeURIComponent(new URL(page.url()).hash)).toBe(`#/task/${name}`)
      expect(await page.title()).toMatch(/^Guard the door · Task · /)
    }

    const other = await open(host.url.replace(/#.*/, ''))
    await other.getByText('No access.').waitFor()
    await other.evaluate('window.isSameDocument = true')
    await other.goto(host.url)
    await isLive(other)
    await other.getByRole('treeitem', { name: /^Guard the door/ }).waitFor()
    expect(await other.evaluate('[location.hash, isSameDocument]')).toEqual(['#/timeline', true])
  })

  it('is asked for when it is missing or wrong; the link or the token can be pasted', async () => {
    const host = await startHost()
    await host.launch('sleeper', 'Guard the door')
    for (const address of [
      host.url.replace(/#.*/, ''),
      host.url.replace(/token=.*/, 'token=wrong-wrong-wrong-wrong'),
    ]) {
      const page = await open(address)
      await page.locator('[data-connection=refused]').waitFor()
      await page.getByRole('alert').getByText('No access.').waitFor()
      expect(await page.locator('main').textContent()).not.toContain('Guard')
      await page.getByLabel('Link or token').fill('still-wrong-still-wrong')
      await page.getByRole('button', { name: 'Use it' }).click()
      await page.locator('[data-connection=refused]').waitFor()
      await page.getByLabel('Link or token').fill(` ${host.url} `)
      await page.getByRole('button', { name: 'Use it' }).click()
      await isLive(page)
      await page.getByRole('treeitem', { name: /^Guard the door/ }).waitFor()
    }
  })
})

describe('two pages at once', () => {
  it('show the same, also what one of them does', async () => {
    const host = await startHost()
    const key = await host.launch('sleeper', 'Guard the door')
    const [one, two] = [await open(host.url), await open(host.url)]
    await isLive(one)
    await isLive(two)
    await goTo(two, '/tasks')
    await goTo(one, `/task/${key}`)
    await two.getByRole('row', { name: /Running Guard the door/ }).waitFor()
    await one.getByRole('button', { name: 'Cancel …' }).click()
    await one.getByRole('button', { name: 'Cancel the task' }).click()
    await two.getByRole('row', { name: /Cancelled Guard the door/ }).waitFor()
    await goTo(two, `/task/${key}`)
    await two.getByRole('button', { name: 'Run again' }).click()
    await goTo(one, '/tasks')
    await expect.poll(() => one.getByRole('row', { name: /Guard the door/ }).count()).toBe(2)
  })
})
