/** Clients of the server that write their messages themselves: over HTTP with a session of 2025, and over stdio. */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { listenWith } from '../../../src/mcp/http.js'
import { startMcpStdioServer } from '../../../src/mcp/stdio.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import type { AgentConfigInput } from '../../../src/protocol/agent-config.js'
import type { SubagentRunner } from '../../../src/tools/subagents.js'
import { until } from '../../support/lifelines.js'
import { setUpApp } from './wire.js'

/** A subagent that ends when the test says so. */
export function controlled() {
  const ends = new Map<string, (message: string) => void>()
  const contexts = new Map<string, Parameters<SubagentRunner>[1]>()
  const run: SubagentRunner = ({ id }, context) =>
    new Promise((resolve, reject) => {
      const { signal } = context
      contexts.set(id, context)
      ends.set(id, (final_message) => resolve({ final_message }))
      signal.addEventListener('abort', () => reject(new Error('aborted')))
    })
  return { run, end: (id: string, message: string) => ends.get(id)!(message), contexts }
}

export interface Called {
  readonly content: { readonly type: string; readonly text: string }[]
  readonly structuredContent?: Readonly<Record<string, unknown>>
}

export const CLIENT = { name: 'raw', version: '1' }

export async function overHttp(config: AgentConfigInput = {}, client: Record<string, string> = {}) {
  const subagent = controlled()
  const host = setUpApp({ slow: subagent.run }, { maxAsyncTasks: -1, ...config })
  const server = await listenWith(host.app, { port: 0 })
  onTestFinished(() => server.close())
  let lastId = 0
  const post = async (message: object, headers: Record<string, string>): Promise<IncomingMessage> => {
    const sent = httpRequest(server.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...client,
        ...headers,
      },
    })
    sent.on('error', () => undefined)
    sent.end(JSON.stringify({ jsonrpc: '2.0', ...message }))
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return response
  }
  const initialized = await post(
    {
      id: ++lastId,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT },
    },
    {},
  )
  initialized.resume()
  const session = {
    'mcp-session-id': initialized.headers['mcp-session-id'] as string,
    'mcp-protocol-version': '2025-11-25',
  }
  const begin = (name: string, args: object = {}) =>
    post({ id: ++lastId, method: 'tools/call', params: { name, arguments: args } }, session)
  const call = async (name: string, args: object = {}): Promise<Called> => {
    let text = ''
    for await (const chunk of await begin(name, args)) text += String(chunk)
    const data = text.split('\n').find((line) => line.startsWith('data: {'))!
    return (JSON.parse(data.slice(6)) as { result: Called }).result
  }
  const launch = async (): Promise<string> =>
    (await call('task', { subagent_name: 'slow', goal_prompt: 'g', async: true })).structuredContent![
      'task_id'
    ] as string
  return { ...host, ...subagent, server, session, post, begin, call, launch }
}

export const textOf = ({ content }: Called): string => content.map(({ text }) => text).join('\n')

export function overStdio(config: AgentConfigInput = {}) {
  const subagent = controlled()
  const clock = createManualClock(Date.UTC(2026, 0, 1))
  const [input, output] = [new PassThrough(), new PassThrough()]
  const server = startMcpStdioServer({
    input,
    output,
    clock,
    config,
    writeLog: () => undefined,
    subagents: { slow: { run: subagent.run } },
  })
  onTestFinished(() => server.close())
  const answers = new Map<number, Called>()
  const notices: { method: string; params: Record<string, unknown> }[] = []
  createInterface({ input: output }).on('line', (line) => {
    const message = JSON.parse(line) as { id?: number; result?: Called; error: Called } & (typeof notices)[number]
    if (message.id === undefined) notices.push(message)
    else answers.set(message.id, message.result ?? message.error)
  })
  const say = (message: object) => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const ask = async (id: number, method: string, params: object): Promise<Called> => {
    say({ id, method, params })
    await until(() => answers.has(id))
    return answers.get(id)!
  }
  const initialize = () => ask(0, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT })
  return { ...subagent, clock, say, ask, initialize, answers, notices }
}
