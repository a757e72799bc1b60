/** The tools of the browser extension that use mouse and keyboard, in a real Chromium. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openToolBrowser, refIn, type ToolBrowser } from '../support/tool-pages.js'

let browser: ToolBrowser
beforeAll(async () => {
  browser = await openToolBrowser({ actionMs: 300 })
})
afterAll(() => browser.close())

/** Notes every event of these types with what a script cannot make up. */
const noting = (types: string): string => `<script>
  var seen = []
  for (const type of ${JSON.stringify(types.split(' '))}) addEventListener(type, (event) => seen.push([type, event.isTrusted]), true)
</script>`

describe('the mouse', () => {
  it('clicks as a person does: with real events, in their order', async () => {
    await browser.show(`<button>Save</button>${noting('pointermove mousedown mouseup click')}`)
    const text = await browser.use('browser_click', { target: refIn(await browser.use('browser_snapshot'), '"Save"') })
    expect(text).toContain('Clicked <button> "Save".')
    const seen = (await browser.value('seen')) as unknown[]
    expect(seen.slice(-3)).toEqual([['mousedown', true], ['mouseup', true], ['click', true]]) // prettier-ignore
    expect(seen).toContainEqual(['pointermove', true])
  })

  it('clicks with another button, twice, and with keys held', async () => {
    await browser.show(`<div id=d>area</div><script>
      var seen = []
      for (const type of ['contextmenu', 'auxclick', 'dblclick', 'click'])
        d.addEventListener(type, (e) => seen.push([type, e.button, e.ctrlKey, e.shiftKey]))
    </script>`)
    await browser.use('browser_click', { target: '#d', button: 'right' })
    await browser.use('browser_click', { target: '#d', button: 'middle' })
    await browser.use('browser_click', { target: '#d', doubleClick: true })
    await browser.use('browser_click', { target: '#d', modifiers: ['ControlOrMeta', 'Shift'] })
    const seen = (await browser.value('seen')) as [string, ...unknown[]][]
    expect(seen).toContainEqual(['contextmenu', 2, false, false])
    expect(seen).toContainEqual(['auxclick', 1, false, false])
    expect(seen.filter(([type]) => type === 'dblclick')).toHaveLength(1)
    expect(seen.at(-1)).toEqual(['click', 0, true, true])
  })

  it('hovers', async () => {
    await browser.show(
      '<style>#m{display:none} #h:hover #m{display:block}</style><div id=h>menu<b id=m>entry</b></div>',
    )
    await browser.use('browser_hover', { target: '#h' })
    expect(await browser.use('browser_snapshot')).toContain('entry')
  })

  it('scrolls to an element, also in a container', async () => {
    await browser.show(`<div style="height:100px;overflow:auto"><div style="height:3000px"></div>
      <button onclick="this.textContent='hit'">Deep</button></div><div style="height:5000px"></div><a href="#" onclick="document.title='hit'">Far</a>`)
    await browser.use('browser_click', { target: 'button' })
    expect(await browser.value(`document.querySelector('button').textContent`)).toBe('hit')
    expect(await browser.use('browser_click', { target: 'a' })).toContain('Page Title: hit')
  })

  it('names what covers an element, and waits for it to go', async () => {
    await browser.show(
      `<button>Buy</button><div id=banner class=cookies style="position:fixed;inset:0">We use cookies</div>`,
    )
    const { code, text } = await browser.call('browser_click', { target: 'button' })
    expect(code).toBe('ELEMENT_COVERED')
    expect(text).toContain('<button> "Buy") is covered by <div id="banner" class="cookies"> "We use cookies"')
    await browser.value('void setTimeout(() => banner.remove(), 150)')
    expect(await browser.use('browser_click', { target: 'button' })).toContain('Clicked')
  })

  it('clicks the part of an element that is not covered, and a label for its field', async () => {
    await browser.show(`<button style="width:200px;height:80px" onclick="document.title='half'">Half</button>
      <div style="position:absolute;left:8px;top:40px;width:300px;height:30px;background:red">over</div>
      <label style="position:absolute;top:200px">Agree <input type=checkbox style="pointer-events:none"></label>`)
    expect(await browser.use('browser_click', { target: 'button' })).toContain('Page Title: half')
    await browser.use('browser_click', { target: 'input' })
    expect(await browser.value(`document.querySelector('input').checked`)).toBe(true)
  })

  it('does not click what a person could not', async () => {
    await browser.show(`<button id=off disabled>Go</button><fieldset disabled><button id=inside>Go</button></fieldset>
      <button id=aria aria-disabled=true>Go</button><button id=none style="display:none">Go</button>
      <button id=hidden style="visibility:hidden">Go</button><button id=left style="position:fixed;left:-500px">Go</button>`)
    const outcomes = [
      ['#off', 'ELEMENT_DISABLED', 'is disabled'],
      ['#inside', 'ELEMENT_DISABLED', 'is disabled'],
      ['#aria', 'ELEMENT_DISABLED', 'is disabled'],
      ['#none', 'ELEMENT_INVISIBLE', 'is not visible'],
      ['#hidden', 'ELEMENT_INVISIBLE', 'is not visible'],
      ['#left', 'ELEMENT_INVISIBLE', 'cannot be scrolled'],
      ['a', 'ELEMENT_NOT_FOUND', 'No element matches "a"'],
      ['button', 'ELEMENT_AMBIGUOUS', '6 elements match'],
      ['<', 'INVALID_ARGUMENTS', 'neither a ref nor a CSS selector'],
    ] as const
    for (const [target, code, words] of outcomes) {
      const outcome = await browser.call('browser_click', { target })
      expect(outcome, target).toMatchObject({ code })
      expect(outcome.text).toContain(words)
    }
  })

  it('waits for an element that moves', async () => {
    await browser.show(`<button style="position:absolute;width:6px;padding:0;border:0;animation:m .25s linear" onclick="document.title='hit'">Go</button>
      <style>@keyframes m{from{left:0}to{left:600px}}</style>`)
    expect(await browser.use('browser_click', { target: 'button' })).toContain('Page Title: hit')
  })

  it('says that a ref is gone when its element or its page is, and never takes another for it', async () => {
    await browser.show('<button onclick="this.replaceWith(this.cloneNode(true))">Once</button>')
    const ref = refIn(await browser.use('browser_snapshot'), 'Once')
    await browser.use('browser_click', { target: ref })
    expect(await browser.call('browser_click', { target: ref })).toMatchObject({ code: 'REF_GONE' })
    const next = refIn(await browser.use('browser_snapshot'), 'Once')
    expect(next).not.toBe(ref)
    await browser.show('<button>Once</button>')
    expect(await browser.call('browser_click', { target: next })).toMatchObject({ code: 'REF_GONE' })
    expect(await browser.call('browser_click', { target: 'e999999' })).toMatchObject({ code: 'ELEMENT_NOT_FOUND' })
  })

  it('takes no element of another site for one of an earlier page', async () => {
    browser.serve('/numbered', '<button>Same</button>')
    const at = (site: string): string => browser.address('/numbered').replace('127.0.0.1', site)
    await browser.use('browser_navigate', { url: at('one.test') })
    const ref = refIn(await browser.use('browser_snapshot'), 'Same')
    await browser.use('browser_navigate', { url: at('two.test') })
    expect(await browser.call('browser_click', { target: ref })).toMatchObject({ code: 'REF_GONE' })
  })

  it('keeps a ref while its element stays', async () => {
    await browser.show('<button onclick="document.body.append(document.createElement(`hr`))">More</button>')
    const ref = refIn(await browser.use('browser_snapshot'), 'More')
    await browser.use('browser_click', { target: ref })
    expect(refIn(await browser.use('browser_snapshot'), 'More')).toBe(ref)
  })
})

