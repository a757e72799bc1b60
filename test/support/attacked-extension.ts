/** The extension in Chromium, connected to a real server, and a client with a valid token that attacks it. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { startTaskServer } from '../../src/server/index.js'
import {
  startExtensionBrowser,
  waitFor,
  type ExtensionBrowser,
  type ExtensionBrowserOptions,
} from './extension-browser.js'

export const TOKEN = 'not-for-pages-'.repeat(3)

export interface AttackedExtension {
  readonly browser: ExtensionBrowser
  /** The address of the test's pages, without a slash at the end. There is a page at every path, with a button and with the path as its title. */
  readonly site: string
  /** Serves a page at a path. */
  serve(path: string, answer: (request: IncomingMessage, response: ServerResponse) => void): void
  /** Runs a command to its end. Returns its text. If it fails, returns its code and message. */
  use(tool: string, args?: Record<string, unknown>): Promise<string>
  /** Runs a function in the page. With a target, the function receives that element. */
  evaluate(code: string, target?: string): Promise<string>
  /** The id of the current tab. */
  currentTab(): Promise<number>
  close(): Promise<void>
}

export async function attackExtension(options: ExtensionBrowserOptions = {}): Promise<AttackedExtension> {
  const answers = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>()
  const pages = createServer((request, response) => {
    const path = request.url ?? ''
    const answer = answers.get(path.replace(/\?.*/, ''))
    if (answer !== undefined) {
      answer(request, response)
      return
    }
    response.writeHead(200, { 'content-type': 'text/html' })
    response.end(
      `<!doctype html><title>${path.slice(0, 20)}</title><link rel="icon" href="data:,"><button>One</button>`,
    )
  }).listen(0, '127.0.0.1')
  await once(pages, 'listening')
  const browser = await startExtensionBrowser(options)
  const server = await startTaskServer({
    port: 0,
    tasks: { wsPort: 0 },
    logLevel: 'silent',
    env: {},
    auth: { tokens: [TOKEN] },
  })
  await browser.connect(server.httpUrl, { token: TOKEN })
  await browser.phase('connected')

  async function use(tool_name: string, args: Record<string, unknown> = {}): Promise<string> {
    const answer = await waitFor(async () => {
      const submitted = server.taskManager.submitTask({
        type: 'task_submit',
        task_name: 'Attack',
        task_intention: '',
        instanceId: 'browser',
        commands: [{ tool_name, args, intention: '' }],
      })
      return 'taskId' in submitted ? submitted : undefined
    }, 'the connection')
    const task = await waitFor(async () => {
      const now = server.taskManager.getTask(answer.taskId)
      return now?.completedAt === undefined ? undefined : now
    }, tool_name)
    const [command] = task.commands
    if (command?.status !== 'success') return `${command?.error?.code} ${command?.error?.message}`
    const { content = [] } = Object(command.result) as { content?: { text?: string }[] }
    return content.map(({ text = '' }) => text).join('\n')
  }

  return {
    browser,
    use,
    site: `http://127.0.0.1:${(pages.address() as AddressInfo).port}`,
    serve: (path, answer) => void answers.set(path, answer),
    evaluate: (code, target) => use('browser_evaluate', { function: code, ...(target !== undefined && { target }) }),
    currentTab: () => browser.inOptions(`return (await chrome.storage.session.get('remembered')).remembered.current`),
    close: async () => {
      await browser.close()
      await server.close({ drainMs: 0 })
      pages.closeAllConnections()
      await new Promise((resolve) => pages.close(resolve))
    },
  }
}
