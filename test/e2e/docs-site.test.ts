/** The documentation site in a browser: every page at two widths and in both schemes, its links, and the search by keyboard. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AxeResults } from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { serveFolder, type ServedFolder } from '../../scripts/site/serve-folder.js'
import { WITHOUT_API, sidebar, type SidebarItem } from '../../scripts/site/pages.js'
import { launchChromium } from '../support/chromium.js'

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const widths = [1280, 390]
const schemes = ['light', 'dark'] as const
/** These are looked at in every width and scheme, also by axe: tables, code, pictures. In the others, axe looks at one width and scheme. */
const sample = new Set(['/', '/cli'])

const linksOf = (items: readonly SidebarItem[]): string[] =>
  items.flatMap(({ link, items: inner = [] }) => [...(link === undefined ? [] : [link]), ...linksOf(inner)])

let folder = ''
let site: ServedFolder
let browser: Browser
let pages: string[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-site-'))
  const program = ['--import', 'tsx', 'scripts/docs-site.ts', '--no-api', '--out', folder]
  const { status, stdout, stderr } = spawnSync(process.execPath, program, { encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(0)
  process.env[WITHOUT_API] = '1'
  // Decisions have the same form: one of them stands for all.
  const links = linksOf(sidebar())
  pages = [
    '/',
    ...links.filter(
      (link, index) =>
        !link.startsWith('/adr/') || (link !== links[index - 1] && !links[index - 1]?.startsWith('/adr/')),
    ),
  ]
  site = await serveFolder(folder)
  browser = await launchChromium()
}, 240_000)

afterAll(async () => {
  Reflect.deleteProperty(process.env, WITHOUT_API)
  await browser.close()
  await site.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A tab, and what went wrong in it. */
async function openTab() {
  const page = await browser.newPage({ reducedMotion: 'reduce' })
  const problems: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(`console: ${message.text()}`)
  })
  page.on('pageerror', ({ message }) => problems.push(`error: ${message}`))
  page.on('requestfailed', (request) => {
    // A change of the scheme loads other pictures, and the next page does not wait for them.
    const reason = request.failure()?.errorText
    if (reason !== 'net::ERR_ABORTED') problems.push(`failed: ${request.url()}: ${reason ?? ''}`)
  })
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${response.status()}: ${response.url()}`)
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(site.url) && !request.url().startsWith('data:')) {
      problems.push(`elsewhere: ${request.url()}`)
    }
  })
  await page.addInitScript({ path: axe })
  return { page, problems }
}

/** What axe finds in a part of the page, in words. */
async function axeViolations(page: Page, part: string): Promise<string[]> {
  const { violations } = await page.evaluate<AxeResults>(`axe.run('${part}')`)
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary = '' }) => `${id}: ${target.join(' ')}: ${failureSummary}`),
  )
}

/** Looks at a page at each width and in each scheme. Returns what is wrong, in words. */
async function look(page: Page, path: string): Promise<string[]> {
  const found: string[] = []
  await page.emulateMedia({ colorScheme: 'light' })
  await page.goto(site.url + path.slice(1))
  await page.locator('main h1').first().waitFor()
  // The layout is the same in both schemes.
  for (const scheme of sample.has(path) ? schemes : schemes.slice(0, 1)) {
    for (const width of widths) {
      await page.emulateMedia({ colorScheme: scheme })
      await page.setViewportSize({ width, height: 900 })
      const where = `${path} at ${width} px, ${scheme}`
      const hasScheme = `document.documentElement.classList.contains('dark') === ${scheme === 'dark'}`
      await page.waitForFunction(hasScheme).catch(() => found.push(`${where}: has the other scheme`))
      const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      if (wide > 0) found.push(`${where}: is ${wide} px too wide`)
      const isFirst = scheme === 'light' && width === widths[0]
      if (isFirst || sample.has(path)) {
        // What surrounds a document is the same on every page.
        const violations = await axeViolations(page, path === '/' ? 'body' : '.VPDoc')
        found.push(...violations.map((violation) => `${where}: ${violation}`))
      }
    }
  }
  return found
}

describe('the documentation site', () => {
  it(
    'shows every page of the sidebar without errors, findings of axe, or anything that is too wide',
    { timeout: 600_000 },
    async () => {
      expect(pages.length).toBeGreaterThan(30)
      const waiting = [...pages]
      const found: string[] = []
      const walk = async (): Promise<void> => {
        const { page, problems } = await openTab()
        for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
          found.push(...(await look(page, path)), ...problems.splice(0).map((problem) => `${path}: ${problem}`))
        }
        await page.close()
      }
      await Promise.all([walk(), walk()])
      expect(found).toEqual([])
    },
  )

  it('has no link to a page or a heading that does not exist', () => {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.html'))
    const texts = new Map(files.map((file) => [`/${file}`, readFileSync(join(folder, file), 'utf8')]))
    const ids = new Map([...texts].map(([file, text]) => [file, new Set(matches(text, / id="([^"]+)"/g))]))
    const dead = [...texts].flatMap(([file, text]) =>
      matches(text, /<a [^>]*?href="([^"]*)"/g)
        .filter((href) => href.startsWith('/') || href.startsWith('#') || href.startsWith('.'))
        .filter((href) => {
          const [path = '', anchor] = href.split('#')
          const target =
            path === '' ? file : posix.join(posix.dirname(file), path.startsWith('/') ? `/..${path}` : path)
          const known = ids.get(path.startsWith('/') ? path.replace(/\/$/, '/index.html') : target)
          return known === undefined || (anchor !== undefined && !known.has(decodeURIComponent(anchor)))
        })
        .map((href) => `${file}: ${href}`),
    )
    expect(dead).toEqual([])
  })

  it('finds a page by its words, by keyboard alone', async () => {
    const { page, problems } = await openTab()
    await page.goto(`${site.url}server.html`)
    await page.locator('main h1').first().waitFor()
    await page.keyboard.press('Control+KeyK')
    await page.locator('#localsearch-input').waitFor()
    await page.keyboard.type('exactly once')
    const results = page.locator('#localsearch-list [role=option] a')
    await results.first().waitFor()
    const hrefs = await Promise.all((await results.all()).map((result) => result.getAttribute('href')))
    // Pages for users come first.
    expect(hrefs.slice(0, 5).join()).not.toMatch(/\/(adr|changelog|guarantees)\b/)
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => !url.pathname.endsWith('/server.html'))
    await page.waitForFunction("document.querySelector('main').innerText.toLowerCase().includes('exactly once')")
    expect(problems).toEqual([])
    await page.close()
  })
})

function matches(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, found = '']) => found)
}
