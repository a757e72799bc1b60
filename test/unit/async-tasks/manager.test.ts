/** The guarantees of the manager, one example each; `test/model` explores their combinations. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  AsyncTaskManager,
  AsyncTaskReminderService,
  type AsyncTaskManagerOptions,
  type RegisterTaskInput,
} from '../../../src/index.js'
import { BinaryHeap } from '../../../machines/binary-heap.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import {
  DisposedError,
  InvalidInputError,
  InvalidSettingError,
  ReservationError,
  TaskIdInUseError,
  TaskLimitError,
} from '../../../src/errors.js'
import type { RunContext } from '../../../src/engine/runner.js'
import type { OnError } from '../../../src/isolation/error-report.js'

function setUp(options: AsyncTaskManagerOptions = {}) {
  const clock = createManualClock(1_000)
  const onError = vi.fn<OnError>()
  const manager = new AsyncTaskManager({ clock, onError, ...options })
  return { clock, manager, onError }
}

const input = (id: string, more: Partial<RegisterTaskInput> = {}): RegisterTaskInput => ({
  id,
  subagentName: 'helper',
  goalPrompt: 'do it',
  ...more,
})

describe('a task ends once', () => {
  it('A1: the first end wins; the others return false and change nothing', () => {
    const { manager, clock } = setUp()
    const ends: string[] = []
    manager.settled$.subscribe((task) => ends.push(task.status))
    manager.registerTask(input('a'))
    clock.advance(5)

    expect(manager.completeTask('a', { final_message: 'first' })).toBe(true)
    const record = manager.getTask('a')
    clock.advance(5)

    expect(manager.failTask('a', 'late')).toBe(false)
    expect(manager.cancelTask('a')).toBe(false)
    expect(manager.completeTask('a', { final_message: 'second' })).toBe(false)
    expect(manager.getTask('a')).toBe(record)
    expect(record).toMatchObject({ status: 'completed', completedAt: 1_005, output: { final_message: 'first' } })
    expect(ends).toEqual(['completed'])
  })

  it('A1: unknown ids return false', () => {
    const { manager } = setUp()
    expect(manager.completeTask('nobody', {})).toBe(false)
    expect(manager.failTask('nobody', 'x')).toBe(false)
    expect(manager.cancelTask('nobody')).toBe(false)
  })

  it('A1: what a run does later does not settle another task of the same id', async () => {
    const { manager } = setUp({ maxAsyncTasks: 0 })
    let finishOld: (message: string) => void = () => undefined
    manager.setMaxAsyncTasks(1)
    manager.launch(
      input('twin'),
      () => new Promise((resolve) => (finishOld = (text) => resolve({ final_message: text }))),
    )
    await Promise.resolve()
    manager.cancelTask('twin')
    manager.setMaxAsyncTasks(0) // the history limit is 0: the record is pruned, and its id is free
    expect(manager.getTask('twin')).toBeUndefined()
    manager.registerTask(input('twin'))

    finishOld('from the old run')
    await new Promise((resolve) => setImmediate(resolve))

    expect(manager.getTask('twin')?.status).toBe('running')
  })

  it('keeps the output as it is, even empty, and turns other values into text', () => {
    const { manager } = setUp()
    const shapes: [unknown, unknown][] = [
      [{}, {}],
      [
        { emitted_vars: { a: [1, { b: null }] }, extra: 'kept' },
        { emitted_vars: { a: [1, { b: null }] }, extra: 'kept' },
      ],
      [undefined, {}],
      ['just text', { final_message: 'just text' }],
      [[1, 2], { final_message: '[1,2]' }],
      [
        { big: 10n, when: new Date(0), fn: () => 1 },
        { big: '10', when: '1970-01-01T00:00:00.000Z', fn: '[function]' },
      ],
    ]
    shapes.forEach(([given, kept], index) => {
      manager.registerTask(input(`shape-${index}`))
      manager.completeTask(`shape-${index}`, given as never)
      expect(manager.getTask(`shape-${index}`)?.output).toEqual(kept)
    })
    const circular: Record<string, unknown> = { final_message: 'x' }
    circular['self'] = circular
    manager.registerTask(input('circular'))
    manager.completeTask('circular', circular)
    expect(manager.getTask('circular')?.output).toEqual({ final_message: 'x', self: '[circular]' })
  })
})

describe('notifications', () => {
  it('A2: the state changes before its event, and methods called in a handler return the current state', () => {
    const { manager } = setUp()
    const seen: unknown[] = []
    manager.registerTask(input('a'))
    manager.registerTask(input('b'))
    manager.onTaskCompleted((task) => {
      seen.push(`${task.id} ${String(manager.getTask(task.id)?.status)}`)
      if (task.id === 'a') {
        seen.push(manager.completeTask('b', {}), manager.getTask('b')?.status, manager.completeTask('b', {}))
      }
    })
    manager.completeTask('a', {})
    expect(seen).toEqual(['a completed', true, 'completed', false, 'b completed'])
  })

  it('A2: handlers run in transition order, each once, also when one of them throws', () => {
    const { manager, onError } = setUp()
    const calls: string[] = []
    for (const id of ['a', 'b', 'c']) manager.registerTask(input(id))
    manager.onTaskCompleted(() => {
      throw new Error('bad handler')
    })
    manager.onTaskCompleted((task) => {
      calls.push(`first ${task.id}`)
      if (task.id !== 'a') return
      manager.failTask('c', 'no')
      manager.completeTask('b', {})
    })
    manager.onTaskCompleted((task) => calls.push(`second ${task.id}`))
    manager.onTaskFailed((task) => calls.push(`failed ${task.id}`))
    expect(manager.completeTask('a', {})).toBe(true)
    expect(calls).toEqual(['first a', 'second a', 'failed c', 'first b', 'second b'])
    expect(onError.mock.calls.map(([error, from]) => [String(error), from])).toEqual([
      ['Error: bad handler', { source: 'handler', taskId: 'a' }],
      ['Error: bad handler', { source: 'handler', taskId: 'b' }],
    ])
  })

  it("A2: the exception of a stream's subscriber is reported, and the other subscribers are notified", () => {
    const { manager, onError } = setUp()
    const seen: string[] = []
    manager.settled$.subscribe(() => {
      throw new Error('bad subscriber')
    })
    manager.settled$.subscribe((task) => seen.push(task.id))
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    expect(seen).toEqual(['a'])
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ message: 'bad subscriber' }), { source: 'stream' })
  })

  it('A2: an observer of the actor is notified after the transition and may call any method', () => {
    const { manager, onError } = setUp()
    const answers: unknown[] = []
    manager.registerTask(input('a'))
    manager.registerTask(input('b'))
    manager.actor.subscribe(() => {
      if (manager.getTask('a')?.status !== 'completed' || answers.length > 0) return
      answers.push(manager.completeTask('b', {}))
      throw new Error('bad observer')
    })
    manager.completeTask('a', {})
    expect(answers).toEqual([true])
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ message: 'bad observer' }), {
      source: 'actor-observer',
    })
  })

  it('A2: a handler still finds the record of its task, although the history is full', () => {
    const { manager } = setUp({ maxAsyncTasks: 0 })
    const found: unknown[] = []
    manager.onTaskCancelled((task) => found.push(manager.getTask(task.id)?.status))
    manager.registerTask(input('a'))
    manager.cancelTask('a')
    expect(found).toEqual(['cancelled'])
    expect(manager.getTask('a')).toBeUndefined()
  })

  it('A2: an abort listener may call the manager, and a registered controller stays as it was', () => {
    const { manager } = setUp()
    const order: string[] = []
    const abortController = new AbortController()
    manager.registerTask(input('a', { abortController }))
    manager.registerTask(input('b'))
    manager.onTaskCancelled((task) => order.push(`cancelled ${task.id}`))
    manager.onTaskCompleted((task) => order.push(`completed ${task.id}`))
    abortController.signal.addEventListener('abort', () => {
      order.push(`abort: a is ${String(manager.getTask('a')?.status)}, b ${String(manager.completeTask('b', {}))}`)
    })
    expect(manager.cancelTask('a')).toBe(true)
    expect(order).toEqual(['abort: a is cancelled, b true', 'cancelled a', 'completed b'])
    expect(Object.getPrototypeOf(abortController.signal)).toBe(AbortSignal.prototype)
    expect(Object.getOwnPropertyNames(abortController.signal)).toEqual([])
  })

  it('A2: a listener that throws on the signal of a run is reported and breaks nothing', async () => {
    const { manager, onError } = setUp()
    manager.launch(input('a'), (_input, { signal }) => {
      signal.addEventListener('abort', () => {
        throw new Error('bad listener')
      })
      return new Promise(() => undefined)
    })
    await Promise.resolve()
    expect(manager.cancelTask('a')).toBe(true)
    expect(onError).toHaveBeenCalledWith(new Error('bad listener'), { source: 'abort-listener', taskId: 'a' })
  })

  it('notifies a subscriber only of what happens after it subscribed', () => {
    const { manager } = setUp()
    const late: string[] = []
    manager.registerTask(input('a'))
    manager.registerTask(input('b'))
    manager.onTaskCompleted((task) => {
      if (task.id !== 'a') return
      manager.completeTask('b', {})
      manager.onTaskCompleted((other) => late.push(other.id))
      manager.settled$.subscribe((other) => late.push(other.id))
    })
    manager.completeTask('a', {})
    expect(late).toEqual([])
  })

  it('replays the counts of owed and running per owner', () => {
    const { manager } = setUp()
    manager.registerTask(input('a', { owner: 'sub' }))
    const running: unknown[] = []
    const owed: unknown[] = []
    manager.running$.subscribe((counts) => running.push(Object.fromEntries(counts)))
    manager.owed$.subscribe((counts) => owed.push(Object.fromEntries(counts)))
    manager.registerTask(input('b'))
    manager.failTask('a', 'no')
    expect(running).toEqual([{ sub: 1 }, { sub: 1, main: 1 }, { main: 1 }])
    expect(owed).toEqual([{}, { sub: 1 }])
  })
})

describe('slots', () => {
  it('A3: reservations that were cancelled leave nothing behind', () => {
    const { manager, clock } = setUp({ maxAsyncTasks: 2 })
    manager.tryReserveAsyncSlot({ ttlMs: 1_000 })
    const pop = vi.spyOn(BinaryHeap.prototype, 'pop')
    for (let n = 0; n < 10_000; n += 1) manager.cancelReservation(manager.tryReserveAsyncSlot({ ttlMs: 1_800_000 })!)
    clock.advance(3_600_000)
    expect(manager.canLaunchAsync().allowed).toBe(true)
    // The heap is searched only now, so this is what was left in it.
    expect(pop.mock.calls.length).toBeLessThan(100)
    pop.mockRestore()
  })

  it('A3: a reservation holds its slot until it is used, cancelled or expires', () => {
    const { manager, clock } = setUp({ maxAsyncTasks: 1 })
    const reservation = manager.tryReserveAsyncSlot({ ttlMs: 100 })
    expect(reservation).not.toBeNull()
    expect(manager.canLaunchAsync()).toEqual({ allowed: false, reason: 'Max async tasks (1) reached' })
    expect(manager.tryReserveAsyncSlot()).toBeNull()
    clock.advance(100)
    expect(manager.canLaunchAsync()).toEqual({ allowed: true })
    expect(() => manager.registerTask(input('a'), reservation ?? '')).toThrow(ReservationError)
    expect(manager.getAllTasks()).toEqual([])

    const second = manager.tryReserveAsyncSlot() ?? ''
    expect(manager.cancelReservation(second)).toBe(true)
    expect(manager.cancelReservation(second)).toBe(false)
    const third = manager.tryReserveAsyncSlot() ?? ''
    expect(manager.registerTask(input('a'), third).status).toBe('running')
    expect(() => manager.registerTask(input('b'), third)).toThrow(ReservationError)
  })

  it('A3: a launch at the limit throws, a plain registration may exceed it', () => {
    const { manager } = setUp({ maxAsyncTasks: 1 })
    manager.registerTask(input('a'))
    manager.registerTask(input('b'))
    expect(() => manager.launch(input('c'), () => ({}))).toThrow(TaskLimitError)
    expect(manager.getTask('c')).toBeUndefined()
    expect(manager.actor.getSnapshot().phase).toBe('draining')
    manager.completeTask('a', {})
    expect(manager.canLaunchAsync().allowed).toBe(false)
    manager.completeTask('b', {})
    expect(manager.canLaunchAsync().allowed).toBe(true)
  })

  it('A3: a cancelled launch holds its slot until its run has settled or its grace has passed', async () => {
    const { manager, clock } = setUp({ maxAsyncTasks: 1, graceMs: 50 })
    const settle = () => new Promise((resolve) => setImmediate(resolve))
    manager.launch(input('deaf'), () => new Promise(() => undefined))
    await settle()
    manager.cancelTask('deaf')
    expect(manager.getTask('deaf')?.status).toBe('cancelled')
    expect(manager.canLaunchAsync().allowed).toBe(false)
    clock.advance(50)
    await settle()
    expect(manager.canLaunchAsync().allowed).toBe(true)

    manager.launch(input('polite'), (_, { signal }) => {
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve({})))
    })
    await settle()
    manager.cancelTask('polite')
    expect(manager.canLaunchAsync().allowed).toBe(false)
    await settle()
    expect(manager.canLaunchAsync().allowed).toBe(true)
    expect(clock.pending).toBe(0)
  })

  it('a run that was cancelled before it started never starts', async () => {
    const { manager } = setUp()
    const run = vi.fn(() => ({}))
    const { id } = manager.launch(input('a'), run)
    manager.cancelTask(id)
    await new Promise((resolve) => setImmediate(resolve))
    expect(run).not.toHaveBeenCalled()
    expect(manager.canLaunchAsync().allowed).toBe(true)
  })

  it.each([-2, 1.5, Number.NaN, Infinity, '5' as never])('refuses the limit %s and keeps the old one', (max) => {
    const { manager } = setUp({ maxAsyncTasks: 3 })
    expect(() => manager.setMaxAsyncTasks(max)).toThrow(InvalidSettingError)
    expect(manager.getMaxAsyncTasks()).toBe(3)
    expect(() => new AsyncTaskManager(max)).toThrow(InvalidSettingError)
  })
})

describe('ids', () => {
  it('A4: an id that a retained record holds is refused and nothing changes', () => {
    const { manager } = setUp()
    manager.registerTask(input('a'))
    manager.completeTask('a', { final_message: 'x' })
    const before = manager.getAllTasks()
    expect(() => manager.registerTask(input('a', { goalPrompt: 'other' }))).toThrow(TaskIdInUseError)
    expect(() => manager.launch(input('a'), () => ({}))).toThrow(TaskIdInUseError)
    expect(manager.getAllTasks()).toEqual(before)
  })

  it('A4: generated ids skip those in use, and a generator that only repeats is an error', () => {
    const ids = ['x', 'x', 'y']
    const { manager } = setUp({ createId: () => ids.shift() ?? 'y' })
    expect(manager.launch({ subagentName: 's', goalPrompt: 'g' }, () => ({})).id).toBe('x')
    expect(manager.launch({ subagentName: 's', goalPrompt: 'g' }, () => ({})).id).toBe('y')
    expect(() => manager.launch({ subagentName: 's', goalPrompt: 'g' }, () => ({}))).toThrow(/createId/)
    expect(manager.getAllTasks()).toHaveLength(2)
  })

  it('finds by prefix: an exact id wins over a longer one, an empty prefix matches nothing', () => {
    const { manager } = setUp()
    for (const id of ['res', 'res-1', 'res-2', 'other']) manager.registerTask(input(id))
    expect(manager.getTaskByPrefix('')).toEqual({})
    expect(manager.getTaskByPrefix('nope')).toEqual({})
    expect(manager.getTaskByPrefix('res').task?.id).toBe('res')
    expect(manager.getTaskByPrefix('res-').candidates?.map((task) => task.id)).toEqual(['res-1', 'res-2'])
    expect(manager.getTaskByPrefix('oth').task?.id).toBe('other')
  })

  it.each([
    [{ ...input('a'), id: '' }, 'input.id: got "", expected at least 1 character(s).'],
    [{ ...input('a'), subagentName: 3 }, 'input.subagentName: got 3, expected a string.'],
    [{ ...input('a'), abortController: {} }, 'input.abortController: got {}, expected an AbortController.'],
    [{ ...input('a'), timeoutMs: -1 }, 'input.timeoutMs: got -1, expected at least 0.'],
    [undefined, 'input: got undefined, expected an object.'],
  ])('says which field of a registration is wrong', (bad, message) => {
    const { manager } = setUp()
    expect(() => manager.registerTask(bad as never)).toThrow(InvalidInputError)
    expect(() => manager.registerTask(bad as never)).toThrow(message)
    expect(manager.getAllTasks()).toEqual([])
  })
})

describe('what is owed', () => {
  it('A5: completed and failed tasks are owed, cancelled ones only with notifyCancelled', () => {
    for (const notifyCancelled of [false, true]) {
      const { manager } = setUp({ notifyCancelled })
      for (const id of ['a', 'b', 'c']) manager.registerTask(input(id))
      manager.failTask('b', 'no')
      manager.cancelTask('c')
      manager.completeTask('a', {})
      const owed = manager.getPendingNotifications().map((task) => task.id)
      expect(owed).toEqual(notifyCancelled ? ['b', 'c', 'a'] : ['b', 'a'])
    }
  })

  it('A6: a leased entry is in no other lease until it is released', () => {
    const { manager } = setUp()
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    const lease = manager.lease({ owner: 'main' })
    expect(lease?.tasks.map((task) => task.id)).toEqual(['a'])
    expect(manager.lease()).toBeUndefined()
    expect(manager.getPendingNotifications()).toEqual([])
    lease?.release()
    expect(manager.lease()?.tasks).toHaveLength(1)
  })

  it('A6: an owner has at most one exclusive lease', () => {
    const { manager } = setUp()
    for (const id of ['a', 'b']) manager.registerTask(input(id))
    manager.completeTask('a', {})
    const first = manager.lease({ owner: 'main', exclusive: true })
    manager.completeTask('b', {})
    expect(manager.lease({ owner: 'main', exclusive: true })).toBeUndefined()
    first?.acknowledge()
    expect(manager.lease({ owner: 'main', exclusive: true })?.tasks.map((task) => task.id)).toEqual(['b'])
  })

  it('A5: a late acceptance acknowledges what is still owed and what another lease releases', () => {
    const { manager } = setUp()
    for (const id of ['a', 'b']) manager.registerTask(input(id))
    manager.completeTask('a', {})
    manager.completeTask('b', {})
    const first = manager.lease({ owner: 'main' })
    first?.release()
    manager.markNotified('b')
    const second = manager.lease({ owner: 'main' })
    first?.acknowledge()
    expect(manager.getTask('a')?.delivery).toBe('leased')
    second?.release()
    expect(manager.getTask('a')?.delivery).toBe('delivered')
    expect(manager.getPendingNotifications()).toEqual([])
  })

  it('marks nothing for a task that runs', () => {
    const { manager } = setUp()
    manager.registerTask(input('a'))
    manager.markNotified('a')
    manager.completeTask('a', {})
    expect(manager.getPendingNotifications()).toHaveLength(1)
    manager.markNotified('a')
    expect(manager.getTask('a')).toMatchObject({ delivery: 'delivered', notifiedAt: 1_000 })
  })

  it('hands the tasks of an owner to its heir, or drops what is owed', () => {
    const { manager } = setUp()
    for (const id of ['runs', 'owed', 'leased']) manager.registerTask(input(id, { owner: 'sub' }))
    manager.completeTask('leased', {})
    const lease = manager.lease({ owner: 'sub' })
    manager.completeTask('owed', {})
    expect(manager.releaseOwner('sub', { to: 'main' })).toBe(3)
    manager.completeTask('runs', {})
    lease?.release()
    expect(manager.getPendingNotifications('main').map((task) => task.id)).toEqual(['leased', 'owed', 'runs'])
    manager.releaseOwner('main')
    expect(manager.getPendingNotifications()).toEqual([])
    expect(manager.getAllTasks().map((task) => task.delivery)).toEqual(['none', 'none', 'none'])
  })
})

describe('history', () => {
  it('A7: an owed record is never pruned and does not count; of the delivered ones the earliest go', () => {
    const { manager } = setUp({ maxAsyncTasks: 1 }) // the history limit is 2
    const idsOf = () => manager.getAllTasks().map((task) => task.id)
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) manager.registerTask(input(id))
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) manager.completeTask(id, {})
    manager.markNotified('b')
    manager.markNotified('d')
    expect(idsOf()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    manager.markNotified('a')
    expect(idsOf()).toEqual(['b', 'c', 'd', 'e', 'f'])
    manager.markNotified('c')
    expect(idsOf()).toEqual(['c', 'd', 'e', 'f'])
    manager.setMaxAsyncTasks(0)
    expect(idsOf()).toEqual(['e', 'f'])
  })

  it('A7: a record that is owed again after it was delivered does not count, and is pruned when it is delivered again', () => {
    const { manager } = setUp({ maxAsyncTasks: 1 })
    const idsOf = () => manager.getAllTasks().map((task) => task.id)
    for (const id of ['a', 'b', 'c']) manager.registerTask(input(id))
    manager.completeTask('a', {})
    const lease = manager.lease()
    lease?.acknowledge()
    for (let time = 0; time < 3; time += 1) expect(manager.redeliver(lease?.deliveryId ?? '')).toBe(time === 0)
    for (const id of ['b', 'c']) manager.cancelTask(id)
    expect(idsOf()).toEqual(['a', 'b', 'c'])
    manager.markNotified('a')
    expect(idsOf()).toEqual(['b', 'c'])
  })

  it('A7: has ten records that owe nothing without a limit on tasks, and two for each slot with one', () => {
    const { manager } = setUp({ maxAsyncTasks: -1 })
    for (let nth = 0; nth < 20; nth += 1) {
      manager.registerTask(input(`t${nth}`))
      manager.cancelTask(`t${nth}`)
    }
    expect(manager.getAllTasks()).toHaveLength(10)
    manager.setMaxAsyncTasks(3)
    expect(manager.getAllTasks()).toHaveLength(6)
  })

  it('A7: the earliest to end goes first, although many end in one millisecond', () => {
    const { manager } = setUp({ maxAsyncTasks: -1 }) // the history limit is 10
    for (let i = 0; i < 12; i += 1) manager.registerTask(input(`t${i}`))
    for (let i = 11; i >= 0; i -= 1) manager.cancelTask(`t${i}`)
    expect(manager.getAllTasks().map((task) => task.id)).toEqual(Array.from({ length: 10 }, (_, i) => `t${i}`))
  })
})

describe('records', () => {
  it('A8: a record is a frozen copy of what the caller passed in', () => {
    const { manager } = setUp()
    manager.registerTask(input('a'))
    const vars = { list: [1] }
    manager.completeTask('a', { emitted_vars: vars })
    vars.list.push(2)
    const record = manager.getTask('a')
    expect(record?.output?.emitted_vars).toEqual({ list: [1] })
    expect(Object.isFrozen(record)).toBe(true)
    expect(Object.isFrozen(record?.output?.emitted_vars?.['list'])).toBe(true)
    expect(() => Object.assign(record ?? {}, { status: 'running' })).toThrow(TypeError)
    expect(() => manager.getAllTasks().push(record as never)).not.toThrow()
    expect(manager.getAllTasks()).toHaveLength(1)
  })

  it('A8: aborting the registered controller cancels the task, before or after its registration', () => {
    const { manager } = setUp()
    const [before, after] = [new AbortController(), new AbortController()]
    before.abort()
    expect(manager.registerTask(input('before', { abortController: before })).status).toBe('running')
    manager.registerTask(input('after', { abortController: after }))
    after.abort()
    expect(manager.getAllTasks().map((task) => task.status)).toEqual(['cancelled', 'cancelled'])
  })
})

describe('a controller that is not an ordinary one', () => {
  /** A controller whose signal throws in one of its methods. */
  const throwingIn = (method: 'addEventListener' | 'removeEventListener' | 'aborted'): AbortController => {
    const controller = new AbortController()
    Object.defineProperty(controller.signal, method, {
      get: () => {
        throw new Error(`no ${method}`)
      },
    })
    return controller
  }

  it.each(['addEventListener', 'aborted'] as const)(
    'A3: is refused with nothing changed when its signal throws in %s',
    async (method) => {
      const { manager } = setUp({ maxAsyncTasks: 1 })
      const run = vi.fn()
      const transitions: unknown[] = []
      manager.transitions$.subscribe((transition) => transitions.push(transition))
      const reservation = manager.tryReserveAsyncSlot()!
      const given = () => input('a', { abortController: throwingIn(method) })
      expect(() => manager.launch(given(), run, reservation)).toThrow(Error)
      expect(() => manager.registerTask(given())).toThrow(Error)
      expect([manager.getAllTasks(), transitions]).toEqual([[], []])
      expect(manager.cancelReservation(reservation)).toBe(true)
      expect(manager.canLaunchAsync().allowed).toBe(true)
      await manager.dispose()
      expect(run).not.toHaveBeenCalled()
    },
  )

  it('A2: stops nothing when its signal throws in removeEventListener', async () => {
    const { manager, onError } = setUp()
    const ended: string[] = []
    manager.onTaskCompleted(({ id }) => ended.push(id))
    const abortController = throwingIn('removeEventListener')
    // Its listener cannot be removed; an aborted signal keeps none.
    onTestFinished(() => abortController.abort())
    manager.registerTask(input('a', { abortController }))
    manager.registerTask(input('b'))
    manager.onTaskCompleted(() => manager.completeTask('b', {}))
    manager.completeTask('a', {})
    expect(ended).toEqual(['a', 'b'])
    expect(onError).toHaveBeenCalledWith(expect.any(Error), { source: 'abort-listener' })
    await manager.dispose()
  })

  it('may be frozen', async () => {
    const { manager } = setUp()
    const abortController = new AbortController()
    Object.freeze(abortController.signal)
    Object.freeze(abortController)
    manager.launch(input('a', { abortController }), () => new Promise<never>(() => undefined))
    expect(manager.cancelTask('a')).toBe(true)
    await manager.dispose()
  })

  it('A9: keeps no listener of a task that was not registered', () => {
    const { manager } = setUp()
    const { signal, ...rest } = { signal: new AbortController().signal }
    const remove = vi.spyOn(signal, 'removeEventListener')
    const abortController = { ...rest, signal, abort: () => undefined } as AbortController
    manager.registerTask(input('a'))
    expect(() => manager.registerTask(input('a', { abortController }))).toThrow(TaskIdInUseError)
    expect(remove).toHaveBeenCalledOnce()
  })
})

