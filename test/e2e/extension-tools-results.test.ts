/** What the tools of the browser extension return of large, broken and hostile pages, in a real Chromium. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PNG } from 'pngjs'
import { describeTool } from '../../src/protocol/instance-tools.js'
import { createBrowserTools } from '../../src/client/extension/tools/index.js'
import { openToolBrowser, refIn, type ToolBrowser } from '../support/tool-pages.js'

let browser: ToolBrowser
beforeAll(async () => {
  browser = await openToolBrowser()
})
afterAll(() => browser.close())

const bytesOf = (text: string): number => new TextEncoder().encode(text).length

describe('browser_snapshot', () => {
  it('describes a page as a tree', async () => {
    await browser.show(`<h1>Shop</h1><nav><a href="#x">Home</a></nav><ul><li>one<li>two <b>bold</b></ul>
      <label>Mail <input type=email value="a@b.c"></label><label><input type=checkbox checked>News</label>
      <button aria-expanded=false disabled>Menu</button><img alt=Logo><p hidden>secret</p><input type=password value=pw aria-label=Key>`)
    const snapshot = (await browser.use('browser_snapshot')).replace(/ \[ref=e\d+\]/g, '')
    expect(snapshot).toContain(`\`\`\`yaml
- heading "Shop" [level=1]
- navigation:
  - link "Home":
    - /url: ${String(await browser.value('location.href'))}#x
- list:
  - listitem: one
  - listitem: two bold
- text: Mail
- textbox "Mail": a@b.c
- checkbox "News" [checked]
- button "Menu" [disabled] [collapsed]
- img "Logo"
- textbox "Key": ••
\`\`\``)
  })

  it('describes a part, and as many levels as wanted', async () => {
    await browser.show('<main><ul><li><b>deep</b> <button>x</button></ul></main><p>other</p>')
    const main = refIn(await browser.use('browser_snapshot'), 'main')
    const part = await browser.use('browser_snapshot', { target: main })
    expect(part).toContain('deep')
    expect(part).not.toContain('other')
    expect(await browser.use('browser_snapshot', { target: 'main', depth: 2 })).not.toContain('deep')
  })

  it('cuts the snapshot of 10,000 nodes, and says how to see the rest', async () => {
    await browser.show(`<script>for (let i = 0; i < 5000; i++) document.body.append(Object.assign(document.createElement('button'), { textContent: 'Button ' + i }))</script>
      <section aria-label=End><button onclick="document.title='end'">Last</button></section>`)
    const snapshot = await browser.use('browser_snapshot')
    expect(bytesOf(snapshot)).toBeLessThan(132 * 1024)
    expect(snapshot).toMatch(/The snapshot is cut: \d+ more lines/)
    const part = await browser.use('browser_snapshot', { target: 'section' })
    expect(await browser.use('browser_click', { target: refIn(part, 'Last') })).toContain('Page Title: end')
  })
})

describe('browser_evaluate', () => {
  it('returns JSON of values, promises, elements and expressions', async () => {
    await browser.show('<p id=p>text</p>')
    const resultOf = async (source: string, target?: string) =>
      /### Result\n([^]*?)\n### /.exec(
        await browser.use('browser_evaluate', { function: source, ...(target && { target }) }),
      )?.[1]
    expect(await resultOf('async () => ({ a: [1, null] })')).toBe('{\n  "a": [\n    1,\n    null\n  ]\n}')
    expect(await resultOf('document.title')).toMatch(/^"Page \d+"$/)
    expect(await resultOf('() => {}')).toBe('undefined')
    expect(await resultOf('(element) => element.textContent', '#p')).toBe('"text"')
  })

  it.each([
    [`() => { throw new TypeError('broken') }`, 'PAGE_ERROR', /^TypeError: broken\n +at /],
    [`() => Promise.reject('words')`, 'PAGE_ERROR', /^Thrown: words$/],
    ['() => {', 'PAGE_ERROR', /^SyntaxError: /],
    ['() => nowhere', 'PAGE_ERROR', /^ReferenceError: nowhere is not defined/],
    ['() => { const a = {}; a.a = a; return a }', 'RESULT_NOT_JSON', /circular/],
    ['() => 1n', 'RESULT_NOT_JSON', /BigInt/],
    [`() => 'x'.repeat(5_000_000)`, 'RESULT_TOO_LARGE', /has 5000002 characters of JSON; at most 100000/],
  ])('%s fails with %s', async (source, code, words) => {
    const outcome = await browser.call('browser_evaluate', { function: source })
    expect(outcome.code).toBe(code)
    expect(outcome.text).toMatch(words)
  })

  it('ends a script that does not end when the command is cancelled', async () => {
    await browser.show('<p>alive</p>')
    const cancelling = new AbortController()
    const running = browser.call('browser_evaluate', { function: '() => { for (;;); }' }, cancelling.signal)
    setTimeout(() => cancelling.abort(new Error('cancelled')), 100)
    await expect(running).rejects.toThrow('cancelled')
    expect(await browser.use('browser_snapshot')).toContain('alive')
  })

  it('is not misled by a page that redefines what scripts use', async () => {
    await browser.show(`<button onclick="document.title='real'">Pay</button><script>
      Element.prototype.getClientRects = () => [{ left: 5, top: 5, right: 6, bottom: 6, width: 1, height: 1 }]
      Document.prototype.elementFromPoint = () => null; document.querySelectorAll = () => []; JSON.stringify = () => 7; window.Promise = null</script>`)
    expect(await browser.use('browser_click', { target: 'button' })).toContain('Page Title: real')
    expect(await browser.call('browser_evaluate', { function: '1' })).toMatchObject({ code: 'RESULT_NOT_JSON' })
  })
})

describe('browser_take_screenshot', () => {
  const sizeOf = (image: string | undefined) => PNG.sync.read(Buffer.from(image ?? '', 'base64'))

  it('shows the window, the page or an element', async () => {
    await browser.show(
      `<div style="height:3000px"></div><b id=e style="display:block;width:50px;height:40px;background:rgb(1,2,3)"></b>`,
    )
    const { width, height } = sizeOf((await browser.call('browser_take_screenshot')).image)
    expect([width, height]).toEqual([
      await browser.value('document.documentElement.clientWidth'),
      await browser.value('innerHeight'),
    ])
    const whole = await browser.call('browser_take_screenshot', { fullPage: true })
    expect(whole.text).toMatch(/scaled to \d\d %/)
    expect(sizeOf(whole.image).height).toBe(2000)
    const element = sizeOf((await browser.call('browser_take_screenshot', { target: '#e' })).image)
    expect([element.width, element.height]).toEqual([50, 40])
    expect([...element.data.subarray(0, 3)]).toEqual([1, 2, 3])
    const both = await browser.call('browser_take_screenshot', { target: '#e', fullPage: true })
    expect(both).toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  it('has a pixel for each CSS pixel, also on a finer screen', async () => {
    await browser.show('<b id=e style="display:block;width:50px;height:40px"></b>')
    const { debuggee } = await browser.tabs.current(new AbortController().signal)
    const finer = { width: 500, height: 400, deviceScaleFactor: 2, mobile: false }
    await debuggee.send('Emulation.setDeviceMetricsOverride', finer)
    const { width, height } = sizeOf((await browser.call('browser_take_screenshot', { target: '#e' })).image)
    await debuggee.send('Emulation.clearDeviceMetricsOverride')
    expect([width, height]).toEqual([50, 40])
  })

  it('is scaled down until it fits into a result', async () => {
    await browser.show(`<canvas id=c width=800 height=800></canvas><script>
      const g = c.getContext('2d'), d = g.createImageData(800, 800)
      for (let i = 0; i < d.data.length; i += 65536) crypto.getRandomValues(d.data.subarray(i, Math.min(i + 65536, d.data.length)))
      for (let i = 3; i < d.data.length; i += 4) d.data[i] = 255
      g.putImageData(d, 0, 0)</script>`)
    const { image, text } = await browser.call('browser_take_screenshot', { target: '#c' })
    expect(image?.length).toBeLessThan(900_001)
    expect(text).toMatch(/scaled to \d\d %/)
  })
})

describe('what a page logs and requests', () => {
  it('lists messages by level, with objects and exceptions', async () => {
    await browser.show(`<script>console.log('hello', { a: 1, b: 'x' }, [1, 2]); console.warn('careful'); console.debug('detail')
      setTimeout(() => { throw new Error('late') })</script>`)
    await browser.use('browser_wait_for', { time: 0.1 })
    const info = await browser.use('browser_console_messages')
    expect(info).toContain('[INFO] hello {a: 1, b: "x"} [1, 2] @ http')
    expect(info).toContain('[WARNING] careful')
    expect(info).toContain('[ERROR] Error: late\n')
    expect(info).not.toContain('detail')
    expect(await browser.use('browser_console_messages', { level: 'debug' })).toContain('[DEBUG] detail')
    expect(await browser.use('browser_console_messages', { level: 'error' })).not.toContain('careful')
    await browser.show('')
    expect(await browser.use('browser_console_messages')).toContain('No messages.')
    expect(await browser.use('browser_console_messages', { all: true })).toContain('careful')
  })

  it('keeps a bounded number of messages', async () => {
    await browser.show(
      `<script>for (let i = 0; i < 1500; i++) console.log('message ' + i + ' ' + 'x'.repeat(500))</script>`,
    )
    const text = await browser.use('browser_console_messages', { all: true })
    expect(bytesOf(text)).toBeLessThan(132 * 1024)
    expect(text).toContain('message 1499')
    expect(text).toMatch(/\d+ earlier messages are no longer kept/)
  })

  it('lists the requests of the page', async () => {
    browser.serve('/api?q=1', '{}')
    browser.serve('/style.css', (_request, response) => response.setHeader('content-type', 'text/css').end('p{}'))
    await browser.show(`<link rel=stylesheet href=/style.css><script>
      fetch('/api?q=1', { method: 'POST' }); fetch('/missing'); fetch('http://127.0.0.1:1/').catch(() => 0)</script>`)
    await browser.use('browser_wait_for', { time: 0.2 })
    const text = await browser.use('browser_network_requests')
    expect(text).toContain(`[POST] ${browser.address('/api?q=1')} => [200] OK`)
    expect(text).toContain(`${browser.address('/missing')} => [404] Not Found`)
    expect(text).toMatch(/127\.0\.0\.1:1\/ => \[failed\] /)
    expect(text).not.toContain('style.css')
    expect(text).toContain('1 request(s) for static files are hidden. Pass static: true to see them.')
    const onlyStatic = await browser.use('browser_network_requests', { filter: 'style' })
    expect(onlyStatic).toContain('1 request(s) for static files are hidden.')
    expect(onlyStatic).not.toContain('No requests.')
    expect(await browser.use('browser_network_requests', { static: true })).toContain('style.css')
    const filtered = await browser.use('browser_network_requests', { filter: 'api\\?' })
    expect(filtered).not.toContain('missing')
    expect(await browser.call('browser_network_requests', { filter: '(' })).toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })
})

describe('arguments', () => {
  it.each([
    ['browser_click', {}, 'arguments.target: got undefined, expected a string'],
    ['browser_click', { target: 'a', ref: 'e1' }, 'arguments.ref: got "e1", expected a known field'],
    [
      'browser_click',
      { target: 'a', button: 'side' },
      'arguments.button: got "side", expected one of "left", "right", "middle"',
    ],
    ['browser_wait_for', { time: 31 }, 'arguments.time: got 31, expected at most 30'],
    ['browser_tabs', { action: 'list', index: -1 }, 'arguments.index: got -1, expected at least 0'],
  ])('%s refuses %j', async (tool, args, words) => {
    const outcome = await browser.call(tool, args)
    expect(outcome.code).toBe('INVALID_ARGUMENTS')
    expect(outcome.text).toContain(words)
  })

  it('are described by JSON schemas', () => {
    const tools = createBrowserTools(browser.tabs).map(describeTool)
    expect(tools).toHaveLength(15)
    for (const { inputSchema, description } of tools) {
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
      expect(description).toBeDefined()
    }
  })
})
