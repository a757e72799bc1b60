/** The page in Chromium: what it sends, how smoothly it draws, and when an event is on the screen. */
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { launchChromium } from '../../support/chromium.js'
import { pageFiles } from '../../support/page-files.js'
import { importEntry } from '../package.js'
import { arrivals, frames } from '../page-probes.js'
import { quantile } from '../statistics.js'
import type { CreateSubject, Subject } from '../subject.js'

export interface PageLoad {
  /** How many tasks the page has. */
  readonly tasks: number
  readonly eventsPerSecond: number
  /** How long a round looks. */
  readonly measureMs: number
}

/** The bytes of all files of the page, gzipped. */
export const sentBytes: CreateSubject = (_, checkout) => ({
  run: () => pageFiles(join(checkout, 'dist/page/')).reduce((sum, { gzipped }) => sum + gzipped, 0),
})

/** How much longer 95 % of the frames take than those of an empty page in the same browser, in ms. */
export const frameTime: CreateSubject<PageLoad> = (load, checkout) =>
  onBusyHost(load, checkout, async (page, url) => {
    await page.goto('about:blank')
    const empty = quantile(await page.evaluate(frames, load.measureMs), 0.95)
    await open(page, url, 'timeline')
    return quantile(await page.evaluate(frames, load.measureMs), 0.95) - empty
  })

/** The time from the launch of a task until its row is on the screen, in ms. */
export const eventToScreen: CreateSubject<PageLoad> = (load, checkout) =>
  onBusyHost(load, checkout, async (page, url) => {
    await open(page, url, 'tasks')
    const durations = await page.evaluate(arrivals, load.measureMs)
    if (durations.length < 10) throw new Error(`only ${durations.length} events were seen on the screen`)
    return quantile(durations, 0.95)
  })

async function onBusyHost(
  { tasks, eventsPerSecond }: PageLoad,
  checkout: string,
  look: (page: Page, url: string) => Promise<number>,
): Promise<Subject> {
  const browser = await launchChromium()
  const host = await startHost(tasks, eventsPerSecond, checkout)
  const page = await openTab(browser)
  return {
    run: () => look(page, host.url),
    close: async () => {
      await browser.close()
      await host.close()
    },
  }
}

async function openTab(browser: Browser): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  page.on('pageerror', (error) => {
    throw error
  })
  return page
}

/** A host whose page has many tasks, a tenth of them running, and in which tasks start and end all the time. */
async function startHost(tasks: number, eventsPerSecond: number, checkout: string) {
  const { AsyncTaskManager } = await importEntry(checkout, '.')
  const { createTaskPage } = await importEntry(checkout, './page')
  const running = Math.ceil(tasks / 10)
  const manager = new AsyncTaskManager(running + 1)
  const page = await createTaskPage({ tasks: manager, port: 0 })
  const live: string[] = []
  let count = 0
  const start = (): void => {
    const id = `task-${(count += 1)}`
    live.push(id)
    // The time is in the title: the page says how long ago that was.
    manager.registerTask({
      id,
      subagentName: 'worker',
      owner: `owner ${count % 8}`,
      goalPrompt: `sent at ${performance.timeOrigin + performance.now()}`,
      abortController: new AbortController(),
    })
  }
  const end = (): void => {
    const id = live.shift()
    if (id !== undefined) manager.completeTask(id, { final_message: 'done' })
  }
  for (let at = 0; at < tasks; at += 1) {
    start()
    if (live.length > running) end()
  }
  const timer = setInterval(
    () => {
      end()
      start()
    },
    (1000 / eventsPerSecond) * 2,
  )
  const close = async (): Promise<void> => {
    clearInterval(timer)
    await page.close()
    await manager.dispose()
  }
  return { url: page.url, close }
}

/** Opens a part of the page anew and waits until it is live. */
async function open(page: Page, url: string, part: string): Promise<void> {
  await page.goto('about:blank')
  await page.goto(url)
  await page.waitForSelector('main[data-stale="false"]')
  await page.evaluate(`location.hash = '#/${part}'`)
  await page.waitForTimeout(1000)
}
