/** A turn of the event loop where there is no Node, with a message: in a module of its own, which believes that it is in a browser. */
import { createManualClock } from 'agent-tasks/testing'
import { expect, it, vi } from 'vitest'
import { waitFor } from '../../support/wait-for.js'

vi.mock('../../../src/system/node-builtins.js', async (load) => ({ ...(await load<object>()), isNode: false }))
const { createFairEngine } = await import('../../../src/engine/fair-engine.js')
const { createInProcessEngine } = await import('../../../src/engine/in-process.js')

it('in a browser, work after 10 ms of work waits for a message, of which no port stays open', async () => {
  const clock = createManualClock()
  const engine = createFairEngine(createInProcessEngine({ clock }), clock)
  const openPorts = (): number => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length
  const before = openPorts()
  const ran: string[] = []
  const runs = ['a', 'b'].map((id) =>
    engine.start({
      id,
      graceMs: 100,
      run: () => {
        ran.push(id)
        clock.advance(10)
        return id
      },
    }),
  )
  for (let ticks = 0; ticks < 20; ticks += 1) await Promise.resolve()
  expect([ran, openPorts() > before]).toEqual([['a'], true])
  expect(await Promise.all(runs.map(({ settled }) => settled))).toMatchObject([{ value: 'a' }, { value: 'b' }])
  await waitFor(() => expect(openPorts()).toBe(before))
})
