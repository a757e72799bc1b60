/** Cancel, Answer, Run again and Submit on the page in Chromium, each on the real thing. */
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { goTo, isLive, startHost, usePageBrowser } from '../support/page-browser.js'

const open = usePageBrowser()
const idOf = (key: string): string => key.slice('async:'.length)
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

async function openTask(host: Awaited<ReturnType<typeof startHost>>, key: string): Promise<Page> {
  const page = await open(host.url)
  await isLive(page)
  await goTo(page, `/task/${key}`)
  await page.getByRole('group', { name: 'Actions' }).waitFor()
  return page
}

async function openSubmission(host: Awaited<ReturnType<typeof startHost>>): Promise<Page> {
  const page = await open(host.url)
  await isLive(page)
  await goTo(page, '/instances')
  await button(page, 'Submit …').click()
  return page
}

describe('Cancel', () => {
  it('asks first, and then cancels with the reason', async () => {
    const host = await startHost()
    const key = await host.launch('sleeper', 'Guard the door')
    const page = await openTask(host, key)
    await button(page, 'Cancel …').click()
    await button(page, 'Let it run').click()
    await page.locator('dialog').waitFor({ state: 'detached' })
    expect(host.manager.getTask(idOf(key))?.status).toBe('running')
    await button(page, 'Cancel …').click()
    await page.getByLabel('Reason').fill('The door is gone')
    await button(page, 'Cancel the task').click()
    await page.locator('dialog').waitFor({ state: 'detached' })
    await page.locator('.task-state').getByText('Cancelled').waitFor()
    expect(host.manager.getTask(idOf(key))).toMatchObject({ status: 'cancelled', cancelReason: 'The door is gone' })
    await page.locator('.facts').getByText('The door is gone').waitFor()
    await button(page, 'Cancel …').waitFor({ state: 'detached' })
  })

  it('ends its dialog with the task', async () => {
    const host = await startHost()
    const key = await host.launch('sleeper', 'Guard the door')
    const page = await openTask(host, key)
    await button(page, 'Cancel …').click()
    await page.getByRole('dialog').waitFor()
    host.manager.cancelTask(idOf(key), 'not needed')
    await page.locator('dialog').waitFor({ state: 'detached' })
    await page.locator('.task-state').getByText('Cancelled').waitFor()
    await button(page, 'Copy as TypeScript').click()
  })

  it('says in the dialog why nothing was cancelled', async () => {
    const host = await startHost()
    const key = await host.launch('sleeper', 'Guard the door')
    const page = await openTask(host, key)
    await button(page, 'Cancel …').click()
    // The page has not heard of the end yet.
    await page.route('**/cancel', (route) =>
      route.fulfill({ status: 409, json: { error: 'The task has ended.', code: 'TASK_ENDED' } }),
    )
    await button(page, 'Cancel the task').click()
    await page.getByRole('dialog').getByRole('alert').getByText('The task has ended').waitFor()
  })
})

describe('Answer', () => {
  it('answers with a value of its type for each field', async () => {
    const host = await startHost()
    const key = await host.launch('asker', 'Store the archive')
    const page = await openTask(host, key)
    expect(await page.getByLabel('Copies').inputValue()).toBe('2')
    await page.getByLabel('Region').selectOption('America')
    await page.getByLabel('Copies').fill('4')
    await page.getByLabel('Highest price').fill('12.5')
    await page.getByLabel('Note').fill('Two lines\nof text')
    await page.getByLabel('Urgent').check()
    await button(page, 'Answer').click()
    await page.locator('.task-state').getByText('Completed').waitFor()
    expect(host.manager.getTask(idOf(key))?.output).toEqual({
      answer: {
        action: 'accept',
        content: { region: 'us', copies: 4, price: 12.5, note: 'Two lines\nof text', urgent: true },
      },
    })
    await button(page, 'Answer').waitFor({ state: 'detached' })
  })

  it('says at each field what is wrong, by itself and after the server has said it', async () => {
    const host = await startHost()
    const key = await host.launch('asker', 'Store the archive')
    const page = await openTask(host, key)
    await page.getByLabel('Copies').fill('many')
    await button(page, 'Answer').click()
    const region = page.getByLabel('Region')
    expect(await region.getAttribute('aria-invalid')).toBe('true')
    await expect.poll(() => page.locator(':focus').getAttribute('id')).toBe(await region.getAttribute('id'))
    const wordsAt = async (label: string): Promise<string> => {
      const ids = (await page.getByLabel(label).getAttribute('aria-describedby')) ?? ''
      return (await Promise.all(ids.split(' ').map((id) => page.locator(`[id="${id}"]`).textContent()))).join(' ')
    }
    expect(await wordsAt('Copies')).toContain('A number is needed, not many.')
    await region.selectOption('Europe')
    await page.getByLabel('Copies').fill('3')
    await page.getByLabel('Note').fill('x'.repeat(500))
    await button(page, 'Answer').click()
    await expect.poll(() => wordsAt('Note')).toMatch(/400/)
    expect(host.manager.getTask(idOf(key))?.status).toBe('running')
    await page.getByLabel('Note').fill('short')
    await button(page, 'Answer').click()
    await page.locator('.task-state').getByText('Completed').waitFor()
  })

  it('can decline', async () => {
    const host = await startHost()
    const key = await host.launch('asker', 'Store the archive')
    const page = await openTask(host, key)
    await button(page, 'Decline').click()
    await page.locator('.task-state').getByText('Completed').waitFor()
    expect(host.manager.getTask(idOf(key))?.output).toEqual({ answer: { action: 'decline' } })
  })
})

