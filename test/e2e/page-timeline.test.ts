/** The timeline in Chromium: what runs is first, what waits is folded, and the filter and the legend are remembered. */
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { LOOKS, STATES, type Look } from '../../src/page/app/text/states.js'
import { goTo, isLive, startHost, usePageBrowser } from '../support/page-browser.js'

const open = usePageBrowser()

const labels = async (page: Page): Promise<(string | null)[]> =>
  Promise.all((await page.getByRole('treeitem').all()).map((row) => row.getAttribute('aria-label')))

/** A host with two tasks that run, and tasks that wait for a slot. */
async function startFullHost(waiting: number) {
  const host = await startHost({ agent: { maxAsyncTasks: 2, whenFull: 'queue', queue: { max: waiting } } })
  await host.launch('sleeper', 'Guard the gate')
  await host.launch('sleeper', 'Guard the door')
  for (let number = 1; number <= waiting; number += 1) await host.launch('writer', `Letter ${number}`)
  return host
}

describe('1,500 tasks that wait', () => {
  it.each([
    { width: 1280, height: 800 },
    { width: 390, height: 844 },
  ])('leave what runs in sight at $width px, and are one row that unfolds', async (viewport) => {
    const host = await startFullHost(1500)
    const page = await open(host.url, { viewport })
    await isLive(page)
    const waiting = page.getByRole('treeitem', { name: 'Waiting, 1,500 tasks' })
    await waiting.waitFor()
    expect((await labels(page)).map((label) => label?.split(',')[0])).toEqual([
      ...['Running', 'main', 'Guard the door', 'Guard the gate', 'Waiting'],
    ])
    expect(await waiting.getAttribute('aria-expanded')).toBe('false')
    for (const name of [/^Guard the door/, /^Guard the gate/]) {
      const box = await page.getByRole('treeitem', { name }).boundingBox()
      expect(box!.y + box!.height).toBeLessThan(viewport.height)
    }

    await waiting.getByText('Show all').click()
    await page.getByRole('treeitem', { name: /^Letter 1,/ }).waitFor()
    // Only the rows on the screen exist.
    expect(await page.getByRole('treeitem').count()).toBeLessThan(80)
    await page.getByRole('tree').focus()
    await page.keyboard.press('End')
    await page.getByRole('treeitem', { name: /^Letter 1500,/ }).waitFor()
    await page.keyboard.press('Home')
    await waiting.click()
    await page
      .getByRole('treeitem', { name: /^Letter / })
      .first()
      .waitFor({ state: 'detached' })
  })
})

describe('the filter of the timeline', () => {
  it('finds tasks by state and text, keeps both in the address, and is left by the arrow down', async () => {
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
    const names = async (): Promise<(string | undefined)[]> => (await labels(page)).map((label) => label?.split(',')[0])
    await expect.poll(names).toEqual([...['Running', 'main', 'Zebras', 'Ended', 'main', 'Towers', 'Apples']])
    await page.getByRole('button', { name: /^Failed/ }).click()
    await expect.poll(names).toEqual(['Ended', 'main', 'Towers'])
    expect(new URL(page.url()).hash).toBe('#/timeline?state=failed')
    await page.keyboard.press('/')
    await page.keyboard.type('apples')
    await page.getByText('No task matches the filter').waitFor()
    await page.getByRole('button', { name: 'Show all 3' }).click()
    await expect.poll(async () => (await names()).length).toBe(7)
    await page.keyboard.press('/')
    await page.keyboard.type('zebra')
    await expect.poll(names).toEqual(['Running', 'main', 'Zebras'])
    await page.reload()
    await expect.poll(names).toEqual(['Running', 'main', 'Zebras'])
    await page.keyboard.press('/')
    await page.keyboard.press('ArrowDown')
    expect(await page.evaluate('document.activeElement.getAttribute("role")')).toBe('tree')
  })

  it('is cleared without closing the task that is open beside it', async () => {
    const host = await startHost()
    const key = encodeURIComponent(await host.launch('sleeper', 'Zebras'))
    const page = await open(host.url)
    await isLive(page)
    await goTo(page, `/timeline?text=apples&task=${key}`)
    await page.getByRole('button', { name: 'Show all 1' }).click()
    await expect.poll(() => new URL(page.url()).hash).toBe(`#/timeline?task=${key}`)
    await page.getByRole('complementary').getByText('Zebras').first().waitFor()
  })
})

describe('dragging', () => {
  it('leaves no listener on the window when the timeline is left', async () => {
    const host = await startHost()
    await host.launch('sleeper', 'Guard the door')
    const page = await open(host.url)
    await page.addInitScript(`{
      const add = window.addEventListener
      window.signals = []
      window.addEventListener = function (type, listener, options) {
        if (type.startsWith('pointer')) window.signals.push(options.signal)
        return add.call(this, type, listener, options)
      }
    }`)
    await page.reload()
    await page.getByRole('treeitem', { name: /^Guard the door/ }).waitFor()
    const listening = () => page.evaluate('window.signals.filter((signal) => !signal.aborted).length')
    expect(await listening()).toBe(3)
    await goTo(page, '/tasks')
    await expect.poll(listening).toBe(0)
  })
})

describe('the legend', () => {
  it('shows the icon and the bar of each state, hollow for a wait', async () => {
    const host = await startHost()
    await host.launch('sleeper', 'Guard the door')
    const page = await open(host.url)
    await isLive(page)
    const items = page.locator('.legend li', { has: page.locator('.bar-sample') })
    await items.first().waitFor()
    expect((await items.allTextContents()).map((text) => text.trim())).toEqual(STATES.map((state) => LOOKS[state].word))
    const bars = await page.evaluate(`[...document.querySelectorAll('.legend .bar-sample')].map((bar) => ({
      icons: bar.parentElement.querySelectorAll('.state-icon').length,
      lines: bar.querySelectorAll('pattern line').length,
      isHollow: getComputedStyle(bar.querySelector(':scope > rect')).fill === 'none',
    }))`)
    expect(bars).toEqual(
      STATES.map((state) => {
        const { strokes = [] }: Look = LOOKS[state]
        return { icons: 1, lines: strokes.length, isHollow: state === 'queued' }
      }),
    )
  })

  it('is open until it was closed once', async () => {
    const host = await startHost()
    await host.launch('sleeper', 'Guard the door')
    const page = await open(host.url)
    await isLive(page)
    const keys = page.getByText('Arrows move')
    await keys.waitFor()
    await page.reload()
    await keys.waitFor()
    await page.getByText('Legend and keys').click()
    await keys.waitFor({ state: 'hidden' })
    await page.reload()
    await page.getByRole('treeitem', { name: /^Guard the door/ }).waitFor()
    expect(await keys.isVisible()).toBe(false)
  })
})
