/** The tools of the browser extension in a Chromium without the extension, and pages on which the tools act. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createBrowserTools } from '../../src/client/extension/tools/index.js'
import type { Times } from '../../src/client/extension/tools/perform.js'
import { runTool } from '../../src/protocol/instance-tools.js'
import { devtoolsTabs, startChromium, type DevtoolsTabs } from './devtools-tabs.js'

/** The HTML of a page, or a function that answers the request. */
export type ToolPage = string | ((request: IncomingMessage, response: ServerResponse) => void)

export interface Outcome {
  readonly text: string
  /** The error code, if the call failed. */
  readonly code: string | undefined
  readonly image: string | undefined
}

export interface ToolBrowser {
  readonly tabs: DevtoolsTabs
  /** The address of a page, on 127.0.0.1. */
  address(path: string): string
  /** Serves a page at a path. */
  serve(path: string, page: ToolPage): void
  /** Serves a page with this body, and goes to it. */
  show(body: string): Promise<void>
  call(name: string, args?: Record<string, unknown>, signal?: AbortSignal): Promise<Outcome>
  /** Calls a tool. The call must succeed. Returns its text. */
  use(name: string, args?: Record<string, unknown>): Promise<string>
  /** Returns the value of an expression in the page. */
  value(expression: string): Promise<unknown>
  close(): Promise<void>
}

export async function openToolBrowser(times: Partial<Times> = {}): Promise<ToolBrowser> {
  const pages = new Map<string, ToolPage>()
  const server = createServer((request, response) => {
    const page = pages.get(request.url ?? '')
    if (typeof page === 'function') {
      page(request, response)
      return
    }
    response.statusCode = page === undefined ? 404 : 200
    response.setHeader('content-type', 'text/html; charset=utf-8').end(page)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const { devtools, close } = await startChromium(['--host-resolver-rules=MAP *.test 127.0.0.1'])
  const tabs = await devtoolsTabs(devtools)
  const tools = new Map(
    createBrowserTools(tabs, { times: { actionMs: 400, ...times } }).map((tool) => [tool.name, tool]),
  )
  let shown = 0

  async function call(name: string, args = {}, signal = new AbortController().signal): Promise<Outcome> {
    const tool = tools.get(name)
    if (tool === undefined) throw new Error(`There is no tool ${name}.`)
    const context = { signal, progress: () => undefined }
    const { content, isError = false, _meta } = await runTool(tool, args, context, () => signal.aborted)
    const code = isError ? String((_meta as { code?: unknown }).code) : undefined
    const texts = content.map((block) => (block.type === 'text' ? block.text : ''))
    const image = content.find((block) => block.type === 'image')
    return { code, text: texts.join('\n'), image: typeof image?.['data'] === 'string' ? image['data'] : undefined }
  }

  async function use(name: string, args = {}): Promise<string> {
    const { text, code } = await call(name, args)
    if (code !== undefined) throw new Error(`${name} failed with ${code}: ${text}`)
    return text
  }

  const address = (path: string): string => `http://127.0.0.1:${port}${path}`
  return {
    tabs,
    address,
    call,
    use,
    serve: (path, page) => void pages.set(path, page),
    show: async (body) => {
      const path = `/shown-${(shown += 1)}`
      pages.set(path, `<!doctype html><title>Page ${shown}</title><body>${body}`)
      await use('browser_navigate', { url: address(path) })
    },
    value: async (expression) => {
      const { debuggee } = await tabs.current(new AbortController().signal)
      const { result } = await debuggee.send('Runtime.evaluate', { expression, returnByValue: true })
      return result.value as unknown
    },
    close: async () => {
      await close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Returns the ref in the last line of a snapshot that has this text. */
export function refIn(snapshot: string, text: string): string {
  const line = snapshot.split('\n').findLast((one) => one.includes(text) && one.includes('[ref='))
  const [, ref] = /\[ref=(\w+)\]/.exec(line ?? '') ?? []
  if (ref === undefined) throw new Error(`No ref for ${text} in:\n${snapshot}`)
  return ref
}
