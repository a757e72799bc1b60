/** What tasks contain is text on the page, in Chromium: no markup, no script, nothing that reorders or hides other text. */
import { describe, expect, it } from 'vitest'
import { goTo, isLive, startHost, usePageBrowser } from '../support/page-browser.js'
import { createDesk } from '../support/page-host.js'

const open = usePageBrowser()
const EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script><b>bold</b>\u202egnp.exe\u0007'
const SHOWN = '<img src=x onerror="alert(1)"><script>alert(2)</script><b>bold</b>\\u202egnp.exe\\u0007'

describe('texts of tasks', () => {
  it('are text in every place of the page', async () => {
    const host = await startHost({
      agent: {
        owner: EVIL,
        subagents: {
          [EVIL]: async (_input: unknown, context) => {
            context.report({ progress: 1, total: 2, message: EVIL })
            context.append(EVIL)
            const answer = await context.ask({
              message: EVIL,
              schema: {
                type: 'object',
                properties: { [EVIL]: { type: 'string', title: EVIL, description: EVIL, enum: [EVIL], default: EVIL } },
              },
            })
            if (answer.action === 'decline') throw new TypeError(EVIL, { cause: new Error(EVIL) })
            return { [EVIL]: EVIL, nested: { [EVIL]: [EVIL] }, final_message: EVIL }
          },
        },
      },
    })
    host.connect(createDesk(`desk ${EVIL}`))
    const [answered, declined] = [await host.launch(EVIL as never, EVIL), await host.launch(EVIL as never, EVIL)]
    const page = await open(host.url)
    await isLive(page)
    const isShown = async (): Promise<void> => {
      await expect.poll(() => page.locator('main').textContent()).toContain(SHOWN)
      expect(await page.locator('main :is(img, script, b)').count()).toBe(0)
      expect(await page.locator('main').textContent()).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u)
    }
    await isShown()
    for (const part of ['tasks', 'delivery', 'instances']) {
      await goTo(page, `/${part}`)
      await isShown()
    }
    await goTo(page, `/task/${answered}`)
    await isShown()
    await page.getByRole('button', { name: 'Answer' }).click()
    await page.locator('.task-state').getByText('Completed').waitFor()
    await isShown()
    await goTo(page, `/task/${declined}`)
    await page.getByRole('button', { name: 'Decline' }).click()
    await page.locator('.task-state').getByText('Failed').waitFor()
    await page.getByText('Cause', { exact: true }).click()
    await isShown()
    await page.getByRole('button', { name: 'Run again' }).click()
    await page.getByRole('button', { name: 'Cancel …' }).click()
    await page.getByLabel('Reason').fill(EVIL)
    await page.getByRole('button', { name: 'Cancel the task' }).click()
    await page.locator('.task-state').getByText('Cancelled').waitFor()
    await isShown()
    // The title is text as well.
    await expect.poll(() => page.title()).toMatch(/^<img src=x onerror=.* · agent-tasks$/)
  })

  it('show JSON folded, however deep and long it is', async () => {
    const host = await startHost()
    let deep: unknown = 'bottom'
    for (let depth = 0; depth < 60; depth += 1) deep = { down: deep }
    const value = { deep, long: Array.from({ length: 5000 }, (_, index) => index), text: 'a\nb' }
    const key = await host.launch('writer', `Give back: ${JSON.stringify(value)}`)
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, `/task/${key}`)
    const result = page.getByRole('group', { name: 'Result' })
    await result.getByText('[5000]').click()
    expect(await result.locator('li').count()).toBeLessThan(120)
    await result.getByRole('button', { name: '4900 more' }).click()
    await result.getByText('199', { exact: true }).last().waitFor()
    for (let depth = 0; depth < 60; depth += 1) {
      await result.getByText('{1}').nth(depth).click()
      await expect.poll(() => result.getByText(/^(\{1\}|bottom)$/).count()).toBe(depth + 2)
    }
    await result.getByText('bottom').waitFor()
  })

  it('come in pieces when they are long', async () => {
    const host = await startHost()
    const key = await host.launch('writer', `Give back: ${JSON.stringify({ text: 'ä'.repeat(400_000) })}`)
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, `/task/${key}`)
    await page
      .locator('.section', { has: page.getByRole('heading', { name: 'Result' }) })
      .getByRole('button', { name: 'Show more' })
      .click()
    const result = page.getByRole('group', { name: 'Result' })
    await expect.poll(async () => (await result.textContent())?.includes('ä'.repeat(400_000))).toBe(true)
  })

  it('have their images', async () => {
    const host = await startHost()
    const key = await host.launch('painter', 'Paint')
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, `/task/${key}`)
    const image = page.getByRole('img', { name: 'Image 1 of the result' })
    await image.waitFor()
    await expect.poll(() => page.evaluate(`document.querySelector('.images img').naturalWidth`)).toBe(1)
    expect(await image.getAttribute('src')).toMatch(/^blob:/)
  })
})
