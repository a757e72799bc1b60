// The progress of a call, on a clock and reports of the test.
import { Subject } from 'rxjs'
import { expect, it, onTestFinished } from 'vitest'
import type { TaskProgress } from '../../../machines/records.js'
import { reportProgress, type ProgressParams } from '../../../src/mcp/progress.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function createSubject() {
  const clock = createManualClock(5000)
  const progress$ = new Subject<{ taskId: string; progress: TaskProgress }>()
  const sent: Omit<ProgressParams, 'progressToken'>[] = []
  const report = reportProgress('token', { manager: { progress$ } as never, clock }, ({ progressToken, ...params }) => {
    expect(progressToken).toBe('token')
    sent.push(params)
  })
  onTestFinished(() => report.stop())
  const say = (progress: number, more: Partial<TaskProgress> = {}, taskId = 't1'): void =>
    progress$.next({ taskId, progress: { progress, ...more } })
  const write = (text: string): void => report.onUpdate?.({ text, cursor: 0 })
  return { clock, progress$, sent, report, say, write, take: () => sent.splice(0) }
}

it('a call is notified of what its own task reports, with a total that is not below the value', () => {
  const { clock, report, say, take } = createSubject()
  report.follow('t1')
  // One call is about one task.
  report.follow('t2')
  say(1, { total: 4, message: 'begun' })
  expect(take()).toEqual([{ progress: 1, total: 4, message: 'begun' }])
  say(9, { total: 9 }, 't2')
  clock.advance(250)
  expect(take()).toEqual([])
  say(4, { total: 4 })
  expect(take()).toEqual([{ progress: 4, total: 4 }])
  clock.advance(250)
  // The same again: the value increases, and is above the total then.
  say(4, { total: 4 })
  expect(take()).toEqual([{ progress: 4 + 1e-6 }])
})

it('of reports within 250 ms the last one is sent, when they are over, and once', () => {
  const { clock, report, say, take } = createSubject()
  report.follow('t1')
  for (const progress of [1, 2, 3]) say(progress)
  expect(take()).toEqual([{ progress: 1 }])
  clock.advance(249)
  expect(take()).toEqual([])
  clock.advance(1)
  expect(take()).toEqual([{ progress: 3 }])
  clock.advance(9999)
  expect(take()).toEqual([])
  clock.advance(1)
  expect(take()).toEqual([{ progress: 3 + 1e-6, message: 'Waiting for 10 s.' }])
})

it('what a task writes is gathered for a second, and its last line is sent once, of 200 characters', () => {
  const { clock, write, take } = createSubject()
  write(' \n')
  clock.advance(2000)
  expect(take()).toEqual([])
  write('first\nsec')
  clock.advance(500)
  write(`ond${'x'.repeat(300)}\n\n`)
  clock.advance(499)
  expect(take()).toEqual([])
  clock.advance(1)
  expect(take()).toEqual([{ progress: 3, message: `second${'x'.repeat(194)}` }])
  clock.advance(10_000)
  expect(take()).toEqual([{ progress: 13, message: 'Waiting for 13 s.' }])
})

it('nothing is left when it is stopped', () => {
  const { clock, progress$, report, say, sent } = createSubject()
  report.follow('t1')
  say(1)
  say(2)
  report.stop()
  expect([clock.pending, progress$.observed]).toEqual([0, false])
  clock.advance(60_000)
  expect(sent).toEqual([{ progress: 1 }])
})
