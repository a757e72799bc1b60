/** The command task's machine by itself: C1 to C3. */
import { describe, expect, it } from 'vitest'
import { createActor, transition } from 'xstate'
import { commandTaskMachine, type CommandTaskEvent } from '../../../machines/command-task.js'

const error = { code: 'X', message: 'why' }

function start(totalCommands = 2) {
  const actor = createActor(commandTaskMachine, { input: { totalCommands } })
  actor.start()
  return actor
}

const ends: readonly (readonly CommandTaskEvent[])[] = [
  [{ type: 'task.start' }, { type: 'command.succeeded' }, { type: 'command.succeeded' }],
  [{ type: 'task.start' }, { type: 'command.failed', error }],
  [{ type: 'task.cancel', error }],
  [{ type: 'instance.lost', error }],
]

describe('a command task', () => {
  it('C1: ends in exactly one way, and later events change nothing', () => {
    for (const events of ends) {
      const actor = start()
      for (const event of events) actor.send(event)
      const ended = actor.getSnapshot()
      expect(ended.status).toBe('done')
      for (const later of ends.flat()) {
        const [next] = transition(commandTaskMachine, ended, later)
        expect(next).toMatchObject({ value: ended.value, output: ended.output })
      }
    }
  })

  it('C2: runs its commands in order and ends at the first that fails', () => {
    const actor = start(3)
    actor.send({ type: 'task.start' })
    expect(actor.getSnapshot().context.index).toBe(0)
    actor.send({ type: 'command.succeeded' })
    expect(actor.getSnapshot().context.index).toBe(1)
    actor.send({ type: 'command.failed', error })
    expect(actor.getSnapshot().output).toEqual({ status: 'failed', error })
    const other = start(1)
    other.send({ type: 'task.start' })
    other.send({ type: 'command.succeeded' })
    expect(other.getSnapshot().output).toEqual({ status: 'completed' })
  })

  it('C3: is cancelled or lost while it is queued, and then never runs', () => {
    for (const [type, status] of [
      ['task.cancel', 'cancelled'],
      ['instance.lost', 'failed'],
    ] as const) {
      const actor = start()
      actor.send({ type: 'command.succeeded' }) // it has not started: no command of it can end
      expect(actor.getSnapshot().value).toBe('queued')
      actor.send({ type, error })
      expect(actor.getSnapshot().output).toEqual({ status, error })
    }
  })
})
