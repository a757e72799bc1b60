/**
 * Limits and usage of each owner, in any order of launches, ends, cancellations, pauses, transfers, reservations, new limits and crashes, against a
 * model that is one list: H9. FC_NUM_RUNS=100000 explores that many orders.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AsyncTaskManager, type RunContext } from '../../src/index.js'
import { memoryStore, type MemoryStore } from '../../src/store/index.js'
import { createManualClock } from '../../src/testing/index.js'
import { TaskLimitError } from '../../src/errors.js'

/** Breaks a manager. */
export type AlterManager = (manager: AsyncTaskManager) => void

const OWNERS = ['ann', 'bob', 'cleo'] as const
const MAX_QUEUED = 3
const MAX_KEPT = 2
const QUEUE_MAX = 7

type Owner = (typeof OWNERS)[number]

export type Step =
  | {
      readonly do: 'launch'
      readonly owner: Owner
      readonly priority: number
      readonly queues: boolean
      readonly usesReservation: boolean
    }
  | { readonly do: 'end' | 'cancel' | 'spend'; readonly nth: number }
  | { readonly do: 'reserve'; readonly owner: Owner; readonly ms: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'pause' | 'resume'; readonly owner: Owner }
  | { readonly do: 'release'; readonly owner: Owner; readonly to: Owner }
  | { readonly do: 'limit'; readonly max: number }
  | { readonly do: 'crash' }

const nth = fc.nat(20)
const owner = fc.constantFrom(...OWNERS, 'ann' as const)
const kind = <Name extends Step['do']>(name: Name) => fc.constant(name)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: kind('launch'),
      owner,
      priority: fc.nat(1),
      queues: fc.constantFrom(true, true, false),
      usesReservation: fc.boolean(),
    }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constantFrom('end' as const, 'end' as const, 'cancel' as const), nth }) },
  { weight: 2, arbitrary: fc.record({ do: kind('spend'), nth }) },
  { weight: 2, arbitrary: fc.record({ do: kind('reserve'), owner, ms: fc.constantFrom(50, 100) }) },
  { weight: 2, arbitrary: fc.record({ do: kind('advance'), ms: fc.constantFrom(50, 100) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('pause' as const, 'resume' as const), owner }) },
  { weight: 1, arbitrary: fc.record({ do: kind('release'), owner, to: owner }) },
  { weight: 1, arbitrary: fc.record({ do: kind('limit'), max: fc.constantFrom(-1, 1, 2, 4) }) },
  { weight: 1, arbitrary: fc.record({ do: kind('crash') }) },
)

interface ModelTask {
  readonly id: string
  readonly priority: number
  owner: Owner
  status: 'queued' | 'running' | 'ended'
}

/** What must happen: a list of tasks in the order of their launch, and what limits them. */
class Model {
  now = 0
  max = 4
  readonly share: number
  readonly tasks: ModelTask[] = []
  readonly paused = new Set<Owner>()
  readonly reservations = new Map<string, { readonly owner: Owner; readonly endsAt: number }>()
  /** The ids of the ended tasks of each owner, in the order in which they ended. */
  readonly ended = new Map<Owner, string[]>(OWNERS.map((each) => [each, []]))
  /** How many steps the tasks of each owner have used. */
  readonly spent = new Map<Owner, number>()

  /** @param share `ownerLimits.maxRunning` */
  constructor(share: number) {
    this.share = share
  }

  of = (status: ModelTask['status'], by?: Owner): ModelTask[] =>
    this.tasks.filter((task) => task.status === status && (by === undefined || task.owner === by))

  get maxOfOwner(): number {
    if (this.share >= 1) return this.share
    return this.max === -1 ? Infinity : Math.max(1, Math.ceil(this.max * this.share))
  }

  heldBy = (by: Owner): number =>
    this.of('running', by).length + [...this.reservations.values()].filter((each) => each.owner === by).length

  hasRoom = (): boolean => this.max === -1 || this.of('running').length + this.reservations.size < this.max

  hasRoomFor = (by: Owner): boolean => this.hasRoom() && this.heldBy(by) < this.maxOfOwner

  startNext(): void {
    for (const [id, { endsAt }] of this.reservations) if (endsAt <= this.now) this.reservations.delete(id)
    for (;;) {
      const ready = this.of('queued').filter((task) => !this.paused.has(task.owner) && this.hasRoomFor(task.owner))
      const [next] = ready.sort((a, b) => b.priority - a.priority)
      if (next === undefined) return
      next.status = 'running'
    }
  }

