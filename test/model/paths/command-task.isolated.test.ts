/** Every way through the machine of a command task, taken by the task manager that owns it: C1 to C3, S1, S2, S4. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { AnyMachineSnapshot } from 'xstate'
import { commandTaskMachine, type CommandTaskEvent } from '../../../machines/command-task.js'
import type { Task } from '../../../src/protocol/command-tasks.js'
import { createCommandHost } from '../../support/command-host.js'
import { watchState } from '../../support/watched-xstate.js'
import { everyWay, takeEach, type Way } from './ways.js'

vi.mock('xstate', () => import('../../support/watched-xstate.js').then(({ watchedXState }) => watchedXState()))

const error = { code: 'X', message: 'it broke' }
const events: readonly CommandTaskEvent[] = [
  { type: 'task.start' },
  { type: 'task.cancel', error },
  { type: 'command.succeeded' },
  { type: 'command.failed', error },
  { type: 'instance.lost', error },
]

/** A task is started once, and only a running task has commands that end; after the end, any event may arrive. */
function canHappen(snapshot: AnyMachineSnapshot, { type }: CommandTaskEvent): boolean {
  if (type === 'task.start') return !snapshot.matches('running')
  return type.startsWith('command.') ? !snapshot.matches('queued') : true
}

async function take(way: Way<CommandTaskEvent>, totalCommands: number): Promise<void> {
  const host = createCommandHost()
  host.connect()
  // A task before it keeps it in the queue.
  host.submit('before')
  const names = Array.from({ length: totalCommands }, (_, index) => `command ${index}`)
  const id = host.submit(names)
  await host.settle()
  const state = watchState(`task.${id}`)
  expect(state()).toEqual(way.start.value)
  let end: Task | undefined
  for (const { event, before, after } of way.steps) {
    const call = host.calls.findLast(({ name }) => name !== 'before')
    if (event.type === 'task.start') host.call('before').finish()
    else if (event.type === 'task.cancel') expect(host.tasks.cancelTask(id)).toBe(before.status === 'active')
    else if (event.type === 'command.succeeded') call?.finish('fine')
    else if (event.type === 'command.failed') call?.fail(new Error('it broke'))
    else void host.instances.disconnect('one')
    await host.settle()
    expect(state(), event.type).toEqual(after.value)
    const task = host.tasks.getTask(id)
    expect(after.matches(task?.status ?? 'forgotten')).toBe(true)
    // C1, S1: it ends once, its end is emitted once, and its record does not change after that.
    if (before.status !== 'active') expect(task).toEqual(end)
    if (after.status !== 'active') end ??= task
    const completes = host.of(id).filter(({ type }) => type === 'task_complete')
    expect(completes).toHaveLength(end === undefined ? 0 : 1)
    // C2: in order, none before its turn. C3, S4: none once it has ended.
    const { index } = after.context as { index: number }
    const started = host.calls.filter(({ name }) => name !== 'before').map(({ name }) => name)
    expect(started).toEqual(before.matches('queued') && !after.matches('running') ? [] : names.slice(0, started.length))
    if (after.matches('running')) expect(started).toHaveLength(index + 1)
    if (after.status !== 'active') expect(task?.error !== undefined).toBe(task?.status !== 'completed')
  }
  const warnings = await host.dispose()
  expect(warnings).toEqual([])
  expect(host.clock.pending).toBe(0)
}

describe('every way through the machine of a command task', () => {
  beforeEach(() => void vi.spyOn(console, 'warn').mockImplementation(() => undefined))
  afterEach(() => void vi.restoreAllMocks())

  it.each([1, 2, 3])('C1 to C3, S1, S4: by the task manager, with commands: %i', (totalCommands) =>
    takeEach(commandTaskMachine, everyWay(commandTaskMachine, { input: { totalCommands }, events, canHappen }), (way) =>
      take(way, totalCommands),
    ),
  )
})
