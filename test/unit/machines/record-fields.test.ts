/** Each field of a record, by its row: what ends with a run or a task, and what a store keeps. */
import { expect, it } from 'vitest'
import { RECORD_FIELDS, type RecordField } from '../../../machines/record-fields.js'
import type { AsyncTaskInfo } from '../../../machines/records.js'
import { endedRecord, requeuedRecord } from '../../../machines/task-record.js'
import { toRestoredRecords } from '../../../src/async-tasks/recovery/restoring.js'
import { storedRecord } from '../../../src/async-tasks/recovery/stored-records.js'

/** A value of each kind. */
const VALUES = {
  name: 'name',
  owner: 'main',
  text: 'text',
  time: 100,
  duration: 100,
  seq: 1,
  integer: 0,
  count: 1,
  flag: true,
  mark: true,
  status: 'running',
  delivery: 'none',
  command: 'command',
  names: ['name'],
  dependencies: ['name'],
  texts: ['text'],
  output: { final_message: 'done' },
  progress: { progress: 1, total: 2 },
  session: { id: 'session' },
  attempts: [{ number: 1, startedAt: 1, error: 'e' }],
  budget: { tokens: 1 },
  spent: { tokens: 1 },
  questions: [{ id: 'question-1', message: 'm', schema: {}, askedAt: 1 }],
  live: new AbortController(),
} satisfies Record<(typeof RECORD_FIELDS)[RecordField]['kind'], unknown>

const names = Object.keys(RECORD_FIELDS) as RecordField[]

/** A running task with all fields that a task can have before its end. */
const running = Object.fromEntries(
  names
    .filter((name) => !['end', 'delivery'].includes(RECORD_FIELDS[name].by))
    .map((name) => [name, VALUES[RECORD_FIELDS[name].kind]]),
) as unknown as AsyncTaskInfo

const ended = endedRecord(
  running,
  { status: 'completed', output: VALUES.output },
  { delivery: 'owed', seq: 2, completedAt: 200, outputTail: 'tail', runningChildren: ['child'] },
)

it('A8: the record of an ended task keeps all fields but those of an active task', () => {
  const lost = Object.keys(running).filter((name) => !(name in ended))
  expect(lost.sort()).toEqual(['abortController', 'isForeground', 'questions', 'waitsFor'])
})

it('F9: the next run begins without what belongs to the last one', () => {
  const next = requeuedRecord(running, { seq: 2, endedAt: 3, error: 'e', abortController: undefined })
  expect(
    Object.keys(running)
      .filter((name) => !(name in next))
      .sort(),
  ).toEqual(['progress', 'questions', 'startedAt'])
})

it('K2: a store keeps all fields of an ended task, and they are restored', () => {
  const stored = JSON.parse(JSON.stringify(storedRecord(ended))) as AsyncTaskInfo
  expect(stored).toEqual(ended)
  expect(toRestoredRecords([stored as never], 300)).toEqual([ended])
})
