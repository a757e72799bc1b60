/**
 * Tasks that wait, are repeated, or exceed a budget, in any order of launches, ends, cancellations, reservations and crashes, against a
 * model that is one list: F8, F9, F10. FC_NUM_RUNS=100000 explores that many orders.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AsyncTaskManager, type Runner, type RunContext } from '../../src/index.js'
import { memoryStore, type MemoryStore } from '../../src/store/index.js'
import { createManualClock } from '../../src/testing/index.js'
import { createControllableEngine, type ControllableEngine } from '../support/controllable-engine.js'
import type { RetryPolicy } from '../../src/protocol/retry-policy.js'

/** Breaks a manager. */
export type AlterManager = (manager: AsyncTaskManager, engine: ControllableEngine) => void

const BACKOFF_MS = 100
const WRAP_UP_MS = 150
const retry: RetryPolicy = {
  attempts: 3,
  on: ['rate-limited', 'interrupted'],
  backoff: { initialMs: BACKOFF_MS, factor: 1, jitter: false },
}

export type Step =
  | { readonly do: 'launch'; readonly priority: number; readonly queues: boolean; readonly repeats: boolean }
  | { readonly do: 'end'; readonly nth: number; readonly how: 'returned' | 'rate-limited' | 'broken' }
  | { readonly do: 'spend' | 'report late' | 'cancel' | 'conclude' | 'unreserve'; readonly nth: number }
  | { readonly do: 'reserve' | 'advance'; readonly ms: number }
  | { readonly do: 'deadline'; readonly nth: number; readonly inMs: number | null }
  | { readonly do: 'limit'; readonly max: number }
  | { readonly do: 'crash' }

const nth = fc.nat(20)
const ms = fc.constantFrom(0, 50, 100, 150, 300)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('launch' as const),
      priority: fc.nat(1),
      queues: fc.boolean(),
      repeats: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      nth,
      how: fc.constantFrom('returned' as const, 'rate-limited' as const, 'broken' as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(...(['spend', 'report late', 'cancel', 'conclude', 'unreserve'] as const)),
      nth,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('deadline' as const), nth, inMs: fc.constantFrom(50, 150, 300, null) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('reserve' as const, 'advance' as const), ms }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('limit' as const), max: fc.integer({ min: 0, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const) }) },
)

interface ModelTask {
  readonly id: string
  readonly priority: number
  readonly place: number
  readonly repeats: boolean
  status: 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'
  attempt: number
  /** It does not start before. */
  notBefore: number
  spent: number
  /** When it is stopped, because it exceeded its budget or was asked to conclude. */
  stopAt: number
  startedAt: number
  /** The time limit of its runs, if one was set. */
  timeoutMs: number
}

const endOf = ({ stopAt, startedAt, timeoutMs }: ModelTask): number => Math.min(stopAt, startedAt + timeoutMs)

/** What must happen: a list of tasks, a limit, and reservations. */
class Model {
  now = 0
  max = 1
  readonly tasks: ModelTask[] = []
  readonly reservations = new Map<string, number>()
  /** What was started in the last step, as `id attempt`. */
  started: string[] = []

  running = (): ModelTask[] => this.tasks.filter(({ status }) => status === 'running')

  hasRoom = (): boolean => this.running().length + this.reservations.size < this.max

  queue = (): ModelTask[] =>
    this.tasks.filter(({ status }) => status === 'queued').sort((a, b) => b.priority - a.priority || a.place - b.place)

  startNext(): void {
    for (const [id, end] of this.reservations) if (end <= this.now) this.reservations.delete(id)
    for (;;) {
      const next = this.queue().find(({ notBefore }) => notBefore <= this.now)
      if (next === undefined || !this.hasRoom()) return
      this.start(next)
    }
  }

  start(task: ModelTask): void {
    task.status = 'running'
    task.startedAt = this.now
    task.stopAt = Infinity
    this.started.push(`${task.id} ${task.attempt}`)
  }

  advance(by: number): void {
    const end = this.now + by
    for (;;) {
      const times = [
        ...this.reservations.values(),
        ...this.queue().map(({ notBefore }) => notBefore),
        ...this.running().map(endOf),
      ]
      const next = Math.min(...times.filter((time) => time > this.now && time <= end))
      if (next === Infinity) break
      this.now = next
      for (const task of this.running()) if (endOf(task) <= this.now) task.status = 'failed'
      this.startNext()
    }
    this.now = end
  }

