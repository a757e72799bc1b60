/** The tools in the extension itself, where the person has zoomed the page, and where a page opens tabs. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PNG } from 'pngjs'
import { expect, it, onTestFinished } from 'vitest'
import { createTaskClient, type TaskCompleteMessage } from '../../src/client/index.js'
import { startTaskServer } from '../../src/server/index.js'
import { command, textOf, type Command } from '../support/browser.js'
import { startExtensionBrowser } from '../support/extension-browser.js'

const PAGE = `<!doctype html><title>Zoomed</title><link rel="icon" href="data:,"><body style="height:3000px">
<button style="position:absolute;left:300px;top:900px;width:40px;height:20px;padding:0;border:0;background:rgb(1,2,3)"
  onclick="document.title='hit'"></button><a target="_blank" href="/second">second</a>
<script>if (location.pathname === '/second') document.title = 'Second'</script>`

it('finds the place of an element in a zoomed page, and acts in a tab that a click opened', async () => {
  const pages = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(PAGE))
  await once(pages.listen(0, '127.0.0.1'), 'listening')
  const server = await startTaskServer({ port: 0, tasks: { wsPort: 0 }, logLevel: 'silent', env: {} })
  const client = createTaskClient({ url: server.httpUrl })
  const browser = await startExtensionBrowser()
  onTestFinished(async () => {
    await client.close()
    await browser.close()
    await server.close({ drainMs: 0 })
    pages.closeAllConnections()
    await new Promise((resolve) => pages.close(resolve))
  })
  await browser.connect(server.httpUrl)
  await browser.phase('connected')
  async function run(...commands: Command[]): Promise<TaskCompleteMessage> {
    const { taskId } = await client.submit({ task_name: 'Act', instanceId: 'browser', commands })
    for await (const event of client.watch(taskId)) {
      if (event.type === 'task_complete' && event.status === 'completed') return event
      if (event.type === 'task_complete') throw new Error(JSON.stringify(event))
    }
    throw new Error('The watch ended without an end.')
  }

  const address = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`
  await run(command('browser_navigate', { url: address }))
  await browser.inOptions(`
    const { current } = (await chrome.storage.session.get('remembered')).remembered
    await chrome.tabs.setZoom(current, 1.5)`)
  const pictured = await run(
    command('browser_click', { target: 'button' }),
    command('browser_take_screenshot', { target: 'button' }),
  )
  expect(textOf(pictured, 0)).toContain('Page Title: hit')
  const { content = [] } = Object(pictured.results[1]?.result) as { content?: { data?: string }[] }
  const { width, height, data } = PNG.sync.read(Buffer.from(content[1]?.data ?? '', 'base64'))
  expect([width, height, ...data.subarray(0, 3), ...data.subarray(-4, -1)]).toEqual([40, 20, 1, 2, 3, 1, 2, 3])

  const opened = await run(
    command('browser_click', { target: 'a' }),
    command('browser_tabs', { action: 'select', index: 1 }),
    command('browser_snapshot'),
  )
  expect(textOf(opened, 0)).toContain(`### New tabs\n- 1: ${address}/second`)
  expect(textOf(opened, 2)).toContain('Page Title: Second')
})
