/**
 * `npm run pictures`: writes docs/pictures/ from the page of the running demo (`agent-tasks serve --demo`), each part in both schemes. Needs
 * Chromium. The time of day is what differs from one run to the next.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { launchChromium } from './chromium.js'
import { openWindow, PART_HEADINGS, showPart, type PartName } from './page-look.js'
import { toSmallPng } from './small-png.js'

const folder = fileURLToPath(new URL('../../docs/pictures/', import.meta.url))
const cli = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url))
const size = { width: 1280, height: 800 }
/** Until the demo has tasks in every state, and deliveries that wait. */
const WARM_MS = 25_000

const arguments_ = ['serve', '--demo', '--json', '--port', '0', '--ws-port', '0', '--page-port', '0']
const demo = spawn(process.execPath, [cli, ...arguments_], { stdio: ['ignore', 'pipe', 'inherit'] })
const exited = once(demo, 'exit')
try {
  const url = await pageUrl()
  await pause(WARM_MS)
  const browser = await launchChromium()
  try {
    mkdirSync(folder, { recursive: true })
    for (const scheme of ['light', 'dark'] as const) await takeAll(browser, url, scheme)
  } finally {
    await browser.close()
  }
} finally {
  demo.kill()
  await exited
}

/** The link that the demo prints. @throws Error when it ends without one */
async function pageUrl(): Promise<string> {
  for await (const line of createInterface({ input: demo.stdout })) {
    const { pageUrl: url } = JSON.parse(line) as { pageUrl?: string }
    if (url !== undefined) return url
  }
  throw new Error('The demo has printed no link to its page.')
}

async function takeAll(browser: Browser, url: string, scheme: 'light' | 'dark'): Promise<void> {
  const page = await openWindow(browser, url, { ...size, scheme })
  for (const part of Object.keys(PART_HEADINGS) as PartName[]) {
    await showPart(page, part, await fragmentOf(page, part))
    await page.mouse.move(size.width - 1, size.height - 1)
    const picture = toSmallPng(await page.screenshot())
    writeFileSync(`${folder}${part}-${scheme}.png`, picture)
    console.log(`pictures: docs/pictures/${part}-${scheme}.png, ${picture.length} bytes`)
  }
  await page.context().close()
}

/** `Task` shows the first task that asks a question. */
async function fragmentOf(page: Page, part: PartName): Promise<string> {
  if (part !== 'task') return `#/${part}`
  await page.evaluate("location.hash = '#/tasks?state=asking'")
  await page.getByText('Deploy the parcel service').first().click()
  await page.getByRole('link', { name: 'Open alone' }).waitFor()
  return new URL((await page.getByRole('link', { name: 'Open alone' }).getAttribute('href')) ?? '', page.url()).hash
}
