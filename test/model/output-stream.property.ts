/** F2: what a task writes is followed as it comes, and what a task that was stopped had written is kept. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { TaskOutputEvent } from '../../src/features/output/output-stream.js'
import { AsyncTaskReminderService } from '../../src/features/delivery/reminder-service.js'
import { createManualClock } from '../../src/testing/manual-clock.js'

/** Changes a manager; a planted fault makes it wrong. */
export type WrapManager = (manager: AsyncTaskManager) => AsyncTaskManager

const LIMIT_MS = 1000

const text = fc.string({ unit: fc.constantFrom('a', 'ß', '€', '😀', '\n', ' '), maxLength: 40 })

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('write' as const), text }) },
  fc.record({ do: fc.constant('follow' as const), cursor: fc.option(fc.nat(60), { nil: undefined }) }),
)

const end = fc.constantFrom('complete', 'fail', 'cancel', 'time out')

interface Follower {
  readonly from: number
  readonly events: TaskOutputEvent[]
  isComplete: boolean
}

export function outputStreamProperty(wrap: WrapManager = (manager) => manager) {
  return fc.property(fc.array(step, { maxLength: 12 }), end, fc.constantFrom(16, 65_536), (steps, how, outputBytes) => {
    const clock = createManualClock()
    const manager = wrap(new AsyncTaskManager({ clock, outputBytes, graceMs: 0, onError: () => undefined }))
    const reminders = new AsyncTaskReminderService(manager)
    manager.registerTask({ id: 'a', subagentName: 'writer', goalPrompt: 'write', timeoutMs: LIMIT_MS })
    const encoder = new TextEncoder()
    let written = ''
    const followers: Follower[] = []
    const follow = (cursor: number | undefined): void => {
      const size = encoder.encode(written).length
      const follower: Follower = { from: cursor ?? Math.max(0, size - outputBytes), events: [], isComplete: false }
      followers.push(follower)
      manager.output$('a', cursor === undefined ? {} : { cursor }).subscribe({
        next: (event) => follower.events.push(event),
        complete: () => (follower.isComplete = true),
      })
    }
    for (const action of steps) {
      if (action.do === 'follow') follow(action.cursor)
      else if (manager.appendOutput('a', action.text)) written += action.text
    }
    assert.ok(
      followers.every(({ isComplete }) => !isComplete),
      'F2: a stream ended before its task',
    )
    if (how === 'complete') manager.completeTask('a', { final_message: 'done' })
    else if (how === 'fail') manager.failTask('a', 'broken')
    else if (how === 'cancel') manager.cancelTask('a')
    else clock.advance(LIMIT_MS + 1)
    follow(undefined)

    const bytes = encoder.encode(written)
    const decode = (from: number, to: number): string =>
      new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(from, to))
    for (const { from, events, isComplete } of followers) {
      assert.ok(isComplete, 'F2: a stream did not end with its task')
      let at = from
      for (const { taskId, text: shown, cursor } of events) {
        const start = cursor - encoder.encode(shown).length
        assert.ok(start >= at && shown !== '', 'F2: a part was emitted twice, or is empty')
        assert.deepEqual([taskId, shown], ['a', decode(start, cursor)], 'F2: not what was written')
        // A character that the cursor cuts is left out, and what is no longer kept.
        if (outputBytes > bytes.length) assert.ok(start - at < 4 && (start === at || at === from), 'F2: a gap')
        at = cursor
      }
      if (from < bytes.length - 4) assert.equal(at, bytes.length, 'F2: the end is missing')
    }

    const { outputTail } = manager.getTask('a') ?? {}
    const tail = decode(Math.max(0, bytes.length - outputBytes), bytes.length)
      .replace(/^\uFFFD+/, '')
      .trimEnd()
    const isStopped = how === 'cancel' || how === 'time out'
    if (!isStopped || tail === '') assert.equal(outputTail, undefined, 'F2')
    else {
      assert.ok(
        outputTail !== undefined && tail.endsWith(outputTail) && outputTail.length > 0,
        `F2: the tail is ${outputTail}`,
      )
    }
    if (how === 'time out' && outputTail !== undefined) {
      assert.ok(reminders.generateReminder().includes(JSON.stringify(outputTail)), 'F2: the message has no tail')
    }
    const kept = manager.readOutput('a', { maxBytes: 1_000_000 })
    assert.equal(kept?.nextCursor, bytes.length, 'F2: the output was dropped')
    void manager.dispose()
  })
}
