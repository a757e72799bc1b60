/**
 * `npm run pictures`: writes docs/pictures/. It takes pictures of the page of a running demo (`agent-tasks serve --demo`), each part in light and dark,
 * and of the extension. Needs Chromium and Xvfb. Only the times of day differ between two runs.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { createTaskClient } from '../src/client/index.js'
import { PARTS } from '../src/page/app/addresses.js'
import { launchChromium } from '../test/support/chromium.js'
import { openWindow, showPart } from '../test/support/page-look.js'
import { takeExtensionPictures } from './extension-pictures.js'
import { toSmallPng } from '../test/support/small-png.js'

const folder = fileURLToPath(new URL('../docs/pictures/', import.meta.url))
const cli = fileURLToPath(new URL('../dist/src/cli/main.js', import.meta.url))
const size = { width: 1280, height: 800 }
/** How long the demo needs until it has tasks in every state, and deliveries that wait, in ms. */
const WARM_MS = 25_000

/** How long the page needs to draw what was chosen, in ms. */
const SETTLE_MS = 1000
const ASKING = 'Deploy the parcel service'

const arguments_ = ['serve', '--demo', '--json', '--port', '0', '--ws-port', '0', '--page-port', '0']
const demo = spawn(process.execPath, [cli, ...arguments_], { stdio: ['ignore', 'pipe', 'inherit'] })
const exited = once(demo, 'exit')
try {
  const { pageUrl, httpUrl } = await printedUrls()
  await submitCommands(httpUrl)
  await pause(WARM_MS)
  const browser = await launchChromium()
  try {
    mkdirSync(folder, { recursive: true })
    for (const scheme of ['light', 'dark'] as const) await takeAll(browser, pageUrl, scheme)
  } finally {
    await browser.close()
  }
} finally {
  demo.kill()
  await exited
}
await takeExtensionPictures(save)

function save(name: string, screenshot: Buffer): void {
  const picture = toSmallPng(screenshot)
  writeFileSync(`${folder}${name}.png`, picture)
  console.log(`pictures: docs/pictures/${name}.png, ${picture.length} bytes`)
}

interface Urls {
  readonly httpUrl: string
  readonly pageUrl: string
}

/** Returns the addresses that the demo prints. @throws Error when the demo ends before it has printed them */
async function printedUrls(): Promise<Urls> {
  for await (const line of createInterface({ input: demo.stdout })) return JSON.parse(line) as Urls
  throw new Error('The demo ended before it printed its addresses.')
}

/** Submits command tasks to the instance of the demo: some that end, one that keeps running, and one that waits behind it. */
async function submitCommands(url: string): Promise<void> {
  const client = createTaskClient({ url })
  const add = { tool_name: 'add', args: { a: 19, b: 23 } }
  const slow = (seconds: number) => ({ tool_name: 'slow', args: { seconds, steps: 4 } })
  await client.submit({ task_name: 'Count the parcels', commands: [add, slow(6), add, slow(3)] })
  await client.submit({ task_name: 'Weigh the parcels', commands: [slow(5), { tool_name: 'echo', args: { kg: 12 } }] })
  await client.submit({ task_name: 'Wait for the van', commands: [add, slow(60)] })
  await client.submit({ task_name: 'Load the van', commands: [add, add] })
  await client.close()
}

async function takeAll(browser: Browser, url: string, scheme: 'light' | 'dark'): Promise<void> {
  const page = await openWindow(browser, url, { ...size, scheme })
  for (const part of PARTS) {
    await showPart(page, part, part === 'task' ? await askingTask(page) : `#/${part}`)
    // The picture at the top of the README shows the timeline with a selected task.
    if (part === 'timeline') await page.getByText(ASKING).first().click()
    if (part === 'instances') await page.getByRole('button', { name: 'Submit' }).first().click()
    await page.mouse.move(size.width - 1, size.height - 1)
    await pause(SETTLE_MS)
    save(`${part}-${scheme}`, await page.screenshot())
  }
  await page.context().close()
}

/** Returns the address of the task that asks a question. */
async function askingTask(page: Page): Promise<string> {
  await page.getByText(ASKING).first().click()
  const link = page.getByRole('link', { name: 'Open alone' })
  return new URL((await link.getAttribute('href')) ?? '', page.url()).hash
}
