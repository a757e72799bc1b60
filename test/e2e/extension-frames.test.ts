/** Ways out of the group through frames and tabs that are not the client's: the PDF viewer, other extensions, and what the browser puts into the group. */
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { EXTENSION_ORIGIN } from '../../src/protocol/browser-extension.js'
import { attackExtension, TOKEN, type AttackedExtension } from '../support/attacked-extension.js'
import { waitFor } from '../support/extension-browser.js'
import { refIn } from '../support/tool-pages.js'

const hostile = fileURLToPath(new URL('../support/programs/hostile-extension', import.meta.url))

/** A document with one small page. */
const PDF = Buffer.from(
  '%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj ' +
    '3 0 obj<</Type/Page/MediaBox[0 0 90 90]>>endobj\ntrailer<</Root 1 0 R>>',
)
const PDF_URL = `data:application/pdf;base64,${PDF.toString('base64')}`

let attack: AttackedExtension
let hostileId: string

beforeAll(async () => {
  attack = await attackExtension({ besides: [hostile] })
  attack.serve('/file.pdf', (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/pdf' }).end(PDF)
  })
  const { targetInfos } = await attack.browser.devtools.send('Target.getTargets')
  hostileId = new URL(targetInfos.find(({ url }) => url.endsWith('/hostile.js'))?.url ?? '').host
})
afterAll(() => attack.close())
afterEach(() => attack.browser.takeAllBack())

const frameUrls = async (): Promise<string[]> =>
  (await attack.browser.devtools.send('Target.getTargets')).targetInfos
    .filter(({ type }) => type === 'iframe')
    .map(({ url }) => url)

const showFrame = (src: string): string =>
  `() => {
    const frame = document.createElement('iframe')
    const around = document.createElement('div')
    around.style = 'position: fixed; left: 0; top: 60px; width: 500px; height: 300px'
    frame.style = 'width: 100%; height: 100%'
    frame.src = ${JSON.stringify(src)}
    around.append(frame)
    document.body.append(around)
  }`

/** Shows a document in a frame, and waits until the viewer is there. */
async function showPdf(): Promise<string> {
  await attack.use('browser_tabs', { action: 'new', url: `${attack.site}/with-pdf` })
  await attack.evaluate(showFrame(PDF_URL))
  await waitFor(
    async () => ((await frameUrls()).some((url) => /^chrome-extension:.*\/index\.html/.test(url)) ? true : undefined),
    'the viewer',
  )
  return waitFor(async () => {
    const snapshot = await attack.use('browser_snapshot')
    return snapshot.includes('Left out: 1 frame') ? snapshot : undefined
  }, 'the session of the viewer')
}

describe('the PDF viewer, which may do what an extension may', () => {
  it('E1: its elements are not in a snapshot, and nothing runs in it', async () => {
    const snapshot = await showPdf()
    expect(snapshot).not.toMatch(/Zoom|sidebar|Download/)
    const refs = [...snapshot.matchAll(/\[ref=(e\d+)\]/g)].map(([, ref]) => ref)
    expect(refs.length).toBeGreaterThan(2)
    for (const ref of refs) {
      const seen = await attack.evaluate('(element) => [location.protocol, typeof chrome.tabs]', ref)
      expect(seen).toMatch(/"(?:http|data):",\s+"undefined"/)
    }
    // The page around it can be used.
    expect(await attack.use('browser_click', { target: 'button' })).toContain('Clicked')
  })

  it('E1: mouse and keyboard do not get into it', async () => {
    const snapshot = await showPdf()
    for (const target of ['iframe', 'div', refIn(snapshot, 'iframe')]) {
      expect(await attack.use('browser_hover', { target }), target).toMatch(/^PAGE_NOT_ALLOWED/)
      expect(await attack.use('browser_click', { target }), target).toMatch(/^PAGE_NOT_ALLOWED/)
    }
    await attack.evaluate('(element) => element.focus()', refIn(snapshot, 'iframe'))
    expect(await attack.use('browser_press_key', { key: 'Tab' })).toMatch(/^PAGE_NOT_ALLOWED/)
    await attack.evaluate(`() => document.activeElement.blur()`)
    expect(await attack.use('browser_press_key', { key: 'a' })).toContain('Pressed a')
  })

  it('E1: a tab whose page is a document shows nothing of the viewer', async () => {
    await attack.use('browser_tabs', { action: 'new', url: `${attack.site}/file.pdf` })
    await waitFor(async () => {
      const snapshot = await attack.use('browser_snapshot')
      expect(snapshot).not.toMatch(/Zoom|sidebar|Download/)
      return snapshot.includes('Left out: 1 frame') ? true : undefined
    }, 'the viewer')
    expect(await attack.evaluate('() => typeof chrome.tabs')).toContain('"undefined"')
    expect(await attack.use('browser_click', { target: 'body' })).toMatch(/^PAGE_NOT_ALLOWED/)
    expect(await attack.use('browser_navigate', { url: `${attack.site}/after` })).toContain('/after')
  })
})

