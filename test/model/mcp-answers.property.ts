/**
 * The answers of the MCP server against the results that they carry: whatever a client calls, and whichever of its connections break,
 * each result is in an answer that was written out, and in no second one unless the client asked for that task by name.
 */
import { setImmediate } from 'node:timers/promises'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server'
import fc from 'fast-check'
import { createBackend } from '../../src/mcp/backend.js'
import { openExchange, type OpenExchange } from '../../src/mcp/exchange.js'
import { createMcpApp } from '../../src/mcp/mcp-app.js'
import { createMcpServer } from '../../src/mcp/mcp-server.js'
import { createManualClock } from '../../src/testing/manual-clock.js'

type Tool = 'wait' | 'list' | 'peek' | 'run'

type Action =
  | { readonly type: 'launch' }
  | { readonly type: 'end' | 'write' | 'lose' | 'cancel'; readonly index: number }
  | { readonly type: 'call'; readonly tool: Tool; readonly index: number }

interface OpenCall {
  readonly id: number
  readonly tool: Tool | 'launch'
  readonly exchange: OpenExchange
  answer: string | undefined
}

const index = fc.nat(7)
const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    fc.record({ type: fc.constant('launch' as const) }),
    fc.record({ type: fc.constantFrom('end' as const, 'write' as const), index }),
    fc.record({ type: fc.constantFrom('lose' as const, 'cancel' as const), index }),
    fc.record({
      type: fc.constant('call' as const),
      tool: fc.constantFrom<Tool>('wait', 'list', 'peek', 'run'),
      index,
    }),
  ),
  // Without a size fast-check makes short sequences, in which few answers are open at a time.
  { maxLength: 40, size: 'max' },
)

const TOOLS = {
  launch: ['task', { subagent_name: 'slow', goal_prompt: 'g', async: true }],
  run: ['task', { subagent_name: 'slow', goal_prompt: 'g' }],
  wait: ['wait_for_async_tasks', { mode: 'any' }],
  list: ['check_async_tasks', {}],
} as const

/** One client of a server. Its connections are written and broken by the test. */
class Client {
  readonly ends = new Map<string, () => void>()
  readonly written: { readonly tool: OpenCall['tool']; readonly answer: string }[] = []
  readonly #open: OpenCall[] = []
  readonly #backend = createBackend({
    clock: createManualClock(),
    config: { maxAsyncTasks: -1 },
    writeLog: () => undefined,
    subagents: {
      slow: {
        run: ({ id }, { signal }) =>
          new Promise((resolve, reject) => {
            this.ends.set(id, () => resolve({ final_message: `the result of ${id}` }))
            signal.addEventListener('abort', () => reject(new Error('aborted')))
          }),
      },
    },
  })
  readonly app = createMcpApp(this.#backend)
  readonly manager = this.#backend.manager
  readonly #transport: Transport = {
    start: () => Promise.resolve(),
    close: () => Promise.resolve(),
    send: (message: JSONRPCMessage) => {
      const call = 'result' in message ? this.#open.find(({ id }) => id === message.id) : undefined
      if (call !== undefined) call.answer = JSON.stringify((message as { result: unknown }).result)
      return Promise.resolve()
    },
  }
  #lastId = 0

  async connect(): Promise<void> {
    const server = createMcpServer(this.app, { owner: 'client', isAnonymous: false }, 'none', ({ mcpReq: { id } }) => {
      return this.#open.find((call) => call.id === id)!.exchange
    })
    await server.connect(this.#transport)
  }

  async call(tool: OpenCall['tool'], position = 0): Promise<OpenCall> {
    const tasks = this.manager.getAllTasks()
    const peeked = { task_id: tasks[position % Math.max(1, tasks.length)]?.id ?? 'none' }
    const [name, args] = tool === 'peek' ? (['check_async_tasks', peeked] as const) : TOOLS[tool]
    const call: OpenCall = { id: (this.#lastId += 1), tool, exchange: openExchange(), answer: undefined }
    this.#open.push(call)
    this.#receive({ jsonrpc: '2.0', id: call.id, method: 'tools/call', params: { name, arguments: args } })
    await this.settle()
    return call
  }

  async perform(action: Action): Promise<void> {
    if (action.type === 'launch') this.write(await this.call('launch'))
    else if (action.type === 'call') {
      // Calls that wait for one task at the same time return it both: the model asked twice.
      const waits = ['wait', 'run']
      const isWaiting = this.#open.some(({ tool }) => waits.includes(tool))
      if (!waits.includes(action.tool) || !isWaiting) await this.call(action.tool, action.index)
    } else if (action.type === 'end') {
      const running = this.manager.getRunningTasks()
      const task = running[action.index % Math.max(1, running.length)]
      if (task !== undefined) this.ends.get(task.id)?.()
    } else {
      const call = this.#open[action.index % Math.max(1, this.#open.length)]
      if (call === undefined) return
      if (action.type === 'write') this.write(call)
      else if (action.type === 'lose') this.lose(call)
      else if (call.answer === undefined) {
        const params = { requestId: call.id }
        this.#receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
        await this.settle()
        this.lose(call)
      }
    }
    await this.settle()
  }

  write(call: OpenCall): void {
    if (call.answer === undefined) return
    this.#forget(call)
    this.written.push({ tool: call.tool, answer: call.answer })
    call.exchange.end(true)
  }

  lose(call: OpenCall): void {
    this.#forget(call)
    call.exchange.end(false)
  }

  /** Ends every task and breaks every connection, then calls once more on good ones. */
  async finish(): Promise<void> {
    for (const { id } of this.manager.getRunningTasks()) this.ends.get(id)?.()
    await this.settle()
    for (const call of [...this.#open]) this.lose(call)
    await this.settle()
    for (let left = 10; left > 0 && this.manager.getPendingNotifications().length > 0; left -= 1) {
      this.write(await this.call('list'))
    }
  }

  settle = async (): Promise<void> => {
    await setImmediate()
    await setImmediate()
  }

  #receive(message: JSONRPCMessage): void {
    this.#transport.onmessage?.(message)
  }

  #forget(call: OpenCall): void {
    this.#open.splice(this.#open.indexOf(call), 1)
  }
}

/** A5, over MCP. */
export function mcpAnswersProperty(): fc.IAsyncProperty<[Action[]]> {
  return fc.asyncProperty(actions, async (sequence) => {
    const client = new Client()
    await client.connect()
    const completed = new Set<string>()
    client.manager.onTaskCompleted(({ id }) => completed.add(id))
    try {
      for (const action of sequence) await client.perform(action)
      await client.finish()
      for (const id of completed) {
        const carriers = client.written.filter(({ answer }) => answer.includes(`the result of ${id}`))
        if (carriers.length === 0) throw new Error(`The result of ${id} is in no answer that was written.`)
        const unasked = carriers.filter(({ tool }) => tool !== 'peek')
        if (unasked.length > 1) throw new Error(`The result of ${id} is in ${unasked.length} answers.`)
      }
    } finally {
      await client.app.close()
    }
  })
}
