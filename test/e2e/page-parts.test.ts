/** Each part of the page in Chromium: empty, live, and when its server is gone and comes back. */
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { PART_NAMES, PARTS, type Part } from '../../src/page/app/addresses.js'
import { goTo, isLive, startHost, usePageBrowser } from '../support/page-browser.js'

const open = usePageBrowser()

/** What each part says while there is nothing. */
const EMPTY: Readonly<Record<Part, string>> = {
  timeline: 'No tasks yet',
  tasks: 'No tasks yet',
  task: 'No tasks yet',
  launch: 'Subagent',
  history: 'Nothing has ended yet',
  delivery: 'No results yet',
  host: 'Nothing is scheduled or monitored',
  machines: 'asyncTask',
  instances: 'No instance is connected',
  health: 'Health',
}
/** The commands to copy. */
const COMMANDS: Readonly<Partial<Record<Part, RegExp>>> = {
  timeline: /subagent_name: '…'/,
  tasks: /subagent_name: '…'/,
  task: /subagent_name: '…'/,
  delivery: /setupAsyncTaskAutoTrigger/,
  host: /tasks\.schedule/,
  instances: /agent-tasks serve --demo/,
}

const main = (page: Page) => page.locator('main')

describe('an empty page', () => {
  it('says in each part what to do next', async () => {
    const host = await startHost({ hasInstances: false })
    const page = await open(host.url)
    await isLive(page)
    for (const part of PARTS) {
      await page.getByRole('navigation').getByRole('link', { name: PART_NAMES[part], exact: true }).click()
      await page.getByRole('heading', { level: 1, name: PART_NAMES[part], exact: true }).waitFor()
      expect(new URL(page.url()).hash).toBe(`#/${part}`)
      await expect.poll(() => page.title()).toContain(PART_NAMES[part])
      await main(page).getByText(EMPTY[part], { exact: true }).first().waitFor()
      const command = COMMANDS[part]
      if (!command) continue
      expect(await main(page).locator('.command code').textContent()).toMatch(command)
      await main(page).getByRole('button', { name: 'Copy' }).waitFor()
    }
  })

  it('of an MCP server says what to ask the agent of its client', async () => {
    const host = await startHost({ hasInstances: false, page: { hints: 'mcp' } })
    const page = await open(host.url)
    await isLive(page)
    for (const [part, words] of [
      ['timeline', /in the background/],
      ['delivery', /background tasks/],
      ['host', /Remind me/],
      ['instances', /"instances": /],
    ] as const) {
      await goTo(page, `/${part}`)
      await expect.poll(() => main(page).locator('.command code').textContent()).toMatch(words)
      expect(await main(page).textContent()).not.toMatch(/await |createTaskPage/)
    }
  })

  it('has no part for what its host does not have', async () => {
    const host = await startHost()
    const commandsOnly = await startHost({ page: { tasks: undefined } as never })
    const page = await open(commandsOnly.url)
    await isLive(page)
    await goTo(page, '/delivery')
    await page.getByText('This server has no async tasks').waitFor()
    await goTo(page, '/tasks')
    await page.getByText('agent-tasks submit').first().waitFor()
    await host.stopPage()
  })
})

