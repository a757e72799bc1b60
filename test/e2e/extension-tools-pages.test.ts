/** The tools of the browser extension that move between pages, and what pages do by themselves, in a real Chromium. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openToolBrowser, refIn, type ToolBrowser } from '../support/tool-pages.js'

let browser: ToolBrowser
beforeAll(async () => {
  browser = await openToolBrowser({ actionMs: 2000, waitMs: 1500, loadMs: 1000 })
})
afterAll(() => browser.close())

describe('navigation', () => {
  it('goes to an address and back, and says where it is', async () => {
    browser.serve('/a', '<title>A</title>')
    browser.serve('/b', '<title>B</title>')
    await browser.use('browser_navigate', { url: browser.address('/a') })
    const text = await browser.use('browser_navigate', { url: browser.address('/b').replace('http://', '') })
    expect(text).toBe(`### Page\n- Page URL: ${browser.address('/b')}\n- Page Title: B`)
    expect(await browser.use('browser_navigate_back')).toContain('Page Title: A')
  })

  it.each([
    ['http://127.0.0.1:1/', 'NAVIGATION_FAILED', 'net::ERR_'],
    ['chrome://settings', 'PAGE_NOT_ALLOWED', 'address begins with chrome:'],
    ['javascript:alert(1)', 'PAGE_NOT_ALLOWED', 'browser_evaluate'],
    ['http://', 'INVALID_ARGUMENTS', 'arguments.url'],
  ])('refuses %s', async (url, code, words) => {
    const outcome = await browser.call('browser_navigate', { url })
    expect(outcome.code).toBe(code)
    expect(outcome.text).toContain(words)
  })

  it('stops at once when the command is cancelled', async () => {
    await browser.show('here')
    const gone = new Promise<void>((resolve) => {
      browser.serve('/never', (_request, response) => void response.once('close', resolve))
    })
    const cancelling = new AbortController()
    const going = browser.call('browser_navigate', { url: browser.address('/never') }, cancelling.signal)
    setTimeout(() => cancelling.abort(new Error('cancelled')), 100)
    await expect(going).rejects.toThrow('cancelled')
    await gone
    expect(await browser.value('document.body.textContent')).toBe('here')
  })

  it('gives up on an address that does not answer', async () => {
    const hasty = await openToolBrowser({ navigationMs: 200 })
    try {
      hasty.serve('/never', () => undefined)
      const outcome = await hasty.call('browser_navigate', { url: hasty.address('/never') })
      expect(outcome).toMatchObject({ code: 'NAVIGATION_FAILED' })
      expect(outcome.text).toContain('did not answer within 0.2 s')
    } finally {
      await hasty.close()
    }
  })

  it('waits for the page that a click opens, and says when it is still loading', async () => {
    browser.serve('/slow', (_request, response) => void setTimeout(() => response.end('<title>Slow</title>'), 400))
    browser.serve('/endless', (_request, response) => void response.write('<title>Endless</title><p>begun'))
    await browser.show('<a id=s href=/slow>slow</a> <a id=e href=/endless>endless</a>')
    expect(await browser.use('browser_click', { target: '#s' })).toContain('Page Title: Slow')
    await browser.use('browser_navigate_back')
    expect(await browser.use('browser_click', { target: '#e' })).toContain('- The page is still loading.')
  })

  it('waits for what a click fetches', async () => {
    browser.serve('/data', (_request, response) => void setTimeout(() => response.end('fetched'), 300))
    await browser.show(
      `<button onclick="fetch('/data').then((r) => r.text()).then((t) => (document.title = t))">Fetch</button>`,
    )
    expect(await browser.use('browser_click', { target: 'button' })).toContain('Page Title: fetched')
  })

  it('waits for the page that a click opens in a frame', async () => {
    browser.serve('/framed', '<a href=/later>later</a>')
    browser.serve('/later', (_request, response) => void setTimeout(() => response.end('<h1>Later</h1>'), 300))
    await browser.show('<iframe src=/framed></iframe>')
    await browser.use('browser_click', { target: refIn(await browser.use('browser_snapshot'), '"later"') })
    expect(await browser.use('browser_snapshot')).toContain('heading "Later"')
  })

  it('names the file that a click or an address downloads', async () => {
    browser.serve('/file', (_request, response) => {
      response.setHeader('content-disposition', 'attachment; filename="report.csv"').end('a,b')
    })
    await browser.show('<a href=/file>file</a>')
    expect(await browser.use('browser_click', { target: 'a' })).toContain('### Downloads\n- report.csv')
    const text = await browser.use('browser_navigate', { url: browser.address('/file') })
    expect(text).toContain('still shows the same page')
    expect(text).toContain('- report.csv')
  })

  it('goes along with a page that navigates itself', async () => {
    browser.serve('/next', '<title>Next</title><p>arrived')
    await browser.show(`<p>leaving</p><script>setTimeout(() => (location = '/next'), 300)</script>`)
    expect(await browser.use('browser_wait_for', { text: 'Arrived' })).toContain('Page Title: Next')
    await browser.show('<p>here</p>')
    const { code } = await browser.call('browser_evaluate', {
      function: `() => { location = '/next'; return new Promise(() => undefined) }`,
    })
    expect(code).toBe('PAGE_NAVIGATED')
    expect(await browser.use('browser_snapshot')).toContain('arrived')
  })

  it('waits for a text to come and to go, and for a time', async () => {
    await browser.show(`<p id=p>Loading</p><div id=h></div><script>
      setTimeout(() => { p.textContent = ''; h.attachShadow({ mode: 'open' }).innerHTML = '<b>All   done</b>' }, 300)</script>`)
    expect(await browser.use('browser_wait_for', { textGone: 'loading', text: 'all done' })).toContain(
      'no longer shows "loading"',
    )
    expect(await browser.use('browser_wait_for', { time: 0.05 })).toContain('Waited for 0.05 s')
    expect(await browser.call('browser_wait_for', { text: 'never' })).toMatchObject({ code: 'WAIT_TIMEOUT' })
    expect(await browser.call('browser_wait_for')).toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })
})

it('says that the page crashed, and goes to another', async () => {
  await browser.show('<p>fragile</p>')
  const { debuggee } = await browser.tabs.current(new AbortController().signal)
  const waiting = browser.call('browser_wait_for', { text: 'never' })
  debuggee.send('Page.crash').catch(() => undefined)
  expect(await waiting).toMatchObject({ code: 'PAGE_CRASHED' })
  expect(await browser.call('browser_snapshot')).toMatchObject({ code: 'PAGE_CRASHED' })
  await browser.show('<p>whole</p>')
  expect(await browser.use('browser_snapshot')).toContain('whole')
})

describe('dialogs', () => {
  it('ends the click that opens one, and holds the other tools until it is answered', async () => {
    await browser.show(
      `<button onclick="document.title = [alert('Hi'), confirm('Sure?'), prompt('Name', 'Ann')].join()">Ask</button>`,
    )
    expect(await browser.use('browser_click', { target: 'button' })).toContain('shows a dialog (alert): "Hi"')
    for (const [tool, args] of [
      ['browser_snapshot', {}],
      ['browser_evaluate', { function: '1' }],
    ] as const) {
      expect(await browser.call(tool, args)).toMatchObject({ code: 'DIALOG_OPEN' })
    }
    expect(await browser.use('browser_console_messages')).toContain('No messages')
    expect(await browser.use('browser_handle_dialog', { accept: true })).toContain('(confirm): "Sure?"')
    expect(await browser.use('browser_handle_dialog', { accept: false })).toContain(
      '(prompt): "Name". The suggested answer is "Ann"',
    )
    const end = await browser.use('browser_handle_dialog', { accept: true, promptText: 'Bea' })
    expect(end).toContain('Page Title: ,false,Bea')
    expect(await browser.call('browser_handle_dialog', { accept: true })).toMatchObject({ code: 'NO_DIALOG' })
  })

  it('asks before it leaves a page that asks', async () => {
    browser.serve('/left', '<title>Left</title>')
    await browser.show(`<input><script>addEventListener('beforeunload', (event) => event.preventDefault())</script>`)
    await browser.use('browser_type', { target: 'input', text: 'unsaved' })
    const asked = await browser.use('browser_navigate', { url: browser.address('/left') })
    expect(asked).toContain('The page asks whether to leave it')
    expect(await browser.use('browser_handle_dialog', { accept: false })).not.toContain('Left')
    await browser.use('browser_navigate', { url: browser.address('/left') })
    expect(await browser.use('browser_handle_dialog', { accept: true })).toContain('Page Title: Left')
  })

  it('asks also before it leaves or closes a page that shows another dialog', async () => {
    browser.serve('/left', '<title>Left</title>')
    await browser.use('browser_tabs', { action: 'new' })
    await browser.show(
      `<button onclick="alert('One'); alert('Two')">Go</button>
      <script>addEventListener('beforeunload', (event) => event.preventDefault())</script>`,
    )
    for (const [tool, args] of [
      ['browser_navigate', { url: browser.address('/left') }],
      ['browser_tabs', { action: 'close' }],
    ] as const) {
      await browser.use('browser_click', { target: 'button' })
      const asked = await browser.use(tool, args)
      expect(asked).toContain('"One". It was dismissed')
      expect(asked).toContain('The page asks whether to leave it')
      expect(await browser.call(tool, args)).toMatchObject({ code: 'DIALOG_OPEN' })
      await browser.use('browser_handle_dialog', { accept: false })
    }
    await browser.use('browser_navigate', { url: browser.address('/left') })
    expect(await browser.use('browser_handle_dialog', { accept: true })).toContain('Page Title: Left')
    await browser.use('browser_tabs', { action: 'close' })
  })

  it('lets no tool hang that works when one opens', async () => {
    await browser.show(`<script>setTimeout(() => alert('Late'), 400)</script>`)
    // It looks for the element until there is one.
    expect(await browser.call('browser_snapshot', { target: '#missing' })).toMatchObject({ code: 'DIALOG_OPEN' })
    await browser.use('browser_handle_dialog', { accept: true })
  })

  it('says that a script opened one', async () => {
    await browser.show('')
    const text = await browser.use('browser_evaluate', { function: `() => confirm('From a script')` })
    expect(text).toContain('From a script')
    expect(text).not.toContain('### Result')
    await browser.use('browser_handle_dialog', { accept: true })
  })
})

describe('tabs', () => {
  // A test that failed may have left a tab, whose page may ask before it is closed.
  beforeEach(async () => {
    await browser.call('browser_handle_dialog', { accept: true })
    while ((await browser.use('browser_tabs', { action: 'list' })).includes('\n- 1: ')) {
      await browser.call('browser_tabs', { action: 'close', index: 1 })
      await browser.call('browser_handle_dialog', { accept: true })
    }
  })

  it('opens, lists, selects and closes them', async () => {
    browser.serve('/tab', '<title>Second</title>')
    await browser.show('first')
    const opened = await browser.use('browser_tabs', { action: 'new', url: browser.address('/tab') })
    expect(opened).toMatch(/- 0: \[Page \d+\]\(.*\n- 1: \(current\) \[Second\]/)
    await browser.use('browser_tabs', { action: 'select', index: 0 })
    expect(await browser.use('browser_snapshot')).toContain('first')
    expect(await browser.use('browser_tabs', { action: 'close', index: 1 })).not.toContain('Second')
    expect(await browser.call('browser_tabs', { action: 'select', index: 7 })).toMatchObject({ code: 'TAB_CLOSED' })
    expect(await browser.call('browser_tabs', { action: 'select' })).toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  it('names the tab that a click opens', async () => {
    browser.serve('/popup', '<title>Popup</title>')
    await browser.show('<a target=_blank href=/popup>open</a>')
    expect(await browser.use('browser_click', { target: 'a' })).toContain(
      `### New tabs\n- 1: ${browser.address('/popup')}`,
    )
    await browser.use('browser_tabs', { action: 'close', index: 1 })
  })

  it('takes no ref of one tab for an element of another', async () => {
    await browser.show('<button>One</button>')
    const ref = refIn(await browser.use('browser_snapshot'), 'One')
    await browser.use('browser_tabs', { action: 'new' })
    expect(await browser.call('browser_click', { target: ref })).toMatchObject({ code: 'REF_GONE' })
    await browser.use('browser_tabs', { action: 'close' })
    expect(await browser.use('browser_click', { target: ref })).toContain('One')
  })

  it('fails with the reason when the tab is closed or taken back while a command waits', async () => {
    await browser.use('browser_tabs', { action: 'new' })
    const waiting = browser.call('browser_wait_for', { time: 20 })
    setTimeout(() => void browser.value('window.close()').catch(() => undefined), 100)
    expect(await waiting).toMatchObject({ code: 'TAB_CLOSED' })
    const taken = browser.call('browser_wait_for', { text: 'never' })
    setTimeout(() => void browser.tabs.takeBack(), 100)
    expect(await taken).toMatchObject({ code: 'CONTROL_TAKEN' })
    expect(await browser.use('browser_snapshot')).toContain('### Snapshot')
  })
})