it('E1: a page with a frame of another extension is refused in words', async () => {
  const page = `chrome-extension://${hostileId}/hostile.html`
  await attack.use('browser_tabs', { action: 'new', url: `${attack.site}/with-frame` })
  await attack.evaluate(showFrame(page))
  await waitFor(async () => ((await frameUrls()).includes(page) ? true : undefined), 'the frame')
  for (const [tool, args] of [
    ['browser_snapshot', {}],
    ['browser_evaluate', { function: '() => 1' }],
    ['browser_press_key', { key: 'a' }],
  ] as const) {
    expect(await attack.use(tool, args)).toMatch(/^PAGE_NOT_ALLOWED .*frame of another extension/)
  }
})

describe('a tab that gets into the group', () => {
  const listed = () => attack.use('browser_tabs', { action: 'list' })
  const badgeOf = (tab: number) =>
    attack.browser.inOptions<string>(`return chrome.action.getBadgeText({ tabId: ${tab} })`)
  /** The address of a tab is empty while the browser goes to another one. */
  const addressOf = (tab: number) =>
    attack.browser.inOptions<string>(`return (await chrome.tabs.get(${tab})).url ?? ''`)

  it('E1: by another extension is not under control before the person clicks the icon in it', async () => {
    await attack.use('browser_tabs', { action: 'new', url: `${attack.site}/mine` })
    const mine = await attack.currentTab()
    const foreign = await attack.browser.openTab(`${attack.site}/foreign`)
    await attack.browser.inTarget(
      '/hostile.js',
      `const { groupId } = await chrome.tabs.get(${mine}); await chrome.tabs.group({ tabIds: ${foreign}, groupId })`,
    )
    await waitFor(async () => ((await badgeOf(foreign)) === '?' ? true : undefined), 'the badge')
    expect(await listed()).not.toContain('/foreign')
    expect(await attack.use('browser_tabs', { action: 'select', index: 1 })).toMatch(/^TAB_CLOSED/)
    // It is marked on its next page, too.
    await attack.browser.inTarget(
      '/hostile.js',
      `await chrome.tabs.update(${foreign}, { url: '${attack.site}/foreign?2' })`,
    )
    await waitFor(async () => ((await addressOf(foreign)).endsWith('?2') ? true : undefined), 'the next page')
    await waitFor(async () => ((await badgeOf(foreign)) === '?' ? true : undefined), 'the badge')
    // Out of it and in again is no way in for one that was under control.
    await attack.browser.clickIcon(foreign)
    expect(await listed()).toContain('/foreign')
    expect(await badgeOf(foreign)).not.toBe('?')
    await attack.browser.inTarget(
      '/hostile.js',
      `const { groupId } = await chrome.tabs.get(${foreign})
       await chrome.tabs.ungroup(${foreign})
       await new Promise((resolve) => setTimeout(resolve, 300))
       await chrome.tabs.group({ tabIds: ${foreign}, groupId })`,
    )
    await waitFor(async () => ((await badgeOf(foreign)) === '?' ? true : undefined), 'the badge')
    expect(await listed()).not.toContain('/foreign')
    await attack.browser.inOptions(`await chrome.tabs.remove(${foreign})`)
  })

  it('E1: because the browser opens it beside one is under control only if a page under control has opened it', async () => {
    await attack.use('browser_tabs', { action: 'new', url: `${attack.site}/opener` })
    const mine = await attack.currentTab()
    await attack.browser.inOptions(`await chrome.tabs.update(${mine}, { active: true })`)
    // The browser puts this tab, whose origin is that of the extension, into the group of the active tab.
    const tab = await attack.browser.inOptions<number>(`
      const created = new Promise((resolve) => chrome.tabs.onCreated.addListener(resolve))
      globalThis.opened = open('about:blank')
      const { id, groupId } = await created
      if (groupId !== (await chrome.tabs.get(${mine})).groupId) throw new Error('It is in no group.')
      return id`)
    expect(await listed()).not.toContain('about:blank')
    await attack.evaluate(`() => { open('/by-page') }`)
    await waitFor(async () => ((await listed()).includes('/by-page') ? true : undefined), 'the tab of the page')
    expect(await listed()).not.toContain('about:blank')

    // Even if the person gives it, its origin may not be acted in.
    await attack.browser.clickIcon(tab)
    const index = /^- (\d+):.*\(about:blank\)$/m.exec(await listed())?.[1]
    await attack.use('browser_tabs', { action: 'select', index: Number(index) })
    const steal = `() => opener.chrome.storage.local.get().then((all) => JSON.stringify(all))`
    const stolen = await attack.evaluate(steal)
    expect(stolen).not.toContain(TOKEN)
    expect(stolen).toMatch(/^PAGE_NOT_ALLOWED .*chrome-extension:/)
    expect(await attack.use('browser_snapshot')).toMatch(/^PAGE_NOT_ALLOWED/)
    expect(await attack.use('browser_press_key', { key: 'a' })).toMatch(/^PAGE_NOT_ALLOWED/)
    await attack.browser.inOptions(`opened.close()`)
  })
})