describe('Run again', () => {
  it('makes a new task with the same input and goes to it', async () => {
    const host = await startHost()
    const key = await host.launch('clumsy', 'Build a tower')
    const page = await openTask(host, key)
    await page.locator('.task-state').getByText('Failed').waitFor()
    await button(page, 'Run again').click()
    await page.waitForURL((url) => url.hash.startsWith('#/task/async') && !url.hash.endsWith(key.replace(/^.*:/, '')))
    await page.locator('.task-title').getByText('Build a tower').waitFor()
    await expect
      .poll(() => host.manager.getAllTasks().map(({ goalPrompt, status }) => [goalPrompt, status]))
      .toEqual([
        ['Build a tower', 'failed'],
        ['Build a tower', 'failed'],
      ])
  })

  it('says why it cannot', async () => {
    const host = await startHost()
    host.manager.registerTask({
      id: 'mine',
      subagentName: 'host',
      goalPrompt: 'Run by the host',
      abortController: new AbortController(),
    })
    const page = await openTask(host, 'async:mine')
    expect(await button(page, 'Run again').isDisabled()).toBe(true)
    expect(await page.getByText(/^This task cannot run again\. /).textContent()).toMatch(/\w{3}/)
  })

  it('repeats the commands of a command task', async () => {
    const host = await startHost()
    const key = host.submit('desk', 'add', { a: 1, b: 2 })
    const page = await openTask(host, key)
    await page.locator('.task-state').getByText('Completed').waitFor()
    await button(page, 'Run again').click()
    await page.waitForURL((url) => url.hash.startsWith('#/task/command') && !url.hash.endsWith(key.replace(/^.*:/, '')))
    await page.locator('.task-state').getByText('Completed').waitFor()
    await page.getByRole('group', { name: 'Result of add' }).getByText('3', { exact: true }).waitFor()
  })
})