describe('deadlines', () => {
  it('a task that outlives its deadline and its grace fails with a message that names the limit', () => {
    const { manager, clock } = setUp({ graceMs: 50 })
    const abortController = new AbortController()
    manager.registerTask(input('a', { abortController, timeoutMs: 2_000 }))
    clock.advance(1_999)
    expect(abortController.signal.aborted).toBe(false)
    clock.advance(1)
    expect(abortController.signal.aborted).toBe(true)
    expect(manager.getTask('a')?.status).toBe('running')
    clock.advance(50)
    expect(manager.getTask('a')).toMatchObject({
      status: 'failed',
      error: 'Task timed out: it did not end within its limit of 2 s.',
    })
    expect(clock.pending).toBe(0)
  })

  it('after its deadline a task fails or is cancelled, whatever it reports', () => {
    const { manager, clock } = setUp({ graceMs: 50 })
    for (const id of ['completes', 'fails', 'cancelled']) manager.registerTask(input(id, { timeoutMs: 10 }))
    clock.advance(10)
    expect(manager.completeTask('completes', {})).toBe(false)
    expect(manager.failTask('fails', 'disk full')).toBe(true)
    expect(manager.cancelTask('cancelled')).toBe(true)
    expect(manager.getAllTasks().map((task) => [task.status, task.error])).toEqual([
      ['failed', 'Task timed out: it did not end within its limit of 10 ms.'],
      ['failed', 'Task timed out: it did not end within its limit of 10 ms. It then reported: disk full'],
      ['cancelled', undefined],
    ])
  })

  it.each<[object, RegExp]>([
    [{ timeoutMs: 1000 }, /^Task timed out: it did not end within its limit of 1 s\.$/],
    [{ budget: { seconds: 1, wrapUpMs: 0 } }, /^Budget exceeded: its limit is [^:]+(Spent: [^:]+)?$/],
  ])('the error of a run that rejects with the reason of its abort is said once: %j', async (more, message) => {
    const { manager, clock } = setUp()
    manager.launch({ ...input('a'), ...more }, (_input, { signal }) => {
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    })
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(1000)
    clock.advance(1)
    await manager.waitFor(['a'])
    expect(manager.getTask('a')?.error).toMatch(message)
  })

  it('T4: what a run returns after its deadline is kept, and shown to the model', async () => {
    const { manager, clock } = setUp({ graceMs: 50 })
    manager.launch({ id: 'a', subagentName: 's', goalPrompt: 'g', timeoutMs: 10 }, async ({ id }, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return { final_message: `half of ${id}` }
    })
    await Promise.resolve()
    clock.advance(10)
    await new Promise((resolve) => setImmediate(resolve))
    const late = { status: 'failed', lateOutput: { final_message: 'half of a' } }
    expect(manager.getTask('a')).toMatchObject(late)
    expect(Object.isFrozen(manager.getTask('a'))).toBe(true)
    expect(
      JSON.parse(new AsyncTaskReminderService(manager).formatCompletionNotification(manager.getTask('a')!)),
    ).toEqual({
      agent_id: 'a',
      status: 'failed',
      error: 'Task timed out: it did not end within its limit of 10 ms. It then returned a result, too late.',
      error_code: 'TASK_TIMEOUT',
      late_output: { final_message: 'half of a' },
    })
    const restored = AsyncTaskManager.restore(JSON.parse(JSON.stringify(manager.getAllTasks())) as never)
    expect(restored.getTask('a')).toMatchObject(late)
  })

  it('T9: a run that has offered an output completes with it after its deadline, is not repeated, and says so', async () => {
    const { manager, clock } = setUp({ graceMs: 50 })
    const runs: string[] = []
    const input = { subagentName: 's', goalPrompt: 'g', timeoutMs: 10 }
    const run = async ({ id }: { id: string }, { signal, offer }: RunContext) => {
      runs.push(id)
      offer('the first result')
      offer({ final_message: 'the second result', emitted_vars: { n: 2 } })
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw signal.reason
    }
    const retry = { attempts: 3, on: ['timeout' as const], backoff: { initialMs: 0 } }
    manager.launch({ ...input, id: 'a', retry }, run)
    manager.launch({ ...input, id: 'stuck' }, (_input, { offer }) => {
      offer('in time')
      return new Promise(() => undefined)
    })
    await Promise.resolve()
    clock.advance(10)
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(50)
    await new Promise((resolve) => setImmediate(resolve))
    expect(runs).toEqual(['a'])
    expect(manager.getTask('stuck')).toMatchObject({ status: 'completed', output: { final_message: 'in time' } })
    expect(
      JSON.parse(new AsyncTaskReminderService(manager).formatCompletionNotification(manager.getTask('a')!)),
    ).toEqual({
      agent_id: 'a',
      terminate_reason: 'TASK_TIMEOUT',
      emitted_vars: { n: 2 },
      final_message: 'the second result',
    })
    expect(clock.pending).toBe(0)
  })

  it('accepts a deadline that is longer than a timer of the platform can be', () => {
    const { manager, clock } = setUp({ graceMs: 0 })
    const days = 40 * 24 * 3_600_000
    manager.registerTask(input('a', { timeoutMs: days }))
    clock.advance(days - 1)
    expect(manager.getTask('a')?.status).toBe('running')
    clock.advance(1)
    expect(manager.getTask('a')?.status).toBe('failed')
  })
})