describe('a live page', () => {
  it('shows in each part what happens, as it happens', async () => {
    const host = await startHost()
    const page = await open(host.url)
    await isLive(page)
    const key = await host.launch('sleeper', 'Guard the door')
    await page.getByRole('treeitem', { name: /^Guard the door, Running/ }).waitFor()
    expect(
      await page.getByRole('treeitem', { name: 'main, owner, 1 task', exact: true }).getAttribute('aria-expanded'),
    ).toBe('true')

    await goTo(page, '/tasks')
    await page.getByRole('row', { name: /Running Guard the door .*30 % · Sleeping/ }).waitFor()

    await goTo(page, `/task/${key}`)
    await page.getByText('30 % · Sleeping').first().waitFor()
    host.manager.cancelTask(key.slice('async:'.length), { reason: 'The door is gone' })
    await page.getByText('The door is gone').first().waitFor()

    await goTo(page, '/delivery')
    await host.launch('writer', 'Write home')
    const owner = page.getByRole('article', { name: 'Owner main' })
    await owner.getByRole('link', { name: 'Write home' }).waitFor()
    expect(await owner.textContent()).toMatch(/Owed1.*Nobody subscribed|Nobody subscribed.*Owed1/)

    await goTo(page, '/machines')
    const chart = page.getByRole('region', { name: 'asyncTask' })
    await chart.getByText('As a table').click()
    await chart.getByRole('row', { name: /^completed 1 / }).waitFor()

    await goTo(page, '/instances')
    const desk = page.getByRole('article', { name: 'Instance desk' })
    await desk.getByText('Connected').waitFor()
    host.submit('desk', 'wait', { seconds: 30 })
    await desk.getByRole('link', { name: /wait/ }).waitFor()

    await goTo(page, '/health')
    await page.getByText('The figures as a table').click()
    await page.getByRole('rowheader').first().waitFor()
  })

  it('shows the first 100 schedules, those that fire first, and more when a person asks for them', async () => {
    const host = await startHost()
    for (let hour = 150; hour > 0; hour -= 1) {
      host.tasks.schedule({ in: hour * 3_600_000, message: `Look ${hour}`, owner: hour > 75 ? 'ada' : 'main' })
    }
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, '/host')
    const rows = main(page).getByRole('listitem')
    await expect.poll(() => rows.count()).toBe(100)
    expect(await rows.first().textContent()).toContain('message: Look 1')
    await main(page).getByRole('button', { name: 'Show more of 150' }).click()
    await expect.poll(() => rows.count()).toBe(150)
    await main(page).getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' })
  })

  it('shows the output of a run as it is written', async () => {
    const host = await startHost()
    const key = await host.launch('talker', 'Talk')
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, `/task/${key}`)
    const output = page.getByRole('group', { name: 'Output', exact: true })
    await output.getByText('line 3').waitFor()
    const before = (await output.textContent())?.split('\n').length ?? 0
    await expect.poll(async () => (await output.textContent())?.split('\n').length).toBeGreaterThan(before + 5)
    const lines = (await output.textContent())?.trimEnd().split('\n') ?? []
    expect(lines).toEqual(lines.map((_, index) => `line ${index + 1}`))
  })

  it('filters and sorts the table, and keeps that in its address', async () => {
    const host = await startHost()
    for (const [subagent, goal] of [
      ['writer', 'Apples'],
      ['clumsy', 'Towers'],
      ['sleeper', 'Zebras'],
    ] as const) {
      await host.launch(subagent, goal)
    }
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, '/tasks?state=failed')
    const titles = () => page.locator('.table-body .title .text').allTextContents()
    await expect.poll(titles).toEqual(['Towers'])
    await page.getByRole('button', { name: /^Failed/ }).click()
    await expect.poll(titles).toEqual(['Zebras', 'Towers', 'Apples'])
    await page.getByRole('button', { name: 'Task', exact: true }).click()
    await expect.poll(titles).toEqual(['Apples', 'Towers', 'Zebras'])
    expect(await page.getByRole('columnheader', { name: 'Task' }).getAttribute('aria-sort')).toBe('ascending')
    await page.keyboard.press('/')
    await page.keyboard.type('fallen')
    await expect.poll(titles).toEqual(['Towers'])
    await page.reload()
    await expect.poll(titles).toEqual(['Towers'])
    await page.getByLabel('Subagent').selectOption('writer')
    await page.getByRole('button', { name: 'Show all 3' }).click()
    await expect.poll(titles).toEqual(['Zebras', 'Towers', 'Apples'])
  })

  it('zooms, moves, pauses and follows', async () => {
    const host = await startHost()
    await host.launch('sleeper', 'Guard the door')
    const page = await open(host.url)
    await isLive(page)
    const tree = page.getByRole('tree')
    await tree.focus()
    const follow = page.getByRole('button', { name: 'Follow' })
    expect(await follow.getAttribute('aria-pressed')).toBe('true')
    await page.keyboard.press('[')
    expect(await follow.getAttribute('aria-pressed')).toBe('false')
    await page.keyboard.press('f')
    expect(await follow.getAttribute('aria-pressed')).toBe('true')
    await page.keyboard.press('p')
    await page.getByText(/^Paused at/).waitFor()
    await host.launch('sleeper', 'Not seen yet')
    await page.getByRole('link', { name: 'Tasks', exact: true }).waitFor()
    await page.waitForTimeout(300)
    expect(await page.getByRole('treeitem').count()).toBe(3)
    await page.keyboard.press('p')
    await page.getByRole('treeitem', { name: /^Not seen yet/ }).waitFor()
    const drawn = () => page.evaluate(`document.querySelector('canvas.bars').toDataURL()`)
    await page.keyboard.press('[')
    const before = await drawn()
    await page.keyboard.press('+')
    await expect.poll(drawn).not.toBe(before)
  })
})