describe('Submit', () => {
  it('runs a command with the arguments of the form', async () => {
    const host = await startHost()
    const page = await openSubmission(host)
    await page.getByLabel('Name of the task (optional)').waitFor()
    await page.getByLabel('a', { exact: true }).fill('20')
    await page.getByLabel('b', { exact: true }).fill('22')
    await button(page, 'Submit').click()
    await page.locator('.task-state').getByText('Completed').waitFor()
    await page.getByRole('group', { name: 'Result of add' }).getByText('42', { exact: true }).waitFor()
  })

  it('has a field of JSON for what is nested, and says what is wrong', async () => {
    const host = await startHost()
    const page = await openSubmission(host)
    await page.getByLabel('Tool', { exact: true }).selectOption('file')
    await page.getByLabel('tags').fill('["a"')
    await button(page, 'Submit').click()
    await page.getByText(/^JSON is needed: /).waitFor()
    await page.getByText('Fill this in.').waitFor()
    await page.getByLabel('to', { exact: true }).fill('ada@example.org')
    await page.getByLabel('tags').fill('["a", "b"]')
    await button(page, 'Submit').click()
    await page.locator('.task-state').getByText('Completed').waitFor()
    const result = page.getByRole('group', { name: 'Result of file' })
    expect((await result.textContent())?.replaceAll(' ', '')).toContain('tags[2]0a1b')
    await result.getByText('letter', { exact: true }).waitFor()
  })

  it('takes several commands, in the order that a person gives them, and a name', async () => {
    const host = await startHost()
    const page = await openSubmission(host)
    const command = (number: number) => page.getByRole('group', { name: `Command ${number}`, exact: true })
    const focused = () => page.locator(':focus').getAttribute('aria-label')
    await command(1).getByLabel('a', { exact: true }).fill('1')
    await command(1).getByLabel('b', { exact: true }).fill('2')
    await button(page, 'Add a command').click()
    await button(page, 'Add a command').click()
    await command(3).getByLabel('Tool').selectOption('file')
    await command(3).getByLabel('to', { exact: true }).fill('ada@example.org')
    await button(page, 'Move command 3 up').click()
    await expect.poll(focused).toBe('Move command 2 up')
    await page.keyboard.press('Enter')
    await expect.poll(focused).toBe('Move command 1 down')
    await button(page, 'Remove command 3').click()
    await expect.poll(() => page.locator(':focus').inputValue()).toBe('add')
    await page.getByLabel('Name of the task').fill('File, then add')
    await button(page, 'Submit').click()
    await page.locator('.task-title').getByText('File, then add').waitFor()
    await page.locator('.task-state').getByText('Completed').waitFor()
    expect(host.taskManager.listTasks()).toMatchObject([
      { name: 'File, then add', commands: [{ tool_name: 'file' }, { tool_name: 'add', args: { a: 1, b: 2 } }] },
    ])
  })

  it('says at its field what the server refuses', async () => {
    const host = await startHost()
    const page = await openSubmission(host)
    await page.getByLabel('a', { exact: true }).fill('1')
    await page.getByLabel('b', { exact: true }).fill('2')
    const name = page.getByLabel('Name of the task')
    await name.fill('x'.repeat(1001))
    await button(page, 'Submit').click()
    await expect.poll(() => name.getAttribute('aria-invalid')).toBe('true')
    expect(await page.locator(`[id="${await name.getAttribute('aria-describedby')}"]`).textContent()).toMatch(/1000/)
    await expect.poll(() => page.locator(':focus').getAttribute('id')).toBe(await name.getAttribute('id'))
    expect(host.taskManager.listTasks()).toEqual([])
    await name.fill('Short')
    await button(page, 'Submit').click()
    await page.locator('.task-title').getByText('Short').waitFor()
  })

  it('shows the error of the server', async () => {
    const host = await startHost()
    const page = await openSubmission(host)
    await page.getByLabel('a', { exact: true }).fill('1')
    await page.getByLabel('b', { exact: true }).fill('2')
    await page.route('**/submit', async (route) => {
      await host.disconnect('desk')
      await route.continue()
    })
    await button(page, 'Submit').click()
    await expect.poll(() => page.locator('main').textContent()).toMatch(/There is no instance|No instance is connected/)
  })
})

describe('Send a message', () => {
  it('sends it to a run that reads messages, and says why another one does not get it', async () => {
    const host = await startHost()
    const listener = await host.launch('listener', 'Listen')
    const page = await openTask(host, await host.launch('sleeper', 'Guard the door'))
    const send = async (): Promise<void> => {
      await page.getByText('Send a message').click()
      await page.getByLabel('Message to the run').fill('The ferry is here')
      await button(page, 'Send').click()
    }
    await send()
    await page.locator('.message-form').getByRole('alert').waitFor()
    await goTo(page, `/task/${listener}`)
    await page.locator('.task-title').getByText('Listen').waitFor()
    await send()
    await page.getByText('Heard: The ferry is here').waitFor()
  })
})

describe('Copy as', () => {
  it('copies what runs the same task', async () => {
    const host = await startHost()
    const key = await host.launch('writer', 'Write home')
    const page = await open(host.url, { permissions: ['clipboard-read', 'clipboard-write'] })
    await isLive(page)
    await goTo(page, `/task/${key}`)
    await button(page, 'Copy as TypeScript').click()
    await page.getByText('Copied').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(/Write home/)
  })
})
