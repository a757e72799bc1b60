/**
 * The page at three sizes, and in both schemes at one of them: axe finds nothing, nothing is cut or lies on something else, and the schemes differ.
 *
 * There are no reference pictures: the fonts of another machine would make other ones (docs/tests.md).
 */
import pixelmatch from 'pixelmatch'
import { PNG } from 'pngjs'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { PARTS } from '../../src/page/app/addresses.js'
import { launchChromium } from '../support/chromium.js'
import {
  axeViolations,
  brightnessOf,
  fragmentOf,
  layoutProblems,
  openWindow,
  showPart,
  startBusyHost,
  unscroll,
  VIEWS,
  type BusyHost,
  type Window,
} from '../support/page-look.js'

const sizes = [
  { width: 390, height: 800 },
  { width: 1280, height: 800 },
  { width: 3840, height: 2160 },
] as const
// The layout is the same in both schemes, and the contrast in all sizes.
const windows: readonly Window[] = [
  { ...sizes[0], scheme: 'light' },
  { ...sizes[1], scheme: 'light' },
  { ...sizes[1], scheme: 'dark' },
  { ...sizes[2], scheme: 'light' },
]

let browser: Browser
let host: BusyHost

beforeAll(async () => {
  browser = await launchChromium()
  host = await startBusyHost()
})

afterAll(async () => {
  await browser.close()
  await host.close()
})

/** Opens a page for all tests of a group: that takes longer than to look at one of its parts. */
function pageOf(window: Window): () => Page {
  let page: Page | undefined
  beforeAll(async () => {
    page = await openWindow(browser, host.url, window)
  })
  afterAll(() => page?.context().close())
  return () => page!
}

describe.each(windows)('in a window of $width x $height px, $scheme', (window) => {
  const opened = pageOf(window)

  it.each(PARTS)('the part %s has no violation that axe finds, and nothing is cut or overlaps', async (part) => {
    const page = opened()
    await page.setViewportSize(window)
    await showPart(page, part, fragmentOf(part, host))
    expect(await layoutProblems(page)).toEqual([])
    await unscroll(page)
    expect([...(await layoutProblems(page)), ...(await axeViolations(page))]).toEqual([])
  })
})

describe.each<Window>([
  { ...sizes[0], scheme: 'light' },
  { ...sizes[1], scheme: 'dark' },
])('in a window of $width x $height px, $scheme', (window) => {
  it.each(Object.entries(VIEWS))(
    '%s has no violation that axe finds, and nothing is cut or overlaps',
    async (_, show) => {
      const page = await openWindow(browser, host.url, window)
      onTestFinished(() => page.context().close())
      await show(page, host)
      await unscroll(page)
      expect([...(await layoutProblems(page)), ...(await axeViolations(page))]).toEqual([])
    },
  )
})

describe('in both schemes', () => {
  const [, size] = sizes
  const opened = (['light', 'dark'] as const).map((scheme) => pageOf({ ...size, scheme }))

  it.each(PARTS)('the part %s is bright in the light scheme, dark in the dark one, and drawn in both', async (part) => {
    const [light, dark] = await Promise.all(
      opened.map(async (open) => {
        const page = open()
        await showPart(page, part, fragmentOf(part, host))
        return PNG.sync.read(await page.screenshot())
      }),
    )
    expect(brightnessOf(light!)).toBeGreaterThan(0.75)
    expect(brightnessOf(dark!)).toBeLessThan(0.3)
    const different = pixelmatch(light!.data, dark!.data, undefined, size.width, size.height, { threshold: 0.1 })
    expect(different / (size.width * size.height)).toBeGreaterThan(0.9)
  })
})