  end(task: ModelTask): void {
    task.status = 'ended'
    this.ended.get(task.owner)?.push(task.id)
    this.startNext()
  }
}

const tick = async (): Promise<void> => {
  for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve))
}

class Real {
  readonly clock = createManualClock(0)
  readonly runs = new Map<string, { readonly end: () => void; readonly context: RunContext }>()
  readonly #share: number
  readonly #alter: AlterManager
  #processes = 0
  #store = memoryStore()
  manager: AsyncTaskManager

  constructor(share: number, alter: AlterManager) {
    this.#share = share
    this.#alter = alter
    this.manager = this.#open(4)
  }

  readonly run = ({ id }: { readonly id: string }, context: RunContext): Promise<string> => {
    const process = this.#processes
    return new Promise((resolve) => {
      if (process !== this.#processes) return
      const end = (): void => resolve('done')
      this.runs.set(id, { end, context })
      context.signal.addEventListener('abort', end)
    })
  }

  async crash(): Promise<void> {
    const left: MemoryStore = this.#store.copy()
    const max = this.manager.getMaxAsyncTasks()
    this.#processes += 1
    this.runs.clear()
    void this.manager.dispose()
    this.#store = left
    this.manager = this.#open(max)
    await this.manager.recovered
  }

  #open(maxAsyncTasks: number): AsyncTaskManager {
    const manager = new AsyncTaskManager({
      store: this.#store,
      clock: this.clock,
      graceMs: 0,
      maxAsyncTasks,
      whenFull: 'queue',
      queue: { max: QUEUE_MAX, agingMs: -1 },
      ownerLimits: { maxRunning: this.#share, maxQueued: MAX_QUEUED, maxKept: MAX_KEPT },
      onError: (error) => assert.fail(String(error)),
      findRunner: () => ({ run: this.run, retry: { attempts: 100, on: ['interrupted'], backoff: { initialMs: 0 } } }),
    })
    // The results are of no interest here, only the records.
    manager.settled$.subscribe(({ id }) => manager.markNotified(id))
    this.#alter(manager)
    return manager
  }
}

/** The launch that must happen: `running`, `queued`, or the beginning of the error. */
function expectedLaunch(model: Model, by: Owner, queues: boolean, hasReservation: boolean): string {
  const isHeld = model.paused.has(by)
  if (!isHeld && (hasReservation || model.hasRoomFor(by))) return 'running'
  if (!queues && !isHeld) {
    return model.hasRoom()
      ? `Max async tasks of "${by}" (${model.maxOfOwner}, ownerLimits.maxRunning) reached: ${model.heldBy(by)} run`
      : `Max async tasks (${model.max}) reached`
  }
  if (model.of('queued').length >= QUEUE_MAX) {
    return `Max async tasks (${model.max}) reached, and the queue is full`
  }
  const own = model.of('queued', by).length
  return own >= MAX_QUEUED
    ? `Max waiting tasks of "${by}" (${MAX_QUEUED}, ownerLimits.maxQueued) reached: ${own} wait`
    : 'queued'
}

async function take(model: Model, real: Real, present: Step): Promise<void> {
  const { manager } = real
  switch (present.do) {
    case 'launch': {
      const { owner: by, priority, queues, usesReservation } = present
      model.startNext()
      const [reservationId] = [...model.reservations].find(([, each]) => usesReservation && each.owner === by) ?? []
      const id = `t${model.tasks.length}`
      const expected = expectedLaunch(model, by, queues, reservationId !== undefined)
      let outcome: string
      try {
        const input = {
          id,
          subagentName: 's',
          goalPrompt: 'g',
          owner: by,
          priority,
          whenFull: queues ? 'queue' : 'refuse',
        }
        const retry = { attempts: 100, on: ['interrupted'], backoff: { initialMs: 0 } } as const
        outcome = manager.launch(input as never, { run: real.run, retry }, reservationId).status
        if (reservationId !== undefined) model.reservations.delete(reservationId)
        model.tasks.push({ id, priority, owner: by, status: outcome as 'queued' | 'running' })
      } catch (error) {
        if (!(error instanceof TaskLimitError)) throw error
        outcome = error.message
        assert.equal(error.owner, outcome.includes('"') ? by : undefined)
        // So that every id is new.
        model.tasks.push({ id, priority, owner: by, status: 'ended' })
      }
      assert.ok(outcome.startsWith(expected), `${id} of ${by}: ${outcome}, expected ${expected}`)
      return
    }
    case 'end': {
      const running = model.of('running')
      const task = running[present.nth % running.length]
      if (task === undefined) return
      real.runs.get(task.id)?.end()
      await tick()
      model.end(task)
      return
    }
    case 'spend': {
      const running = model.of('running')
      const task = running[present.nth % running.length]
      if (task === undefined) return
      real.runs.get(task.id)?.context.spend({ steps: 1 })
      model.spent.set(task.owner, (model.spent.get(task.owner) ?? 0) + 1)
      return
    }
    case 'cancel': {
      const active = [...model.of('queued'), ...model.of('running')]
      const task = active[present.nth % active.length]
      if (task === undefined) return
      manager.cancelTask(task.id)
      await tick()
      model.end(task)
      return
    }
    case 'reserve': {
      model.startNext()
      const id = manager.tryReserveAsyncSlot({ ttlMs: present.ms, owner: present.owner })
      assert.equal(id !== null, model.hasRoomFor(present.owner), 'a reservation is given when there is room')
      if (id !== null) model.reservations.set(id, { owner: present.owner, endsAt: model.now + present.ms })
      return
    }
    case 'advance':
      for (let passed = 0; passed < present.ms; passed += 50) {
        real.clock.advance(50)
        model.now += 50
        model.startNext()
      }
      return
    case 'pause':
      manager.pause(present.owner)
      model.paused.add(present.owner)
      return
    case 'resume':
      manager.resume(present.owner)
      model.paused.delete(present.owner)
      model.startNext()
      return
    case 'release': {
      const { owner: from, to } = present
      if (from === to) return
      manager.releaseOwner(from, { to })
      model.paused.delete(from)
      for (const task of model.tasks) if (task.owner === from && task.status !== 'ended') task.owner = to
      model.startNext()
      return
    }
    case 'limit':
      manager.setMaxAsyncTasks(present.max)
      model.max = present.max
      model.startNext()
      return
    case 'crash':
      await real.crash()
      model.reservations.clear()
      // The next run of a paused task waits.
      for (const task of model.of('running')) if (model.paused.has(task.owner)) task.status = 'queued'
      model.startNext()
  }
}

function compare(model: Model, real: Real): void {
  const { manager } = real
  for (const { id, status } of model.tasks) {
    if (status !== 'ended') assert.equal(manager.getTask(id)?.status, status, id)
  }
  // The last records of each owner are kept, whatever the others do.
  for (const [by, ids] of model.ended) {
    const records = manager.getAllTasks().filter((task) => task.owner === by && task.delivery !== 'owed')
    const kept = records.filter((task) => task.completedAt !== undefined && task.isNote !== true)
    // The reminder of a pause is a record, too.
    const notes = records.filter(({ isNote }) => isNote === true).length
    assert.deepEqual(
      kept.map(({ id }) => id).sort(),
      ids.slice(Math.min(0, notes - MAX_KEPT) || ids.length).sort(),
      `the records of ${by}`,
    )
  }
  const { task } = manager.registry.pools
  for (const by of OWNERS) {
    const queued = model.of('queued', by).length
    assert.deepEqual([task.heldBy(by), task.queue.useOf(by).size], [model.heldBy(by), queued], by)
    assert.equal(manager.spent(by).steps ?? 0, model.spent.get(by) ?? 0, `what ${by} has spent`)
  }
}

export const ownerLimitsProperty = (alter: AlterManager = () => undefined) =>
  fc.asyncProperty(
    fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }),
    fc.constantFrom(0.5, 1, 2),
    async (steps, share) => {
      const [model, real] = [new Model(share), new Real(share, alter)]
      try {
        for (const present of steps) {
          await take(model, real, present)
          await tick()
          compare(model, real)
        }
        for (const by of OWNERS) await take(model, real, { do: 'resume', owner: by })
        await take(model, real, { do: 'limit', max: 4 })
        await take(model, real, { do: 'advance', ms: 100 })
        // Whatever waits starts in the end, and nothing is left.
        for (let n = 0; model.of('running').length > 0; n += 1) {
          await tick()
          compare(model, real)
          await take(model, real, { do: 'end', nth: n })
        }
        assert.deepEqual(model.of('queued'), [])
        compare(model, real)
      } finally {
        await real.manager.dispose({ cancel: true })
      }
      assert.equal(real.clock.pending, 0)
    },
  )
