/** What the parts of a registry keep after a change: slots, queues, budgets, families, and questions. */
import { describe, expect, it } from 'vitest'
import { BudgetTimes } from '../../../machines/budget-times.js'
import { ownerOfRun } from '../../../machines/families.js'
import { OwedQuestions, refOf } from '../../../machines/owed-questions.js'
import { Slots } from '../../../machines/slots.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { TaskQueue } from '../../../machines/task-queue.js'
import { startRegistry } from './registry-parts.js'

/** An entry of which only the record is read. */
const entryOf = (record: object): TaskEntry => ({ record, serial: 1 }) as unknown as TaskEntry

describe('slots', () => {
  it('A5: a reservation that has expired cannot be cancelled', () => {
    let now = 0
    const slots = new Slots(1, () => now)
    slots.reserve('a', 100)
    now = 99
    expect(slots.hasReservation('a')).toBe(true)
    now = 100
    expect(slots.cancelReservation('a')).toBe(false)
    slots.reserve('b', 100)
    expect(slots.cancelReservation('b')).toBe(true)
    expect(slots.reserved).toBe(0)
  })
})

describe('a queue', () => {
  it('F8: has room for exactly as many bytes as its limit', () => {
    const queue = new TaskQueue({ max: 10, maxBytes: 100, maxWaitMs: undefined })
    queue.add(entryOf({ id: 'a' }), { priority: 0, bytes: 60 })
    expect(queue.hasRoom(40)).toBe(true)
    expect(queue.hasRoom(41)).toBe(false)
  })

  it('F8: has room for exactly as many tasks as its limit', () => {
    const queue = new TaskQueue({ max: 1, maxBytes: 100, maxWaitMs: undefined })
    expect(queue.hasRoom(0)).toBe(true)
    queue.add(entryOf({ id: 'a' }), { priority: 0, bytes: 0 })
    expect(queue.hasRoom(0)).toBe(false)
  })
})

describe('budget times', () => {
  it('F10: count a run once, however often it is stopped', () => {
    const times = new BudgetTimes()
    const entry = entryOf({ id: 'a' })
    times.add(entry, { runMs: 1000, wrapUpMs: 10 }, 0)
    times.start(entry, 100)
    expect(times.stop(entry, 300)).toBe(200)
    expect(times.stop(entry, 900)).toBe(200)
    times.start(entry, 1000)
    expect(times.next).toBe(1800)
    expect(times.stop(entry, 1100)).toBe(300)
    expect(times.next).toBeUndefined()
  })
})

describe('families', () => {
  it.each(['owed', 'leased'] as const)(
    'F7: a run with as many %s results as it may have launches no further task',
    (part) => {
      const { actor, take, ledger, families, register, complete } = startRegistry({ max: -1 })
      const { entry: parent } = register('parent') as { entry: TaskEntry }
      const owner = ownerOfRun('parent')
      const ids = Array.from({ length: 20 }, (_, index) => `child-${index}`)
      for (const id of ids) register(id, { owner })
      expect(families.refusalOf(parent)).toBe('too-many')
      complete(...ids)
      if (part === 'leased') {
        take({ deliveryId: 'd', owner })
      }
      expect(ledger.countOf(part, owner)).toBe(20)
      expect(families.refusalOf(parent)).toBe('too-many')
      if (part === 'leased') actor.send({ type: 'lease.acknowledge', deliveryId: 'd' })
      else actor.send({ type: 'task.delivered', taskIds: ids })
      expect(families.refusalOf(parent)).toBeUndefined()
    },
  )
})

describe('questions', () => {
  it('F6: one that is owed once more after a late acceptance is owed again when its message is not accepted', () => {
    const entry = entryOf({ id: 'a', questions: [{ id: 'q' }] })
    const owed: string[] = []
    const questions = new OwedQuestions({ addresseeOf: () => 'main', onOwed: (owner) => void owed.push(owner) })
    questions.update(entry)
    const take = (deliveryId: string) => questions.take(questions.owed('main').map(refOf), deliveryId, 'main')
    const late = take('first')
    questions.return(late)
    questions.acceptLate(late)
    expect(questions.owed('main')).toEqual([])
    expect(questions.repeat('first')).toBe(1)
    const again = take('second')
    questions.return(again)
    expect(questions.owed('main').map(refOf)).toEqual([{ taskId: 'a', questionId: 'q' }])
    expect(owed).toHaveLength(4)
  })
})
