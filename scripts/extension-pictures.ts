/** Takes the pictures of the extension: its options page in light and dark, and a browser with a tab under control. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { createTaskClient } from '../src/client/index.js'
import { startTaskServer } from '../src/server/index.js'
import { startExtensionBrowser } from '../test/support/extension-browser.js'
import { openVirtualScreen } from '../test/support/virtual-screen.js'

const WIDTH = 1100
const HEIGHT = 640
const OPTIONS_SIZE = { width: 760, height: 760, deviceScaleFactor: 1, mobile: false }
/** How long the browser needs to draw a change, in ms. */
const SETTLE_MS = 1500

const SHOP = `<!doctype html><meta charset="utf-8"><title>Parcels</title><style>
body { font: 18px/1.5 system-ui, sans-serif; margin: 48px; color: #1b1f24 }
input, button { font: inherit; padding: 8px 12px }</style>
<h1>Parcels</h1><label>Number <input></label> <button>Find</button><p>Enter the number of a parcel.</p>`

/** @param save called with each picture and its name */
export async function takeExtensionPictures(save: (name: string, picture: Buffer) => void): Promise<void> {
  const pages = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(SHOP)
  }).listen(0, '127.0.0.1')
  await once(pages, 'listening')
  const url = `http://127.0.0.1:${(pages.address() as AddressInfo).port}/parcels`
  const server = await startTaskServer({ port: 3300, tasks: { wsPort: 0 }, logLevel: 'silent', env: {} })
  const screen = await openVirtualScreen(WIDTH, HEIGHT)
  const browser = await startExtensionBrowser({ display: screen.display })
  const client = createTaskClient({ url: server.httpUrl })
  try {
    await browser.phase('connected')
    await browser.openTab('about:blank')
    const { taskId } = await client.submit({
      task_name: 'Find a parcel',
      commands: [
        { tool_name: 'browser_navigate', args: { url } },
        { tool_name: 'browser_type', args: { target: 'input', text: '4711' } },
        { tool_name: 'browser_wait_for', args: { time: 10 } },
      ],
    })
    for await (const event of client.watch(taskId)) {
      if (event.type === 'task_progress' && event.commandIndex === 2) break
    }
    await pause(SETTLE_MS)
    save('extension-browser', screen.capture())
    const session = await browser.optionsSession()
    await browser.devtools.send('Page.bringToFront', undefined, session)
    await browser.devtools.send('Emulation.setDeviceMetricsOverride', OPTIONS_SIZE, session)
    for (const value of ['light', 'dark']) {
      const features = [{ name: 'prefers-color-scheme', value }]
      await browser.devtools.send('Emulation.setEmulatedMedia', { features }, session)
      await pause(SETTLE_MS)
      const { data } = await browser.devtools.send('Page.captureScreenshot', {}, session)
      save(`extension-options-${value}`, Buffer.from(data, 'base64'))
    }
  } finally {
    await client.close()
    await browser.close()
    await screen.close()
    await server.close({ drainMs: 0 })
    pages.closeAllConnections()
    pages.close()
  }
}
