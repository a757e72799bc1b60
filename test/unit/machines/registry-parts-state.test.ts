/** What the parts of a registry keep after a change: slots, queues, budgets, families, and questions. */
import { describe, expect, it } from 'vitest'
import { BudgetTimes } from '../../../machines/parts/budget-times.js'
import { Families } from '../../../machines/parts/families.js'
import { ownerOfRun } from '../../../machines/run-owner.js'
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

describe('slots of an owner', () => {
  it('F5: are those that it holds, also after the end of a task whose run goes on', () => {
    const slots = new Slots(5, () => 0)
    const [launched, registered, other] = ['a', 'a', 'b'].map((owner) => entryOf({ owner })) as [
      TaskEntry,
      TaskEntry,
      TaskEntry,
    ]
    slots.take(launched, true)
    slots.take(registered, false)
    slots.take(other, true)
    expect(slots.countOf((owner) => owner === 'a')).toBe(2)
    for (const entry of [launched, registered]) slots.end(entry)
    expect([slots.countOf((owner) => owner === 'a'), slots.inUse]).toEqual([1, 2])
    expect([slots.release(launched), slots.release(launched), slots.release(registered)]).toEqual([true, false, false])
    expect([slots.countOf((owner) => owner === 'a'), slots.inUse]).toEqual([0, 1])
  })

  it('F8: the end of a reservation is a deadline only while something waits for its slot', () => {
    const slots = new Slots(1, () => 0)
    slots.reserve('r', 100)
    expect(slots.nextExpiry).toBeUndefined()
    slots.queue.add(entryOf({ id: 'a' }), { priority: 0, bytes: 0 })
    expect(slots.nextExpiry).toBe(100)
  })

  it('need no timer for a reservation that has expired, also without a limit', () => {
    const slots = new Slots(-1, () => 100)
    slots.queue.add(entryOf({ id: 'a' }), { priority: 0, bytes: 0 })
    slots.reserve('expired', 0)
    expect(slots.nextExpiry).toBeUndefined()
    slots.reserve('later', 50)
    expect(slots.nextExpiry).toBe(150)
  })
})

