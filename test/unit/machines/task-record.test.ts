/** What the copies of a record keep, field by field. */
import { describe, expect, it } from 'vitest'
import type { AsyncTaskInfo, RunningTaskInfo, Settlement } from '../../../machines/records.js'
import {
  admittedRecord,
  changedRecord,
  deliveredRecord,
  endedRecord,
  requeuedRecord,
  startedRecord,
  withAttempt,
  withQuestions,
} from '../../../machines/task-record.js'

const admission = {
  id: 'a',
  subagentName: 'agent',
  goalPrompt: 'goal',
  owner: 'run:p',
  graceMs: 0,
  terms: { timeoutMs: 500, budget: { tokens: 5 } },
  parentId: 'p',
  depth: 2,
  abortController: new AbortController(),
  kind: 'command' as const,
  command: ['make', 'all'],
}

const kept = {
  id: 'a',
  subagentName: 'agent',
  goalPrompt: 'goal',
  owner: 'run:p',
  launchedAt: 100,
  timeoutMs: 500,
  budget: { tokens: 5 },
  parentId: 'p',
  depth: 2,
  abortController: admission.abortController,
  kind: 'command',
  command: ['make', 'all'],
}

/** What a record gets while its task runs. */
const noted = {
  startedAt: 150,
  attempt: 2,
  attempts: [{ number: 1, startedAt: 100, endedAt: 120, error: 'e' }],
  spent: { tokens: 3 },
  progress: { progress: 1 },
  messagesSent: 4,
  pid: 5,
  exitCode: 6,
  signal: 'SIGTERM',
  endedProcesses: 7,
}

const admitted = () => admittedRecord(admission, { status: 'running', seq: 1, launchedAt: 100 })
const running = (): RunningTaskInfo => ({ ...admitted(), ...noted })
const question = { id: 'question-1', message: 'm', schema: {}, askedAt: 1 } as never
const end = (settlement: Settlement) =>
  endedRecord(running(), settlement, {
    delivery: 'owed',
    seq: 9,
    completedAt: 200,
    outputTail: 'tail',
    runningChildren: ['c'],
  })

describe('the record of a task', () => {
  it('A8: has the fields of its admission, and a command of its own', () => {
    const command = ['make', 'all']
    const record = admittedRecord({ ...admission, command }, { status: 'queued', seq: 1, launchedAt: 100 })
    command.push('later')
    expect(record).toEqual({ ...kept, status: 'queued', delivery: 'none', seq: 1 })
    expect([record, record.command].map(Object.isFrozen)).toEqual([true, true])
    expect(Object.isFrozen(command)).toBe(false)
  })

  it.each<Settlement>([
    { status: 'completed', output: { final_message: 'done' } },
    { status: 'failed', error: 'e', errorName: 'N', errorCode: 'C', lateOutput: { final_message: 'late' } },
    { status: 'cancelled', cancelReason: 'enough' },
  ])('A8: keeps when it has $status what it had, and only that', (settlement) => {
    const record = end(settlement)
    const { abortController: _, ...past } = kept
    const added = { delivery: 'owed', seq: 9, completedAt: 200, outputTail: 'tail', runningChildren: ['c'] }
    expect(record).toEqual({ ...past, ...noted, ...added, ...settlement })
    expect(Object.isFrozen(record)).toBe(true)
    const plain = admittedRecord(
      { id: 'b', subagentName: 's', goalPrompt: 'g', owner: 'o', graceMs: 0 },
      { status: 'running', seq: 1, launchedAt: 3 },
    )
    const ended = endedRecord(plain, settlement, { delivery: 'none', seq: 2, completedAt: 4, outputTail: undefined })
    expect(Object.keys(ended).sort()).toEqual(
      [
        ...['id', 'subagentName', 'goalPrompt', 'owner', 'launchedAt', 'delivery', 'seq', 'completedAt'],
        ...Object.keys(settlement),
      ].sort(),
    )
  })

  it('A8: keeps what its run threw, through every change of its delivery and its owner', () => {
    const cause = new Error('thrown')
    const failed = end({ status: 'failed', error: 'e', cause })
    const copies: AsyncTaskInfo[] = [
      failed,
      changedRecord(failed, { owner: 'heir' }),
      changedRecord(failed, { delivery: 'leased' }),
      changedRecord(failed, { isRepeat: true }),
      deliveredRecord(failed, 300),
    ]
    for (const copy of copies) {
      expect(copy).toMatchObject({ status: 'failed' })
      expect((copy as { cause?: unknown }).cause).toBe(cause)
      expect(Object.keys(copy)).not.toContain('cause')
      expect(Object.isFrozen(copy)).toBe(true)
    }
  })

  it('A8: says when its end was delivered: the first time, or the last time of a repeat', () => {
    const ended = end({ status: 'completed', output: {} })
    const first = deliveredRecord(ended, 300)
    expect(first).toEqual({ ...ended, delivery: 'delivered', notifiedAt: 300 })
    const again = changedRecord(changedRecord(first, { isRepeat: true }), { delivery: 'owed' })
    expect(deliveredRecord(again, 400)).toMatchObject({ delivery: 'delivered', notifiedAt: 400, isRepeat: true })
  })

  it('F9: loses the questions and the progress of a run that is repeated, and keeps the rest', () => {
    const asking = withQuestions(running(), [question])
    const change = { seq: 4, endedAt: 170, error: 'x', abortController: undefined }
    const { progress: _, ...rest } = running()
    const { startedAt: _startedAt, ...queued } = { ...rest, status: 'queued', seq: 4, attempt: 3 }
    expect(requeuedRecord(asking, change)).toEqual({
      ...queued,
      attempts: [...noted.attempts, { number: 2, startedAt: 150, endedAt: 170, error: 'x' }],
    })
    const next = new AbortController()
    expect(requeuedRecord(asking, { ...change, abortController: next }).abortController).toBe(next)
    expect(requeuedRecord(admitted(), change)).toMatchObject({
      attempt: 2,
      attempts: [{ number: 1, startedAt: 100, endedAt: 170 }],
    })
    expect(requeuedRecord(asking, { ...change, keepsAttempt: true })).toEqual({ ...queued, attempt: 2 })
    expect(startedRecord(requeuedRecord(asking, change), 5, 180)).toMatchObject({ status: 'running', startedAt: 180 })
  })

  it('F9: names the last ten of its earlier runs, each with the first 500 characters of its error', () => {
    let attempts: ReturnType<typeof withAttempt> | undefined
    for (let number = 1; number <= 12; number += 1) {
      attempts = withAttempt(attempts, { number, startedAt: 0, error: `${number}${'x'.repeat(600)}` })
    }
    expect(attempts?.map(({ number }) => number)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    expect(attempts?.map(({ error }) => error.length)).toEqual(Array.from({ length: 10 }, () => 500))
    expect(attempts?.[0]?.error.startsWith('3x')).toBe(true)
  })

  it('T5: has no field for questions when none is open', () => {
    const asking = withQuestions(running(), [question])
    expect(asking.questions).toEqual([question])
    expect(withQuestions(asking, [])).not.toHaveProperty('questions')
  })
})