describe('a page whose server is gone', () => {
  it('says so within two seconds in every part, shows nothing stale as live, and comes back', async () => {
    const host = await startHost()
    const key = await host.launch('sleeper', 'Guard the door')
    await host.launch('writer', 'Write home')
    const page = await open(host.url)
    await isLive(page)
    await page.getByRole('treeitem', { name: /^Guard the door/ }).waitFor()
    const seen: Readonly<Record<Part, string>> = {
      timeline: 'Guard the door',
      tasks: 'Guard the door',
      task: 'Guard the door',
      launch: 'The subagents appear when the server is connected',
      history: 'The history appears when the server is connected',
      delivery: 'Write home',
      host: 'Nothing is scheduled or monitored',
      machines: 'asyncTask',
      instances: 'desk',
      health: 'Tasks per second',
    }
    await host.stopPage()
    await page.locator('[data-connection=lost]').waitFor({ timeout: 2000 })
    await page.getByRole('alert').getByText('The connection to the server is lost.').waitFor()
    const drawn = () => page.evaluate(`document.querySelector('canvas.bars').toDataURL()`)
    // The time stands still: what is drawn for it comes with the next frame.
    await page.waitForTimeout(300)
    const stale = await drawn()
    await page.waitForTimeout(1000)
    expect(await drawn()).toBe(stale)
    for (const part of PARTS) {
      await goTo(page, part === 'task' ? '/task' : `/${part}`)
      await page.getByRole('heading', { level: 1, name: PART_NAMES[part], exact: true }).waitFor()
      await main(page).getByText(seen[part]).first().waitFor()
      expect(await main(page).getAttribute('data-stale')).toBe('true')
      expect(await page.getByRole('status').first().textContent()).toMatch(/^Lost at/)
    }
    await goTo(page, '/tasks')
    const length = page.getByRole('row', { name: /Guard the door/ }).locator('.duration')
    const frozen = await length.textContent()
    await page.waitForTimeout(2200)
    expect(await length.textContent()).toBe(frozen)

    await host.launch('writer', 'Written meanwhile')
    await host.startPage()
    await isLive(page)
    await page.getByRole('row', { name: /Written meanwhile/ }).waitFor()
    expect(await main(page).getAttribute('data-stale')).toBe('false')
    await expect.poll(() => length.textContent()).not.toBe(frozen)
    await goTo(page, `/task/${key}`)
    await page.getByRole('button', { name: 'Cancel …' }).waitFor()
  })

  it('does not let anyone act on it', async () => {
    const host = await startHost()
    const key = await host.launch('asker', 'Store the archive')
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, `/task/${key}`)
    const answer = page.getByRole('button', { name: 'Answer' })
    await answer.waitFor()
    await host.stopPage()
    await page.locator('[data-connection=lost]').waitFor()
    for (const name of ['Answer', 'Cancel …', 'Run again']) {
      expect(await page.getByRole('button', { name }).isDisabled()).toBe(true)
    }
  })
})