describe('disposal', () => {
  it('A9: cancels what runs, completes the streams, calls no callback afterwards and leaves no timer', async () => {
    const { manager, clock } = setUp({ graceMs: 20 })
    const calls: string[] = []
    manager.onTaskCancelled((task) => calls.push(`cancelled ${task.id}`))
    manager.settled$.subscribe({ complete: () => calls.push('complete') })
    manager.registerTask(input('a', { timeoutMs: 1_000 }))
    manager.launch(input('b'), () => new Promise(() => undefined))
    await new Promise((resolve) => setImmediate(resolve))

    const disposal = manager.dispose()
    expect(calls).toEqual(['cancelled a', 'cancelled b', 'complete'])
    clock.advance(20)
    await disposal
    expect(manager.dispose()).toBe(disposal)

    expect(() => manager.registerTask(input('c'))).toThrow(DisposedError)
    expect(manager.tryReserveAsyncSlot()).toBeNull()
    expect(manager.canLaunchAsync().allowed).toBe(false)
    expect(manager.completeTask('a', {})).toBe(false)
    expect(manager.getTask('a')?.status).toBe('cancelled')
    manager.onTaskCancelled(() => calls.push('too late'))
    expect(calls).toHaveLength(3)
    expect(clock.pending).toBe(0)
    expect(manager.actor.getSnapshot().status).toBe('done')
  })
})

