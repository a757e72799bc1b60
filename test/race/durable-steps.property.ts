/**
 * Durable runs of any steps, sleeps, waits, children and failures, whose process dies at any write, in any time: F20. A step whose end is stored is not
 * done again, all runs get the same results, each task is delivered once, a run that waits holds no slot, and nothing is left behind.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { steps } from '../../src/features/steps/steps.js'
import { AsyncTaskManager, type RunContext, type RunnerDefinition } from '../../src/index.js'
import { memoryStore, type MemoryStore, type Store, type StoreContents } from '../../src/store/index.js'
import { createManualClock } from '../../src/testing/index.js'

/** Breaks a manager, or what it finds in its store. */
export interface StepSabotage {
  readonly alter?: (manager: AsyncTaskManager) => void
  readonly found?: (contents: StoreContents, now: number) => StoreContents
}

/** What a run does, one after the other. */
type Part =
  /** @param failures how many attempts of the step fail; the last one counts when there are three */
  | { readonly do: 'step'; readonly failures: number }
  | { readonly do: 'together' | 'child' | 'fail once' | 'race' }
  | { readonly do: 'sleep'; readonly ms: number }
  | { readonly do: 'wait'; readonly timeoutMs: number | undefined }

type Action =
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'emit'; readonly nth: number }
  /** The process dies with one of its next writes; `isLost`: that one is not on the disk. */
  | { readonly do: 'crash'; readonly writes: number; readonly isLost: boolean }

interface Script {
  readonly parts: readonly Part[]
  readonly actions: readonly Action[]
  readonly releasesSlot: boolean
  readonly hasKey: boolean
}

const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ do: fc.constant('step' as const), failures: fc.constantFrom(0, 0, 1, 3) }),
  fc.record({
    do: fc.constantFrom('together' as const, 'child' as const, 'fail once' as const, 'race' as const),
  }),
  fc.record({ do: fc.constant('sleep' as const), ms: fc.constantFrom(0, 50, 200) }),
  fc.record({ do: fc.constant('wait' as const), timeoutMs: fc.constantFrom(undefined, 100) }),
)
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(0, 50, 100, 300) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('emit' as const), nth: fc.nat(1) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('crash' as const), writes: fc.nat(6), isLost: fc.boolean() }),
  },
)
const stepScripts: fc.Arbitrary<Script> = fc.record({
  parts: fc.array(part, { minLength: 1, maxLength: 6 }),
  actions: fc.array(action, { maxLength: 14 }),
  releasesSlot: fc.boolean(),
  hasKey: fc.boolean(),
})

/** A task that was interrupted more often in a row without getting on fails. */
const MAX_CRASHES = 4
const OWNER = 'main'
const TASKS = ['one', 'two'] as const
const STEP_MS = 50

const never = (): Promise<never> => new Promise(() => undefined)

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** How many turns without a write show that nothing happens any more without time. */
const QUIET_TURNS = 8

/** One process. */
interface Life {
  readonly manager: AsyncTaskManager
  readonly memory: MemoryStore
  /** What the next process finds; undefined while this one lives. */
  disk: MemoryStore | undefined
  /** How many writes there are before it dies; undefined for no end. */
  crash: { writes: number; readonly isLost: boolean } | undefined
}

class World {
  readonly clock = createManualClock(1000)
  readonly #script: Script
  readonly #sabotage: StepSabotage
  life: Life
  crashes = 0
  /** What runs got, by task and part. */
  readonly #seen = new Map<string, string>()
  readonly #dues = new Map<string, unknown>()
  readonly #failed = new Set<string>()
  readonly #told: string[] = []
  readonly #messages: string[] = []
  #count = 0
  #writes = 0
  problem: Error | undefined

  constructor(script: Script, sabotage: StepSabotage) {
    this.#script = script
    this.#sabotage = sabotage
    this.life = this.#open(memoryStore())
    const agent = this.#agent(this.life)
    for (const id of TASKS) {
      const key = script.hasKey ? { concurrencyKey: id } : undefined
      this.life.manager.launch({ id, subagentName: 'agent', goalPrompt: id, owner: OWNER, ...key }, agent)
    }
  }

  #open(memory: MemoryStore): Life {
    const { found, alter } = this.#sabotage
    const store: Store = {
      ...memory,
      open: () => {
        const contents = memory.open()
        return found?.(contents, this.clock.now()) ?? contents
      },
      write: async (changes) => {
        if (life.disk !== undefined) return
        this.#writes += 1
        const { crash } = life
        const isLast = crash !== undefined && (crash.writes -= 1) < 0
        await tick()
        if (!isLast || !crash.isLost) await memory.write(changes)
        if (isLast) life.disk = memory.copy()
        this.#checkRows(memory)
      },
    }
    // The engine starts nothing before the constructor has returned.
    const life = { memory, disk: undefined, crash: undefined } as unknown as {
      -readonly [Field in keyof Life]: Life[Field]
    }
    life.manager = new AsyncTaskManager({
      store,
      clock: this.clock,
      graceMs: 0,
      maxAsyncTasks: 1,
      whenFull: 'queue',
      onError: (error, { source }) => {
        if (source !== 'late-result' && life.disk === undefined) this.problem ??= error as Error
      },
      findRunner: (name) => (name === 'agent' ? this.#agent(life) : () => 'child'),
      wasDelivered: (id) => this.#messages.includes(id),
    })
    alter?.(life.manager)
    return life
  }

