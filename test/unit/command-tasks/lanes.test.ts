/** What the lanes hold on to. What they do is tested through the task manager. */
import { expect, it, vi } from 'vitest'
import { createLanes } from '../../../src/command-tasks/lanes.js'
import { createOutbox } from '../../../src/callbacks/outbox.js'
import type { Task } from '../../../src/protocol/command-tasks.js'
import { createControllableEngine } from '../../support/controllable-engine.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

const taskOf = (id: string): Task => ({
  id,
  instanceId: 'one',
  name: id,
  intention: '',
  commands: [{ id: 'cmd_1', tool_name: 'step', intention: '', args: {}, status: 'pending' }],
  status: 'queued',
  currentCommandIndex: 0,
  createdAt: 0,
})

it('S9: tasks that are submitted and cancelled behind a long one do not pile up in its lane', () => {
  const outbox = createOutbox<() => void>({ notify: (run) => run() })
  const onComplete = vi.fn()
  const lanes = createLanes({
    clock: createManualClock(),
    engine: createControllableEngine(),
    abortGraceMs: 2000,
    commandTimeout: 60_000,
    perform: () => Promise.resolve(),
    transact: (change) => outbox.batch(change),
    defer: (effect) => outbox.push(effect),
    onProgress: () => undefined,
    onComplete,
    onLateResult: () => undefined,
  })
  const long = lanes.add(taskOf('long'), 1, 1)
  long.wake()
  for (let n = 0; n < 100; n += 1) lanes.cancel(lanes.add(taskOf(`task ${n}`), 1, 1).entry)
  expect(onComplete).toHaveBeenCalledTimes(100)
  expect(long.entry.lane.entries).toEqual([long.entry])
  lanes.stop()
})