  crash(): void {
    this.reservations.clear()
    for (const task of this.tasks) {
      if (task.status !== 'running') continue
      const isRepeated = task.repeats && task.attempt < retry.attempts && task.spent <= 1
      if (!isRepeated) task.status = 'failed'
      else {
        task.attempt += 1
        this.start(task)
      }
    }
    this.startNext()
  }
}

/** A manager, and what its runs do: a run that is aborted stops at once. */
class Real {
  readonly clock = createManualClock()
  readonly contexts: { readonly key: string; readonly context: RunContext }[] = []
  started: string[] = []
  store: MemoryStore = memoryStore()
  engine: ControllableEngine
  manager: AsyncTaskManager
  readonly #alter: AlterManager
  readonly #seen = new Set<string>()

  constructor(alter: AlterManager) {
    this.#alter = alter
    ;[this.engine, this.manager] = this.#open(1)
  }

  readonly runner: Runner = ({ id }, context) => {
    const key = `${id} ${context.attempt}`
    this.contexts.push({ key, context })
    return new Promise(() => undefined)
  }

  #open(maxAsyncTasks: number): [ControllableEngine, AsyncTaskManager] {
    const engine = createControllableEngine((event) => {
      if ('started' in event) this.#note(event.started.id)
    })
    const manager = new AsyncTaskManager({
      maxAsyncTasks,
      engine,
      clock: this.clock,
      store: this.store,
      graceMs: 50,
      onError: () => undefined,
      findRunner: (name) => ({ run: this.runner, ...(name === 'repeated' && { retry }) }),
    })
    this.#alter(manager, engine)
    return [engine, manager]
  }

  /** F9: a run is stored before it starts, and starts once. */
  #note(id: string): void {
    const row = this.store
      .copy()
      .open()
      .tasks.find((task) => task.id === id)
    const key = `${id} ${row?.attempt ?? 0}`
    assert.equal(row?.status, 'running', `${key} is stored as running before it starts`)
    assert.ok(!this.#seen.has(key), `${key} starts once`)
    this.#seen.add(key)
    this.started.push(key)
  }

  /** Lets everything happen that happens without time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 6; turn += 1) {
      for (const run of this.engine.runs) {
        run.begin()
        if (run.signal.aborted) run.finish({ type: 'returned', value: {} })
      }
      for (let tick = 0; tick < 8; tick += 1) await Promise.resolve()
    }
  }

  async crash(): Promise<void> {
    const { manager, store } = this
    const max = manager.getMaxAsyncTasks()
    this.store = store.copy()
    const disposed = manager.dispose()
    await this.settle()
    await disposed
    this.started = []
    ;[this.engine, this.manager] = this.#open(max)
    await this.manager.recovered
  }

  async end(): Promise<void> {
    const disposed = this.manager.dispose()
    await this.settle()
    await disposed
  }
}

const pick = <T>(items: readonly T[], index: number): T | undefined => items[index % Math.max(items.length, 1)]

async function take(model: Model, real: Real, present: Step): Promise<void> {
  const { manager } = real
  switch (present.do) {
    case 'launch': {
      const { priority, queues, repeats } = present
      const id = `task-${model.tasks.length}`
      model.startNext()
      const status = model.hasRoom() ? 'running' : queues ? 'queued' : undefined
      const launch = () =>
        manager.launch(
          {
            id,
            subagentName: repeats ? 'repeated' : 'plain',
            goalPrompt: id,
            priority,
            whenFull: queues ? 'queue' : 'refuse',
            budget: { steps: 1, wrapUpMs: WRAP_UP_MS },
          },
          { run: real.runner, ...(repeats && { retry }) },
        )
      if (status === undefined) {
        assert.throws(launch, { code: 'TASK_LIMIT' })
        return
      }
      assert.equal(launch().status, status)
      const place = model.tasks.length
      const task: ModelTask = {
        id,
        priority,
        place,
        repeats,
        status: 'queued',
        attempt: 1,
        notBefore: 0,
        spent: 0,
        stopAt: Infinity,
        startedAt: 0,
        timeoutMs: Infinity,
      }
      model.tasks.push(task)
      if (status === 'running') model.start(task)
      return
    }
    case 'end': {
      const task = pick(model.running(), present.nth)
      if (task === undefined) return
      const run = real.engine.runs.findLast(({ work }) => work.id === task.id)
      const reason = Object.assign(new Error('no luck'), { code: present.how === 'broken' ? 'BROKEN' : 'RATE_LIMITED' })
      run?.finish(present.how === 'returned' ? { type: 'returned', value: {} } : { type: 'threw', reason })
      const isRepeated =
        present.how === 'rate-limited' && task.repeats && task.attempt < retry.attempts && task.stopAt === Infinity
      if (present.how === 'returned') task.status = 'completed'
      else if (!isRepeated) task.status = 'failed'
      else Object.assign(task, { status: 'queued', attempt: task.attempt + 1, notBefore: model.now + BACKOFF_MS })
      model.startNext()
      return
    }
    case 'spend': {
      const task = pick(model.running(), present.nth)
      if (task === undefined) return
      real.contexts.findLast(({ key }) => key === `${task.id} ${task.attempt}`)?.context.spend({ steps: 1 })
      task.spent += 1
      if (task.spent > 1 && task.stopAt === Infinity) task.stopAt = model.now + WRAP_UP_MS
      return
    }
    case 'conclude': {
      const task = pick(model.tasks, present.nth)
      if (task === undefined) return
      const isAsked = task.status === 'running' && task.stopAt === Infinity
      assert.equal(manager.concludeTask(task.id).changed, isAsked)
      if (isAsked) task.stopAt = model.now + WRAP_UP_MS
      return
    }
    case 'deadline': {
      const task = pick(model.tasks, present.nth)
      if (task === undefined) return
      const isChanged = task.status === 'running' && task.stopAt === Infinity
      const { inMs } = present
      assert.equal(manager.changeDeadline(task.id, inMs).changed, isChanged)
      if (isChanged) task.timeoutMs = inMs === null ? Infinity : model.now - task.startedAt + inMs
      return
    }
    case 'report late': {
      const old = real.contexts.filter(
        ({ key }) => !model.running().some((task) => key === `${task.id} ${task.attempt}`),
      )
      const context = pick(old, present.nth)?.context
      context?.spend({ steps: 1 })
      context?.append('late')
      context?.ask('late?').catch(() => undefined)
      return
    }
    case 'cancel': {
      const task = pick(model.tasks, present.nth)
      if (task === undefined) return
      const isActive = task.status === 'queued' || task.status === 'running'
      assert.equal(manager.cancelTask(task.id), isActive)
      if (isActive) task.status = 'cancelled'
      await real.settle()
      model.startNext()
      return
    }
    case 'reserve': {
      model.startNext()
      const id = manager.tryReserveAsyncSlot({ ttlMs: present.ms })
      assert.equal(id !== null, model.hasRoom() && present.ms > 0)
      if (id === null) return
      model.reservations.set(id, model.now + present.ms)
      return
    }
    case 'unreserve': {
      model.startNext()
      const id = pick([...model.reservations.keys()], present.nth)
      if (id === undefined) return
      assert.equal(manager.cancelReservation(id), true)
      model.reservations.delete(id)
      model.startNext()
      return
    }
    case 'advance':
      // A run that is stopped ends at once, and its slot is free then.
      for (let passed = 0; passed < present.ms; passed += 50) {
        real.clock.advance(50)
        await real.settle()
        model.advance(50)
      }
      return
    case 'limit':
      manager.setMaxAsyncTasks(present.max)
      model.max = present.max
      model.startNext()
      return
    case 'crash':
      await real.crash()
      model.crash()
  }
}

function compare(model: Model, real: Real, present: Step): void {
  const { manager } = real
  const order = (started: readonly string[]) => (present.do === 'crash' ? [...started].sort() : started)
  assert.deepEqual(order(real.started), order(model.started), 'the runs that were started')
  for (const { id, status, attempt, spent } of model.tasks) {
    const task = manager.getTask(id)
    // The history of what has ended is bounded.
    if (task === undefined && status !== 'queued' && status !== 'running') continue
    assert.equal(task?.status, status, id)
    assert.equal(task.attempt ?? 1, attempt, id)
    assert.equal(task.spent?.steps ?? 0, spent, id)
    assert.equal(task.questions, undefined)
    assert.equal(manager.readOutput(id)?.text, '')
  }
  assert.deepEqual(
    model.queue().map(({ id }) => manager.queuePosition(id)),
    model.queue().map((_, index) => index + 1),
  )
  assert.equal(manager.actor.getSnapshot().slots, model.running().length, 'slots')
}

export const waitingTasksProperty = (alter: AlterManager = () => undefined) =>
  fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
    const [model, real] = [new Model(), new Real(alter)]
    try {
      for (const present of steps) {
        ;[model.started, real.started] = [[], []]
        await take(model, real, present)
        await real.settle()
        compare(model, real, present)
      }
    } finally {
      await real.end()
    }
  })