describe('restoring', () => {
  it('owes what was owed or leased, fails what ran, and continues the sequence', () => {
    const { manager } = setUp()
    for (const id of ['delivered', 'leased', 'owed', 'ran']) manager.registerTask(input(id))
    manager.completeTask('delivered', {})
    manager.markNotified('delivered')
    manager.completeTask('leased', { final_message: 'kept' })
    manager.lease()
    manager.failTask('owed', 'broken')
    const journal = JSON.parse(JSON.stringify(manager.getAllTasks())) as never

    const restored = AsyncTaskManager.restore(journal, { clock: createManualClock(9_000) })
    expect(restored.getPendingNotifications().map((task) => [task.id, task.output ?? task.error])).toEqual([
      ['leased', { final_message: 'kept' }],
      ['owed', 'broken'],
      [
        'ran',
        `The process that ran this task (subagent 'helper', goal "do it") ended before the task did. Launch it again if its result is still needed.`,
      ],
    ])
    expect(restored.getTask('delivered')?.delivery).toBe('delivered')
    const seqs = restored.getAllTasks().map((task) => task.seq)
    expect(restored.registerTask(input('new')).seq).toBeGreaterThan(Math.max(...seqs))
    expect(() => restored.registerTask(input('owed'))).toThrow(TaskIdInUseError)
  })

  it('fills in what an older journal lacks: sequence numbers, owners, deliveries and errors', () => {
    const old = { subagentName: 's', goalPrompt: 'g', launchedAt: 1 } as const
    const restored = AsyncTaskManager.restore(
      [
        { ...old, id: 'later', status: 'failed', completedAt: 9 },
        { ...old, id: 'earlier', status: 'completed', completedAt: 3 },
        { ...old, id: 'delivered', status: 'completed', completedAt: 4, notifiedAt: 5 },
        { ...old, id: 'dropped', status: 'cancelled' },
        { ...old, id: 'ran', status: 'running', progress: { progress: 0.5 } },
      ],
      { clock: createManualClock(9_000) },
    )
    expect(restored.getAllTasks().map(({ id, seq, owner, delivery }) => [id, seq, owner, delivery])).toEqual([
      ['dropped', 1, 'main', 'none'],
      ['earlier', 2, 'main', 'owed'],
      ['delivered', 3, 'main', 'delivered'],
      ['later', 4, 'main', 'owed'],
      ['ran', 5, 'main', 'owed'],
    ])
    expect(restored.getTask('earlier')?.output).toEqual({})
    expect(restored.getTask('later')?.error).toBe('The task failed.')
    expect(restored.getTask('dropped')?.completedAt).toBe(9_000)
    expect(restored.getTask('ran')).toMatchObject({ completedAt: 9_000, progress: { progress: 0.5 } })
  })

  it('A7: keeps as many that owe nothing as the history does', () => {
    const records = ['a', 'b', 'c', 'd'].map((id, at) => ({
      ...input(id),
      owner: 'main',
      status: 'completed' as const,
      delivery: 'delivered' as const,
      launchedAt: 1,
      completedAt: 2,
      seq: at + 1,
      output: {},
    }))
    const pruned: string[] = []
    const restored = AsyncTaskManager.restore(records, { maxAsyncTasks: 1, clock: createManualClock(9_000) })
    restored.transitions$.subscribe(({ kind, taskId }) => kind === 'history' && pruned.push(taskId))
    expect(restored.getAllTasks().map(({ id }) => id)).toEqual(['c', 'd'])
    restored.setMaxAsyncTasks(0)
    expect(restored.getAllTasks()).toEqual([])
    expect(pruned).toEqual(['c', 'd'])
  })

  it('refuses a sequence number after which later ones would not be exact', () => {
    const record = { id: 'a', subagentName: 's', goalPrompt: 'g', launchedAt: 1, status: 'completed' as const }
    expect(() => AsyncTaskManager.restore([{ ...record, seq: 2 ** 53 - 1 }])).toThrow(
      /^records\[0\]\.seq: got 9007199254740991, expected /,
    )
    const restored = AsyncTaskManager.restore([{ ...record, seq: 2 ** 52 }])
    restored.registerTask(input('b'))
    restored.registerTask(input('c'))
    expect(restored.getAllTasks().map(({ seq }) => seq - 2 ** 52)).toEqual([0, 1, 2])
  })

  it('refuses a malformed journal and says where', () => {
    const record = { id: 'a', subagentName: 's', goalPrompt: 'g', status: 'running', launchedAt: 1 } as const
    expect(() => AsyncTaskManager.restore([record, record])).toThrow(
      'records[1].id: got "a", expected an id that no earlier record has.',
    )
    expect(() => AsyncTaskManager.restore([{ ...record, status: 'odd' as never }])).toThrow(
      'records[0].status: got "odd"',
    )
  })
})