it('E1: nothing runs in an error page, which is one of the browser, and a tab can leave it', async () => {
  await attack.use('browser_tabs', { action: 'new', url: 'http://127.0.0.1:1/' })
  for (const [tool, args] of [
    ['browser_evaluate', { function: '() => typeof errorPageController' }],
    ['browser_snapshot', {}],
    ['browser_click', { target: 'body' }],
    ['browser_press_key', { key: 'Enter' }],
  ] as const) {
    expect(await attack.use(tool, args), tool).toMatch(/^PAGE_NOT_ALLOWED .*chrome-error:/)
  }
  expect(await attack.use('browser_navigate', { url: `${attack.site}/left` })).toContain('/left')
})

it.each(['about:blank#x', 'about:blank?x'])('survives the address %s', async (url) => {
  await attack.use('browser_tabs', { action: 'new' })
  expect(await attack.use('browser_navigate', { url })).toMatch(/^PAGE_NOT_ALLOWED/)
  expect(await attack.use('browser_tabs', { action: 'new', url })).toMatch(/^PAGE_NOT_ALLOWED/)
  expect(await attack.use('browser_navigate', { url: 'about:blank' })).toContain('Page URL: about:blank')
})

it('E1: never acts in its own pages, however often a tab goes back to them while it is asked', async () => {
  const options = `${EXTENSION_ORIGIN}/options/options.html?race`
  const { browser, site } = attack
  const tab = await browser.openTab(options)
  await browser.inOptions(`await chrome.tabs.update(${tab}, { url: '${site}/later' })`)
  await waitFor(async () => {
    const { targetInfos } = await browser.devtools.send('Target.getTargets')
    return targetInfos.some(({ url }) => url === `${site}/later`) ? true : undefined
  }, 'the page')
  await browser.clickIcon(tab)
  for (let delay = 0; delay < 60; delay += 3) {
    await waitFor(async () => {
      const line = (await attack.use('browser_tabs', { action: 'list' }))
        .split('\n')
        .find((one) => one.endsWith('/later)'))
      const index = /^- (\d+):/.exec(line ?? '')?.[1]
      if (index === undefined) return undefined
      await attack.use('browser_tabs', { action: 'select', index: Number(index) })
      return true
    }, 'the tab')
    await attack.evaluate(`() => { setTimeout(() => history.back(), ${delay}) }`)
    const seen = await attack.evaluate('() => typeof chrome.storage')
    expect(seen).not.toContain('"object"')
    await browser.inOptions(`await chrome.tabs.update(${tab}, { url: '${site}/later' })`)
  }
  await browser.inOptions(`await chrome.tabs.remove(${tab})`)
})