  #agent(life: Life): RunnerDefinition {
    return {
      durable: true,
      releasesSlot: this.#script.releasesSlot,
      maxConcurrent: 2,
      retry: { attempts: 20, on: ['rate-limited'], backoff: { initialMs: 50, factor: 1, jitter: false } },
      run: async (_input, context) => {
        const got: string[] = []
        for (const [at, each] of this.#script.parts.entries()) {
          const value = await this.#do(life, each, context, String(at))
          got.push(this.#see(life, `${context.taskId} ${at}`, value))
        }
        return { got }
      },
    }
  }

  /** All runs see the same. A failure is forgotten when the task is repeated for another reason than an interruption: it has no number. */
  #see(life: Life, key: string, value: unknown): string {
    const text = JSON.stringify(value)
    if (life.disk !== undefined) return text
    const before = this.#seen.get(key)
    if (before !== undefined && before !== text) this.problem ??= new Error(`${key}: ${before} became ${text}`)
    this.#seen.set(key, text)
    return text
  }

  async #do(life: Life, each: Part, context: RunContext, name: string): Promise<unknown> {
    const { step, sleep, waitFor, launch, children, taskId } = context
    switch (each.do) {
      case 'step': {
        let calls = 0
        const work = (): string => {
          calls += 1
          if (calls <= each.failures) throw Object.assign(new Error('no'), { code: 'NO' })
          return this.#work(life, taskId, name)
        }
        return step(name, work, { attempts: 3, backoff: { initialMs: 50, factor: 1, jitter: false } }).catch(
          (error: unknown) => {
            const { code, message } = error as Error & { code?: string }
            if (code !== 'NO') throw error
            return message
          },
        )
      }
      case 'together':
        return Promise.all(
          ['a', 'b'].map((part) => step(name + part, () => Promise.resolve(this.#work(life, taskId, name + part)))),
        )
      case 'child': {
        const { id } = launch({ subagentName: 'child', goalPrompt: name })
        const { settled } = await children.waitFor([id])
        return [id, settled.map(({ status }) => status)]
      }
      case 'fail once':
        if (life.disk !== undefined) return never()
        if (this.#failed.has(`${taskId} ${name}`)) return 'failed'
        this.#failed.add(`${taskId} ${name}`)
        throw Object.assign(new Error('busy'), { code: 'RATE_LIMITED' })
      case 'race':
        await Promise.race([waitFor('never', { name }), sleep(50, { name: `until ${name}` })])
        return 'over'
      case 'sleep': {
        const stored = this.#rowOf(life, taskId, `sleep(${name})`)
        const asked = this.clock.now()
        await sleep(each.ms, { name })
        const due = Math.max(asked, Number(stored?.['dueAt'] ?? asked + each.ms))
        const now = this.clock.now()
        if (life.disk === undefined && (now < due || (!this.#script.releasesSlot && now > due + STEP_MS))) {
          this.problem ??= new Error(`${taskId}: the sleep ${name} that was due at ${due} was over at ${now}`)
        }
        return 'slept'
      }
      case 'wait':
        return (await waitFor('e', { name, timeoutMs: each.timeoutMs })) ?? null
    }
  }

  /** A step is done: nothing of it is stored yet. */
  #work(life: Life, taskId: string, key: string): string {
    const row = this.#rowOf(life, taskId, key)
    const isStored = row?.['endedAt'] !== undefined && row['failure'] === undefined
    if (isStored && life.disk === undefined) {
      this.problem ??= new Error(`${taskId} ${key} ran again after it was stored`)
    }
    return `${key} by ${(this.#count += 1)}`
  }

  #rowOf({ memory }: Life, taskId: string, key: string): Readonly<Record<string, unknown>> | undefined {
    return this.#rows(memory).find((row) => row['taskId'] === taskId && row['key'] === key)
  }

  #rows(memory: MemoryStore): Readonly<Record<string, unknown>>[] {
    return memory.contents().featureStates.flatMap(({ feature, data }) => (feature === 'steps' ? [data] : []))
  }

  /** When a wait is over does not change. */
  #checkRows(memory: MemoryStore): void {
    for (const { taskId, key, dueAt } of this.#rows(memory)) {
      if (typeof dueAt !== 'number') continue
      const id = `${String(taskId)} ${String(key)}`
      if (!this.#dues.has(id)) this.#dues.set(id, dueAt)
      if (this.#dues.get(id) !== dueAt) {
        this.problem ??= new Error(`${id} was due at ${String(this.#dues.get(id))}, and now at ${dueAt}`)
      }
    }
  }

  /** Everything happens that can; a process that has died is followed by the next one. */
  async settle(): Promise<void> {
    for (let isOver = false; !isOver;) {
      await this.#happen()
      isOver = this.life.disk === undefined && !(await this.#deliver())
      if (this.life.disk !== undefined) await this.#restart(this.life.disk)
    }
    if (this.problem !== undefined) throw this.problem
    this.#checkSlots()
  }

  /** Lets everything happen that happens without time. */
  async #happen(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; quiet += 1) {
      const before = this.#writes
      await tick()
      if (this.#writes > before) quiet = 0
    }
  }

  async #deliver(): Promise<boolean> {
    const { life } = this
    // A task that is queued has not taken the results of its children yet.
    const lease = life.manager.lease({ owner: OWNER })
    if (lease === undefined) return false
    await lease.stored
    if (life.disk !== undefined) return false
    this.#messages.push(lease.deliveryId)
    this.#told.push(...lease.tasks.map(({ id, status }) => `${id} ${status}`))
    lease.acknowledge()
    return true
  }

  async #restart(disk: MemoryStore): Promise<void> {
    const { manager } = this.life
    const disposed = manager.dispose()
    await this.#happen()
    this.clock.advance(1)
    await disposed
    this.life = this.#open(disk)
    await this.life.manager.recovered
  }

  /** A run that only waits has a slot unless it gives it back; every other run has one, or waits for it. */
  #checkSlots(): void {
    const { manager, memory } = this.life
    const { pools, history } = manager.registry
    const rows = this.#rows(memory)
    const holds = TASKS.filter((id) => {
      const entry = history.get(id)
      if (entry === undefined || entry.record.status !== 'running') return false
      const open = rows.filter(
        ({ taskId, endedAt, key }) => taskId === id && key !== undefined && endedAt === undefined,
      )
      const waits = open.length > 0 && open.every(({ kind }) => kind !== 'work')
      return !(this.#script.releasesSlot && (waits || pools.task.queue.placeOf(entry) !== undefined))
    })
    assert.equal(manager.actor.getSnapshot().slots, holds.length, `slots, which ${holds.join()} should hold`)
  }

  async take(present: Action): Promise<void> {
    const { life } = this
    switch (present.do) {
      case 'advance':
        for (let passed = 0; passed < present.ms || passed === 0; passed += STEP_MS) {
          this.clock.advance(Math.min(present.ms, STEP_MS))
          await this.settle()
        }
        return
      case 'emit':
        await this.emit(TASKS[present.nth] ?? TASKS[0])
        return
      case 'crash':
        if (this.crashes >= MAX_CRASHES || life.crash !== undefined) return
        this.crashes += 1
        life.crash = { writes: present.writes, isLost: present.isLost }
    }
  }

  async emit(taskId: string): Promise<void> {
    const isActive = this.life.manager.getActiveTasks().some(({ id }) => id === taskId)
    if (isActive) void this.life.manager.emit('e', `event ${(this.#count += 1)}`, { taskId }).catch(() => undefined)
    await this.settle()
  }

  /** All tasks end, and nothing is left of them. */
  async end(): Promise<void> {
    const isActive = (id: string): boolean => this.life.manager.getActiveTasks().some((task) => task.id === id)
    for (let turn = 0; turn < 100 && TASKS.some(isActive); turn += 1) {
      await this.take({ do: 'advance', ms: 100 })
      for (const id of TASKS) {
        const waits = this.#rows(this.life.memory).some(
          ({ taskId, event, endedAt }) => taskId === id && event === 'e' && endedAt === undefined,
        )
        if (waits) await this.emit(id)
      }
    }
    await this.settle()
    const { manager, memory } = this.life
    for (const id of TASKS) {
      const task = manager.getTask(id)
      // The history of what was delivered is short.
      if (task === undefined) continue
      assert.equal(task.status, 'completed', `${id} ${JSON.stringify(task)}`)
      const got = this.#script.parts.map((_, at) => this.#seen.get(`${id} ${at}`))
      assert.deepEqual(task.output, { got })
    }
    assert.deepEqual(this.#told.toSorted(), ['one completed', 'two completed'], 'what was delivered')
    const events = [...this.#seen.values()].filter((value) => value.includes('event'))
    assert.equal(new Set(events).size, events.length, 'each event is taken once')
    const { slots } = manager.actor.getSnapshot()
    const { queue } = manager.registry.pools.task
    assert.deepEqual(
      {
        rows: this.#rows(memory),
        slots,
        queued: queue.size,
        named: manager.registry.limits.size,
        timers: this.clock.pending,
      },
      { rows: [], slots: 0, queued: 0, named: 0, timers: 0 },
      'what is left',
    )
    assert.equal(manager.registry.use(steps).found('one'), undefined)
  }

  async dispose(): Promise<void> {
    const disposed = this.life.manager.dispose()
    await this.#happen()
    this.clock.advance(1)
    await disposed
  }
}

export const durableStepsProperty = (sabotage: StepSabotage = {}): fc.IRawProperty<unknown> =>
  fc.asyncProperty(stepScripts, async (script) => {
    const world = new World(script, sabotage)
    try {
      await world.settle()
      for (const present of script.actions) await world.take(present)
      await world.settle()
      await world.end()
    } finally {
      await world.dispose()
    }
  })