it('A9: `await using` disposes the manager, which cancels what still runs', async () => {
  const { manager, clock } = setUp()
  const abortController = new AbortController()
  {
    await using used = manager
    used.registerTask(input('a', { abortController }))
  }
  expect(abortController.signal.aborted).toBe(true)
  expect(manager.getTask('a')?.status).toBe('cancelled')
  expect(() => manager.registerTask(input('b'))).toThrow(DisposedError)
  expect(clock.pending).toBe(0)
})

describe('a call', () => {
  it('A3: reserves nothing that has expired by then', () => {
    const { manager } = setUp({ maxAsyncTasks: 1 })
    expect(manager.tryReserveAsyncSlot({ ttlMs: 0 })).toBeNull()
    expect(manager.canLaunchAsync().allowed).toBe(true)
  })

  it('A3: reserves a slot for five seconds by default', () => {
    const { manager, clock } = setUp({ maxAsyncTasks: 1 })
    expect(manager.tryReserveAsyncSlot()).toEqual(expect.any(String))
    clock.advance(4_999)
    expect(manager.canLaunchAsync().allowed).toBe(false)
    clock.advance(1)
    expect(manager.canLaunchAsync().allowed).toBe(true)
  })

  it('returns the record as registered, also when a subscriber ends the task at once', () => {
    const { manager } = setUp()
    manager.transitions$.subscribe(({ taskId, to }) => {
      if (to === 'running') manager.completeTask(taskId, {})
    })
    expect(manager.registerTask(input('a')).status).toBe('running')
    expect(manager.getTask('a')?.status).toBe('completed')
  })

  it('F8: that cancels all starts nothing that has waited', () => {
    const { manager } = setUp({ maxAsyncTasks: 1, whenFull: 'queue' })
    const changes: string[] = []
    const reservation = manager.tryReserveAsyncSlot() ?? ''
    manager.registerTask(input('a'), reservation)
    manager.launch(input('b'), () => Promise.resolve({}))
    manager.transitions$.subscribe(({ taskId, to }) => changes.push(`${taskId} ${to}`))
    expect(manager.cancelAll({ owner: 'main' })).toEqual(['b', 'a'])
    expect(changes).toEqual(['b cancelled', 'a cancelled'])
  })

  it('F8: says whether a launch may wait: not when the queue is full, and not after dispose', async () => {
    const { manager } = setUp({ maxAsyncTasks: 0, whenFull: 'queue', queue: { max: 1 } })
    expect(manager.canQueue()).toBe(true)
    manager.launch(input('a'), () => Promise.resolve({}))
    expect([manager.canQueue(), manager.queuePosition('a'), manager.queuePosition('b')]).toEqual([false, 1, undefined])
    expect(manager.canLaunchAsync().reason).toContain('1')
    manager.cancelTask('a')
    expect(manager.canQueue()).toBe(true)
    await manager.dispose()
    expect(manager.canQueue()).toBe(false)
    expect(manager.canLaunchAsync()).toEqual({ allowed: false, reason: 'The task manager was disposed' })
    expect(manager.tryReserveAsyncSlot()).toBeNull()
  })

  it('A6: leases a task once that is named twice', () => {
    const { manager } = setUp()
    manager.registerTask(input('a'))
    manager.completeTask('a', {})
    expect(manager.lease({ taskIds: ['a', 'a'] })?.tasks.map(({ id }) => id)).toEqual(['a'])
    expect(manager.actor.getSnapshot()).toMatchObject({ owed: 0, leased: 1 })
  })

  it('F2: reads 16384 bytes of an output by default, and none of a task that has written nothing', () => {
    const { manager } = setUp()
    for (const id of ['a', 'b']) manager.registerTask(input(id))
    manager.appendOutput('a', 'x'.repeat(20_000))
    expect(manager.readOutput('a')).toMatchObject({ nextCursor: 16_384, skippedBytes: 0, remainingBytes: 3_616 })
    expect(manager.readOutput('b')).toEqual({ text: '', nextCursor: 0, skippedBytes: 0, remainingBytes: 0 })
    expect(manager.readOutput('c')).toBeUndefined()
  })

  it('A9: admits nothing in a handler of what dispose cancels', async () => {
    const { manager } = setUp()
    const run = vi.fn(() => Promise.resolve({}))
    const thrown: unknown[] = []
    manager.onTaskCancelled(() => {
      for (const call of [() => manager.launch(input('b'), run), () => manager.registerTask(input('c'))]) {
        try {
          call()
        } catch (error) {
          thrown.push(error)
        }
      }
    })
    manager.registerTask(input('a'))
    await manager.dispose()
    expect(thrown).toEqual([expect.any(DisposedError), expect.any(DisposedError)])
    expect(manager.getAllTasks().map(({ id }) => id)).toEqual(['a'])
    expect(run).not.toHaveBeenCalled()
  })

  it('A1: completes nothing that reading its own argument has completed', () => {
    const { manager } = setUp()
    manager.registerTask(input('a'))
    const output = {
      get answer(): string {
        manager.completeTask('a', { final_message: 'first' })
        return 'second'
      },
    }
    expect(manager.completeTask('a', output)).toBe(false)
    expect(manager.getTask('a')).toMatchObject({ output: { final_message: 'first' } })
  })

  it('keeps the name of a subagent as one line, which lists and instructions show', () => {
    const { manager } = setUp()
    expect(manager.registerTask(input('a', { subagentName: 'helper\n[2] other' })).subagentName).not.toMatch(/[\r\n]/)
  })
})
