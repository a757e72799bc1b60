/** The option `inspect`: where it is passed on, when it is called, and that it can do no harm. */
import { setImmediate } from 'node:timers/promises'
import type { InspectionEvent } from 'xstate'
import { expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../../../src/system/clock.js'
import { InstanceManager } from '../../../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../../../src/command-tasks/instances/local-instance.js'
import { createRelayTransport } from '../../../../src/observability/inspect/relay.js'
import { createCommandHost } from '../../../support/command-host.js'
import { startRelay } from '../../../support/inspector-relay.js'
import { startTestServer, taskOf } from '../../server/test-server.js'
import { createGate } from './inspected.js'

const fail = (): never => {
  throw new Error('no')
}

it.each([
  ['throws', fail],
  ['rejects', () => Promise.reject(new Error('no'))],
  ['is an observer that throws', { next: fail }],
])('S6: one that %s changes nothing for tasks and lanes, and is reported', async (_how, inspect) => {
  const host = createCommandHost({ inspect: inspect as () => void })
  host.connect('one')
  const id = host.submit(['a', 'b'])
  await host.settle()
  host.call('a').finish()
  await host.settle()
  host.call('b').finish()
  await host.settle()
  expect(host.story(id)).toEqual(['cmd_1 running', 'cmd_1 success', 'cmd_2 running', 'cmd_2 success', 'completed'])
  expect(host.onError.mock.calls.length).toBeGreaterThan(10)
  expect(new Set(host.onError.mock.calls.map(([, from]) => (from as { source: string }).source))).toEqual(
    new Set(['inspector']),
  )
  await host.dispose()
})

it.each([
  ['throws', fail],
  ['rejects', () => Promise.reject(new Error('no'))],
])('S6: one that %s changes nothing for instances, and is reported', async (_how, inspect) => {
  const onError = vi.fn()
  const instances = new InstanceManager({ inspect: inspect as () => void, onError })
  const connected = vi.fn()
  instances.onConnect(connected)
  expect(instances.connect(localInstance({ id: 'one', tools: [] })).isConnected).toBe(true)
  expect(connected).toHaveBeenCalledExactlyOnceWith('one')
  expect(await instances.disconnect('one')).toBe(true)
  expect(onError).toHaveBeenCalledWith(new Error('no'), { source: 'inspector', instanceId: 'one' })
  await instances.dispose()
})

it('A2: it may call any method, sees the current state, and is called in order', async () => {
  const seen: string[] = []
  const inspect = (event: InspectionEvent): void => {
    if (event.type !== '@xstate.event' || event.event.type !== 'xstate.init') return
    const { id } = event.actorRef as { id?: string }
    seen.push(`${id?.replace(/task_\d+_/, '')} ${host.tasks.listTasks().length}`)
    if (seen.length === 2) host.submit('second')
  }
  const host = createCommandHost({ inspect })
  host.connect('one')
  host.submit('first')
  await host.settle()
  // The task of the event is already listed, and a task submitted now joins its lane.
  expect(seen).toEqual(['lane.one 1', 'task.1 1', 'task.2 2'])
  host.call('first').finish()
  await host.settle()
  host.call('second').finish()
  await host.settle()
  expect(host.completes().map(({ status }) => status)).toEqual(['completed', 'completed'])
  await host.dispose()
})

it('is passed on by the server to its instances and lanes', async () => {
  const names = new Set<unknown>()
  const server = await startTestServer({
    inspect: { next: ({ actorRef }) => names.add((actorRef as { id?: string }).id?.replace(/task_.*/, '')) },
  })
  await server.post('/tasks', taskOf('add'))
  await server.close({ drainMs: 1000 })
  expect(names).toEqual(new Set(['instance.calc', 'command-tasks', 'lane.calc', 'task.']))
})

it('N2: at most a megabyte is buffered for a relay that does not read', async () => {
  const relay = await startRelay()
  const gate = createGate()
  const transport = createRelayTransport({ url: relay.url, clock: systemClock, onOpen: gate.open, onDown: fail })
  onTestFinished(() => transport.close())
  await gate.opened
  relay.pause()
  let given = 0
  while (transport.canTake) {
    transport.send('x'.repeat(64 * 1024))
    given += 1
    await setImmediate()
    // 64 MiB: far more than an operating system buffers for a socket.
    expect(given).toBeLessThan(1000)
  }
  expect(transport.isDrained).toBe(false)
  relay.resume()
  while (!transport.isDrained) await setImmediate()
  expect(transport.canTake).toBe(true)
})
