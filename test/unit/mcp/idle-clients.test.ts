/** What a client costs that does nothing: no subscription of its own to the changes of all tasks, and no tools of its own that a model could read. */
import type { Subscription } from 'rxjs'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createMcpServer } from '../../../src/mcp/mcp-server.js'
import { createTaskTools } from '../../../src/mcp/task-tools.js'
import { setUpApp } from './wire.js'

function setUpClients() {
  const { app, backend, manager, clock } = setUpApp()
  onTestFinished(() => app.close())
  const connect = (owner: string) => {
    const server = createMcpServer(app, { owner, isAnonymous: false }, 'subscribe')
    const onListChange = vi.spyOn(server, 'sendResourceListChanged').mockResolvedValue()
    const end = (): void => server.onclose?.()
    onTestFinished(end)
    return { onListChange, end }
  }
  const subscribe = vi.spyOn(manager.reads.notifications$, 'subscribe')
  const subscriptions = (): number =>
    subscribe.mock.results.filter(({ value }) => !(value as Subscription).closed).length
  return { backend, manager, clock, connect, subscriptions }
}

it('one subscription serves all clients, and ends with the last one', () => {
  const { connect, subscriptions } = setUpClients()
  const first = connect('client 0')
  const count = subscriptions()
  expect(count).toBeGreaterThan(0)
  const others = Array.from({ length: 20 }, (_, n) => connect(`client ${n + 1}`))
  expect(subscriptions()).toBe(count)
  first.end()
  expect(subscriptions()).toBe(count)
  for (const { end } of others) end()
  expect(subscriptions()).toBe(0)
})

it('a change is told to the client of its owner, and to no other one', () => {
  const { connect, manager, clock } = setUpClients()
  const [ann, bob, again] = [connect('ann'), connect('bob'), connect('ann')]
  manager.registerTask({ id: 'a', subagentName: 'x', goalPrompt: 'g', owner: 'ann' })
  clock.advance(100)
  const told = () => [ann, bob, again].map(({ onListChange }) => onListChange.mock.calls.length)
  expect(told()).toEqual([1, 0, 1])
  ann.end()
  manager.registerTask({ id: 'b', subagentName: 'x', goalPrompt: 'g', owner: 'ann' })
  manager.registerTask({ id: 'c', subagentName: 'x', goalPrompt: 'g', owner: 'bob' })
  clock.advance(100)
  expect(told()).toEqual([1, 1, 2])
})

it('all clients are shown the same definitions of the tools', () => {
  const { backend } = setUpClients()
  const [ann, bob] = ['ann', 'bob'].map((owner) => createTaskTools(backend, owner))
  const schemas = (tools = ann) => tools?.flatMap(({ inputSchema, outputSchema }) => [inputSchema, outputSchema])
  expect(ann?.length).toBeGreaterThan(5)
  schemas()?.forEach((schema, at) => expect(schemas(bob)?.[at]).toBe(schema))
})