describe('the keyboard', () => {
  it('fills a form and submits it', async () => {
    await browser.show(`<form action="/answer"><label>Name <input name=n value=old></label>
      <label>Text <textarea name=t></textarea></label><input type=checkbox name=c></form>`)
    browser.serve('/answer?n=Gr%C3%BC%C3%9Fe+%F0%9F%8E%89&t=two%0D%0Alines&c=on', '<title>Answer</title>')
    const snapshot = await browser.use('browser_snapshot')
    await browser.use('browser_type', { target: refIn(snapshot, '"Text"'), text: 'two\nlines' })
    await browser.use('browser_click', { target: 'input[type=checkbox]' })
    const text = await browser.use('browser_type', {
      target: refIn(snapshot, '"Name"'),
      text: 'Grüße 🎉',
      submit: true,
    })
    expect(text).toContain('Page Title: Answer')
  })

  it('types slowly with the keys of each character, after what is there', async () => {
    await browser.show(`<input value="a"><script>var keys = []
      document.querySelector('input').addEventListener('keydown', (e) => keys.push(e.key + ' ' + e.code))</script>`)
    await browser.use('browser_type', { target: 'input', text: 'B2ü', slowly: true })
    expect(await browser.value('keys')).toEqual(['B KeyB', '2 Digit2', 'ü '])
    expect(await browser.value(`document.querySelector('input').value`)).toBe('aB2ü')
    await browser.use('browser_type', { target: 'input', text: '' })
    expect(await browser.value(`document.querySelector('input').value`)).toBe('')
  })

  it('presses keys with others held', async () => {
    await browser.show('<input id=i value="one two"><input id=j>')
    await browser.use('browser_click', { target: '#i' })
    await browser.use('browser_press_key', { key: 'ControlOrMeta+a' })
    await browser.use('browser_press_key', { key: 'Delete' })
    expect(await browser.value('i.value')).toBe('')
    await browser.use('browser_press_key', { key: 'Shift+x' })
    await browser.use('browser_press_key', { key: 'é' })
    await browser.use('browser_press_key', { key: '+' })
    expect(await browser.value('i.value')).toBe('Xé+')
    await browser.use('browser_press_key', { key: 'Tab' })
    expect(await browser.value('document.activeElement.id')).toBe('j')
    expect(await browser.call('browser_press_key', { key: 'Hyper+a' })).toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  it('writes into what is editable, and says what is not', async () => {
    await browser.show(`<div contenteditable>old <b>text</b></div><input id=ro readonly><input id=off disabled>
      <input id=date type=date><button>b</button>`)
    await browser.use('browser_type', { target: '[contenteditable]', text: 'new' })
    expect(await browser.value(`document.querySelector('[contenteditable]').textContent`)).toBe('new')
    const codeFor = async (target: string) => (await browser.call('browser_type', { target, text: 'x' })).code
    expect(await codeFor('#ro')).toBe('ELEMENT_DISABLED')
    expect(await codeFor('#off')).toBe('ELEMENT_DISABLED')
    expect(await codeFor('#date')).toBe('WRONG_ELEMENT')
    expect(await codeFor('button')).toBe('WRONG_ELEMENT')
    await browser.use('browser_type', { target: '#date', text: '01022030', slowly: true })
    expect(await browser.value('date.value')).toBe('2030-01-02')
  })

  it('selects options by value and by label', async () => {
    await browser.show(`<select id=one onchange="document.title=this.value"><option value=a>Apple<option value=b>Pear<option disabled>Plum</select>
      <select id=many multiple><option selected>x<option>y<option>z</select>`)
    expect(await browser.use('browser_select_option', { target: '#one', values: ['Pear'] })).toContain('Page Title: b')
    await browser.use('browser_select_option', { target: '#many', values: ['y', 'z'] })
    expect(await browser.value('[...many.selectedOptions].map((o) => o.value)')).toEqual(['y', 'z'])
    const codeOf = async (target: string, ...values: string[]) =>
      (await browser.call('browser_select_option', { target, values })).code
    expect(await codeOf('#one', 'Fig')).toBe('ELEMENT_NOT_FOUND')
    expect(await codeOf('#one', 'Plum')).toBe('ELEMENT_DISABLED')
    expect(await codeOf('#one', 'a', 'b')).toBe('WRONG_ELEMENT')
    expect(await codeOf('body', 'a')).toBe('WRONG_ELEMENT')
  })
})

describe('frames and shadow trees', () => {
  const inner = `<title>Inner</title><body style="margin:0"><div style="height:900px"></div>
    <button onclick="this.textContent='done'">Inside</button><input aria-label=Field>`

  it.each([
    ['of the same origin', (address: string) => address],
    ['of another origin', (address: string) => address.replace('127.0.0.1', 'other.test')],
  ])('sees, clicks and fills what is in a frame %s', async (_what, place) => {
    browser.serve('/inner', inner)
    browser.serve(
      '/middle',
      `<p>middle</p><iframe src="/inner" style="margin:11px;border:40px solid;padding:5px"></iframe>`,
    )
    await browser.show(
      `<div style="height:1200px"></div><iframe src="${place(browser.address('/middle'))}" style="width:400px;height:300px"></iframe>`,
    )
    await browser.use('browser_wait_for', { text: 'middle' })
    const snapshot = await browser.use('browser_snapshot')
    expect(snapshot).toMatch(/- iframe .*\n {2}- paragraph .*: middle\n {2}- iframe .*\n {4}- button "Inside"/)
    await browser.use('browser_click', { target: refIn(snapshot, '"Inside"') })
    await browser.use('browser_type', { target: refIn(snapshot, '"Field"'), text: 'typed' })
    const after = await browser.use('browser_snapshot')
    expect(after).toContain('button "done"')
    expect(after).toContain('textbox "Field" [active]')
    expect(after).toContain(': typed')
    const { text } = await browser.call('browser_evaluate', {
      target: refIn(after, '"Field"'),
      function: '(e) => e.ownerDocument.title',
    })
    expect(text).toContain('"Inner"')
    expect((await browser.call('browser_take_screenshot', { target: refIn(after, '"done"') })).image).toBeDefined()
  })

  it('says that a frame is covered in the page around it', async () => {
    browser.serve('/inner', '<button>Inside</button>')
    await browser.show(
      `<iframe src="${browser.address('/inner').replace('127.0.0.1', 'other.test')}"></iframe><div class=veil style="position:fixed;inset:0">veil</div>`,
    )
    await browser.use('browser_wait_for', { text: 'veil' })
    const ref = refIn(await browser.use('browser_snapshot'), 'Inside')
    const { code, text } = await browser.call('browser_click', { target: ref })
    expect(code).toBe('ELEMENT_COVERED')
    expect(text).toContain('class="veil"')
  })

  it('reaches into shadow trees, open and closed', async () => {
    await browser.show(`<div id=a></div><div id=b></div><script>
      for (const [host, mode] of [[a, 'open'], [b, 'closed']]) {
        const root = host.attachShadow({ mode })
        root.innerHTML = mode === 'open' ? '<button><slot></slot> open</button>' : '<slot></slot> <button>closed</button>'
        host.innerHTML = '<b>slotted</b>'
        root.querySelector('button').onclick = () => document.title += ' ' + mode
      }</script>`)
    const snapshot = await browser.use('browser_snapshot')
    await browser.use('browser_click', { target: refIn(snapshot, 'slotted open"') })
    const text = await browser.use('browser_click', { target: refIn(snapshot, '"closed"') })
    expect(text).toMatch(/Page Title: .* open closed/)
  })
})