describe('a queue', () => {
  it('F8: gives room back, and forgets that a task was delayed, when it is removed', () => {
    const queue = new TaskQueue({ max: 10, maxBytes: 100, maxWaitMs: undefined, agingMs: -1 })
    const entry = entryOf({ id: 'a' })
    queue.add(entry, { priority: 0, bytes: 60 }, ['delay'])
    expect([queue.isHeld(entry), queue.peek()]).toEqual([true, undefined])
    queue.remove(entry)
    expect([queue.size, queue.bytes, queue.isHeld(entry)]).toEqual([0, 0, false])
    queue.remove(entry)
    expect(queue.bytes).toBe(0)
    queue.add(entry, { priority: 0, bytes: 1 })
    expect(queue.peek()).toBe(entry)
  })

  it('F8, F15: lets a place take a slot when every reason to hold it back has been given up', () => {
    const queue = new TaskQueue({ max: 10, maxBytes: 100, maxWaitMs: undefined, agingMs: -1 })
    const [held, ready] = [entryOf({ id: 'a' }), entryOf({ id: 'b' })]
    queue.add(held, { priority: 1, bytes: 1 }, ['delay', 'dependencies'])
    queue.add(ready, { priority: 0, bytes: 1 })
    expect([queue.peek(), queue.inOrder()]).toEqual([ready, [ready]])
    expect([queue.release(held, 'dependencies'), queue.isHeld(held)]).toEqual([false, true])
    expect(queue.inOrder()).toEqual([held, ready])
    expect([queue.release(held, 'dependencies'), queue.peek()]).toEqual([false, ready])
    expect([queue.release(held, 'delay'), queue.peek()]).toEqual([true, held])
    queue.remove(held)
    expect([queue.release(held, 'delay'), queue.peek(), queue.bytes]).toEqual([false, ready, 1])
  })

  it('F8: has room for exactly as many bytes as its limit', () => {
    const queue = new TaskQueue({ max: 10, maxBytes: 100, maxWaitMs: undefined, agingMs: -1 })
    queue.add(entryOf({ id: 'a' }), { priority: 0, bytes: 60 })
    expect(queue.hasRoom(40)).toBe(true)
    expect(queue.hasRoom(41)).toBe(false)
  })

  it('F8: has room for exactly as many tasks as its limit', () => {
    const queue = new TaskQueue({ max: 1, maxBytes: 100, maxWaitMs: undefined, agingMs: -1 })
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

  it('F10: the next run has its own time to conclude', () => {
    const times = new BudgetTimes()
    const entry = entryOf({ id: 'a' })
    times.add(entry, { runMs: 1000, wrapUpMs: 10 }, 400)
    times.start(entry, 0)
    expect(times.next).toBe(600)
    times.wrapUp(entry, 600)
    expect(times.take(609)).toBeUndefined()
    expect(times.take(610)).toEqual({ entry, isWrapping: true })
    times.stop(entry, 610)
    times.start(entry, 700)
    expect(times.take(700)).toEqual({ entry, isWrapping: false })
    times.conclude(entry)
    times.delete(entry)
    times.start(entry, 800)
    expect([times.next, times.stop(entry, 900)]).toEqual([undefined, undefined])
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

describe('the tasks of a run', () => {
  it('F5: that have not ended are named in the order of registration, also those that wait', () => {
    const { actor, register, families, history } = startRegistry({ max: -1 })
    register('parent')
    const owner = ownerOfRun('parent')
    for (const id of ['a', 'b', 'c']) register(id, { owner })
    actor.send({
      type: 'task.requeue',
      entry: history.get('a')!,
      ticket: { priority: 0, bytes: 0 },
      delayMs: 100,
      graceMs: 0,
      error: 'e',
      abortController: undefined,
    })
    expect(families.liveChildren(history.get('parent')!).map(({ record }) => record.id)).toEqual(['a', 'b', 'c'])
  })

  it('F5: are told to its owner, or nobody, once: its account is released with it', () => {
    const released: string[] = []
    const { ledger, history, register } = startRegistry({ max: -1 })
    const families = new Families({ maxDepth: 3, maxChildren: 20 }, ledger, (owner) => void released.push(owner))
    register('parent')
    register('child', { owner: ownerOfRun('parent') })
    families.add(history.get('child')!)
    families.release(history.get('parent')!)
    families.release(history.get('parent')!)
    expect(released).toEqual(['run:parent'])
    expect(history.get('child')?.record.owner).toBe('main')
  })
})

describe('questions', () => {
  const setUp = (...ids: string[]) => {
    const owed: string[] = []
    const questions = new OwedQuestions({
      addresseeOf: ({ record }) => record.owner,
      onOwed: (owner) => void owed.push(owner),
    })
    const entries = ids.map((id) => entryOf({ id, owner: `owner of ${id}`, questions: [{ id: 'q' }] }))
    for (const entry of entries) questions.update(entry)
    const states = () => questions.owed().map(({ owner }) => owner)
    return { questions, entries, owed, refs: ids.map((taskId) => ({ taskId, questionId: 'q' })), states }
  }

  it('F6: of one owner are taken, and others of the same names are left', () => {
    const { questions, refs, states } = setUp('a', 'b')
    const taken = questions.take(refs, 'd', 'owner of a')
    expect(taken.map(refOf)).toEqual([refs[0]])
    expect(states()).toEqual(['owner of b'])
    expect(questions.take(refs, 'e', 'owner of a')).toEqual([])
    expect(questions.take(refs, 'e').map(refOf)).toEqual([refs[1]])
  })

  it('F6: that were answered meanwhile are owed to nobody when their message is refused', () => {
    const { questions, entries, refs, owed } = setUp('a')
    const taken = questions.take(refs, 'd')
    entries[0]!.record = { ...entries[0]!.record, questions: [] } as never
    questions.update(entries[0]!)
    owed.splice(0)
    questions.return(taken)
    expect([owed, questions.owed()]).toEqual([[], []])
    expect(questions.repeat('d')).toBe(0)
  })

  it('F6: pass to the heir of their owner, which is told of those that no message holds', () => {
    const { questions, refs, owed, states } = setUp('a', 'b')
    const taken = questions.take([refs[1]!], 'd')
    owed.splice(0)
    questions.releaseOwner('owner of a', 'heir')
    questions.releaseOwner('owner of b', 'other')
    expect(owed).toEqual(['heir'])
    questions.return(taken)
    expect(owed).toEqual(['heir', 'other'])
    expect(states()).toEqual(['heir', 'other'])
    questions.releaseOwner('heir', undefined)
    expect(states()).toEqual(['other'])
  })

  it('F6, F11: that a message has delivered are owed once more, and their owner is told', () => {
    const { questions, refs, owed } = setUp('a')
    const taken = questions.take(refs, 'd')
    expect(questions.repeat('d')).toBe(0)
    questions.deliver(taken)
    owed.splice(0)
    expect([questions.repeat('other'), questions.repeat('d'), questions.repeat('d')]).toEqual([0, 1, 0])
    expect(owed).toEqual(['owner of a'])
    questions.acceptLate(taken)
    expect(questions.owed()).toEqual([])
  })

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
