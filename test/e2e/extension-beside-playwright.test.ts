/** One task through the browser extension and through Playwright's MCP server, in the same Chromium: what both do, and what each says. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import type { TaskCompleteMessage } from '../../src/client/index.js'
import { command, endOf, evaluated, serveBrowser, textOf } from '../support/browser.js'
import { startExtensionBrowser } from '../support/extension-browser.js'

const FORM = `<!doctype html><title>Order</title><link rel="icon" href="data:,"><h1>Order</h1>
<form action="/sent"><label>Name <input name="name"></label>
<label>Size <select name="size"><option value="s">Small<option value="l">Large</select></label>
<label><input type="checkbox" name="gift">Gift</label><button>Send</button></form>
<div id="menu" style="padding:9px" onmouseover="this.textContent='open'">closed</div>
<script>var keys = ''; addEventListener('keydown', (event) => (keys += event.key)); console.log('ready')</script>`

/** The task, for any page of this address. */
const commandsFor = (url: string) => [
  command('browser_navigate', { url }),
  command('browser_type', { target: 'input[name=name]', text: 'Grüße 🎉' }),
  command('browser_select_option', { target: 'select', values: ['Large'] }),
  command('browser_click', { target: 'input[name=gift]' }),
  command('browser_hover', { target: '#menu' }),
  command('browser_press_key', { key: 'Shift+Tab' }),
  command('browser_wait_for', { text: 'open' }),
  command('browser_snapshot'),
  command('browser_evaluate', {
    function: '() => [document.title, menu.textContent, keys, document.activeElement.name]',
  }),
  command('browser_console_messages'),
  command('browser_take_screenshot'),
  command('browser_click', { target: 'button' }),
  command('browser_wait_for', { text: 'Thank you' }),
  command('browser_network_requests', { static: true }),
  command('browser_navigate_back'),
  command('browser_tabs', { action: 'list' }),
]

async function serveForm() {
  const sent: string[] = []
  const server = createServer((request, response) => {
    const isSent = request.url?.startsWith('/sent') === true
    if (isSent) sent.push(request.url ?? '')
    response.setHeader('content-type', 'text/html; charset=utf-8').end(isSent ? '<title>Sent</title>Thank you' : FORM)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { sent, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

/** Two browsers as two instances of one server: that of the extension, and Playwright's. */
async function openBoth() {
  const extension = await startExtensionBrowser()
  onTestFinished(() => extension.close())
  const { server, client } = await serveBrowser('playwright')
  await extension.connect(server.httpUrl)
  await extension.phase('connected')
  return {
    run: async (instanceId: string, url: string): Promise<TaskCompleteMessage> => {
      const { taskId } = await client.submit({ task_name: 'Order', instanceId, commands: commandsFor(url) })
      return endOf(client.watch(taskId))
    },
  }
}

/** What a snapshot says of roles, names and values. */
const linesOf = (snapshot: string): readonly string[] =>
  [...snapshot.matchAll(/^ *- (heading|textbox|combobox|checkbox|button|option) .*$/gm)].map(([line]) =>
    line.replace(/ \[(ref=\w+|cursor=pointer|active|collapsed)\]/g, '').trim(),
  )

it('does the same as Playwright with the same task', async () => {
  const { run } = await openBoth()
  const { sent, url } = await serveForm()
  const [ours, theirs] = await Promise.all([run('browser', url), run('playwright', url)])
  expect([ours, theirs].map(({ status, error }) => [status, error])).toEqual([
    ['completed', undefined],
    ['completed', undefined],
  ])
  expect(new Set(sent)).toEqual(
    new Set([`/sent?name=${encodeURIComponent('Grüße 🎉').replace('%20', '+')}&size=l&gift=on`]),
  )
  expect(sent).toHaveLength(2)

  const at = (name: string): number => commandsFor(url).findIndex(({ tool_name }) => tool_name === name)
  const both = (name: string) => [textOf(ours, at(name)), textOf(theirs, at(name))] as const
  const [value, theirValue] = both('browser_evaluate')
  expect(evaluated(value)).toEqual(['Order', 'open', 'ShiftTab', 'size'])
  expect(evaluated(theirValue)).toEqual(evaluated(value))

  const [snapshot, theirSnapshot] = both('browser_snapshot')
  expect(linesOf(snapshot)).toEqual(linesOf(theirSnapshot))
  expect(linesOf(snapshot)).toHaveLength(7)

  for (const text of both('browser_console_messages')) expect(text).toContain('ready')
  for (const text of both('browser_network_requests')) expect(text).toContain(`${url}sent?`)
  for (const text of both('browser_tabs')) expect(text).toMatch(/- 0: \(current\) \[Order\]/)
})
