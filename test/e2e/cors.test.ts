/** Pages of other origins in a real browser: those that the configuration names use the servers, and those that it does not are refused. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { createDemoInstance } from '../../src/cli/demo-instance.js'
import { startMcpHttpServer } from '../../src/mcp/index.js'
import { startTaskServer } from '../../src/server/index.js'
import { command, evaluated, openDriver, type Perform } from '../support/browser.js'

const TOKEN = 'a-token-of-the-page'

/** Serves an empty page. Returns its origin. */
async function servePage(): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><link rel="icon" href="data:,">')
  }).listen(0, '127.0.0.1')
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Runs a script in a page; what it throws is its result. */
async function runIn(perform: Perform, origin: string, script: string): Promise<unknown> {
  const [, result = ''] = await perform(
    command('browser_navigate', { url: origin }),
    command('browser_evaluate', {
      function: `async () => { try { ${script} } catch (error) { return String(error) } }`,
    }),
  )
  return evaluated(result)
}

it('lets the pages of allowed origins use REST and its events, and no others', async () => {
  const [allowed, other] = [await servePage(), await servePage()]
  const server = await startTaskServer({
    port: 0,
    tasks: { wsPort: 0 },
    logLevel: 'silent',
    env: {},
    auth: { tokens: [TOKEN] },
    cors: { origins: [allowed] },
    instances: [createDemoInstance()],
  })
  onTestFinished(() => server.close({ drainMs: 0 }))
  const { httpUrl, taskManager } = server
  const perform = await openDriver('page')
  const script = `
    const headers = { authorization: 'Bearer ${TOKEN}', 'content-type': 'application/json' }
    const body = JSON.stringify({ task_name: 'Add', commands: [{ tool_name: 'add', args: { a: 2, b: 3 } }] })
    const submitted = await fetch('${httpUrl}/tasks', { method: 'POST', headers, body })
    const { taskId } = await submitted.json()
    const events = await fetch('${httpUrl}/tasks/' + taskId + '/events', { headers: { ...headers, 'last-event-id': '0' } })
    const told = await events.text()
    const ended = await fetch('${httpUrl}/tasks/' + taskId + '/cancel', { method: 'POST', headers })
    return [submitted.status, told.includes('task_complete'), ended.status]`

  expect(await runIn(perform, allowed, script)).toEqual([201, true, 409])
  expect(taskManager.listTasks()).toHaveLength(1)
  expect(await runIn(perform, other, script)).toBe('TypeError: Failed to fetch')
  expect(taskManager.listTasks()).toHaveLength(1)
})

it('lets the pages of allowed origins open a session of MCP and end it, and no others', async () => {
  const [allowed, other] = [await servePage(), await servePage()]
  const server = await startMcpHttpServer({
    port: 0,
    config: { http: { tokens: [TOKEN], allowedOrigins: [allowed] } },
  })
  onTestFinished(() => server.close())
  const { url } = server
  const perform = await openDriver('page')
  const script = `
    const headers = { authorization: 'Bearer ${TOKEN}', 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const send = (method, message, more = {}) =>
      fetch('${url}', { method, headers: { ...headers, ...more }, ...(message && { body: JSON.stringify({ jsonrpc: '2.0', ...message }) }) })
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } }
    const opened = await send('POST', { id: 1, method: 'initialize', params })
    await opened.text()
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id'), 'mcp-protocol-version': '2025-11-25' }
    const listed = await send('POST', { id: 2, method: 'tools/list', params: {} }, session)
    const tools = await listed.text()
    const ended = await send('DELETE', undefined, session)
    return [opened.status, tools.includes('check_async_tasks'), ended.status]`

  expect(await runIn(perform, allowed, script)).toEqual([200, true, 200])
  expect(await runIn(perform, other, script)).toBe('TypeError: Failed to fetch')
})
