/** Many lives, one after another, in one manager or server: what is kept does not grow with their number (A7, A9, S9). */
import { BehaviorSubject } from 'rxjs'
import { expect, it, onTestFinished } from 'vitest'
import { AsyncTaskAutoTrigger } from '../../src/features/delivery/auto-trigger.js'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { AsyncTaskReminderService } from '../../src/features/delivery/reminder-service.js'
import { listenWith } from '../../src/mcp/http.js'
import { createSubmitCommandsTool } from '../../src/tools/submit-commands.js'
import { createCommandHost } from '../support/command-host.js'
import { countLeftovers } from '../support/leftovers.js'
import { until } from '../support/lifelines.js'
import { createPacedClock } from '../support/paced-clock.js'
import { openSocket } from '../support/socket-client.js'
import { setUpApp } from './mcp/wire.js'
import { startTestServer } from './server/test-server.js'
import { runs } from '../../src/async-tasks/run-plan.js'

/** Lives a few lives, looks at what is kept, lives many more, and expects no more to be kept. */
async function expectNoGrowth(live: (nth: number) => Promise<void>, kept: () => unknown, few = 3, many = 30) {
  for (let nth = 0; nth < few; nth += 1) await live(nth)
  const before = { leftovers: countLeftovers(), kept: kept() }
  for (let nth = few; nth < many; nth += 1) await live(nth)
  expect({ leftovers: countLeftovers(), kept: kept() }).toEqual(before)
}

it('A7, A9: tasks of ever new owners, with triggers, waits and leases, leave the records of the history', async () => {
  const clock = createPacedClock()
  const manager = new AsyncTaskManager({ clock, maxAsyncTasks: 1 })
  const reminders = new AsyncTaskReminderService(manager)
  const input = { subagentName: 'helper', goalPrompt: 'help', timeoutMs: 60_000 }
  let turns = 0
  const live = async (nth: number): Promise<void> => {
    const owner = `owner-${nth}`
    const agent = () => Promise.resolve(void (turns += 1))
    const trigger = new AsyncTaskAutoTrigger(manager, reminders, new BehaviorSubject(false), agent, { owner })
    const unsubscribe = trigger.subscribe()
    manager.launch({ ...input, id: `told-${nth}`, owner }, () => Promise.resolve({ final_message: 'done' }))
    await clock.advance(0)
    unsubscribe()
    const { signal } = new AbortController()
    manager.launch({ ...input, id: `awaited-${nth}`, owner }, () => Promise.resolve({ final_message: 'done' }))
    await manager.waitFor([`awaited-${nth}`], { signal, timeoutMs: 1000 })
    manager.registerTask({ ...input, id: `left-${nth}`, owner, abortController: new AbortController() })
    manager.completeTask(`left-${nth}`, {})
    reminders.leaseReminder({ owner })?.release()
    manager.releaseOwner(owner)
  }
  const { registry } = manager
  await expectNoGrowth(live, () => ({
    timers: clock.pending,
    records: manager.getAllTasks().length,
    owners: [registry.ledger.countsByOwner('owed'), registry.ledger.countsByOwner('leased')].map(({ size }) => size),
    runs: registry.use(runs).unsettled.size,
    observers: registry.notifications$.observed || registry.drained$.observed,
  }))
  expect(manager.getAllTasks()).toHaveLength(2)
  expect(turns).toBe(30)
})

it.each([true, false])(
  'S9, A9: submitted commands leave no subscription and no listener (async: %s)',
  async (isAsync) => {
    const host = createCommandHost()
    host.connect()
    const manager = new AsyncTaskManager({ clock: host.clock, maxAsyncTasks: 1 })
    const tool = createSubmitCommandsTool({ getAsyncTaskManager: () => manager, taskManager: host.tasks })
    const live = async (nth: number): Promise<void> => {
      const end = tool.execute(
        { task_name: 'a task', commands: [{ tool_name: 'step', args: { name: nth } }], async: isAsync },
        { signal: new AbortController().signal },
      )
      await until(() => host.calls.length > nth)
      host.calls[nth]!.finish()
      await end
      await until(() => manager.getRunningTasks().length === 0)
      manager.releaseOwner('main')
    }
    await expectNoGrowth(live, () => ({ timers: host.clock.pending, records: manager.getAllTasks().length }))
  },
)

it('A7, A9: sessions over HTTP leave no owner, no owed result and no timer', async () => {
  const { app, clock, manager } = setUpApp({ shout: () => Promise.resolve({ final_message: 'LOUD' }) })
  const server = await listenWith(app, { port: 0 })
  onTestFinished(() => server.close())
  const send = async (method: string, headers: Record<string, string>, body?: object): Promise<string> => {
    const accept = 'application/json, text/event-stream'
    const init = { method, headers: { 'content-type': 'application/json', accept, ...headers } }
    const response = await fetch(server.url, body === undefined ? init : { ...init, body: JSON.stringify(body) })
    await response.text()
    return response.headers.get('mcp-session-id') ?? ''
  }
  const live = async (): Promise<void> => {
    const clientInfo = { name: 'churn', version: '1' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    const session = await send('POST', {}, { jsonrpc: '2.0', id: 1, method: 'initialize', params })
    const headers = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }
    const task = { name: 'task', arguments: { subagent_name: 'shout', goal_prompt: 'g', async: true } }
    await send('POST', headers, { jsonrpc: '2.0', id: 2, method: 'tools/call', params: task })
    await until(() => manager.getRunningTasks().length === 0)
    await send('DELETE', headers)
  }
  const kept = () => ({ timers: clock.pending, owed: manager.getPendingNotifications().length })
  await expectNoGrowth(live, kept, 2, 12)
  expect(manager.getPendingNotifications()).toEqual([])
})

it('S9: sockets that come and go leave no heartbeat and no timer, authenticated or not', async () => {
  const server = await startTestServer({ auth: { tokens: ['token'] } })
  const live = async (nth: number): Promise<void> => {
    const headers = nth % 2 === 0 ? {} : { authorization: 'Bearer token' }
    const client = await openSocket(server.wsUrl, { headers })
    await client.skipTo('welcome')
    await client.close()
    // Its answer comes after the server has noticed the close.
    await server.call('/health')
  }
  await expectNoGrowth(live, () => undefined, 2, 12)
})
