/**
 * Command tasks across crashes (K12, S3): submits, cancels, results, connections, and the end of the process at any moment. The next process has
 * what was written, and its workers may still be busy with calls of the one before.
 */
import fc from 'fast-check'
import { InstanceManager } from '../../src/command-tasks/instances/instance-manager.js'
import type { Instance, ToolCall } from '../../src/command-tasks/instances/instance.js'
import type { ToolCallResult } from '../../src/protocol/tool-result.js'
import { TaskManager } from '../../src/command-tasks/task-manager.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../../src/protocol/command-tasks.js'
import { memoryStore, StoreError, type MemoryStore, type Store } from '../../src/store/index.js'
import { runMicrotasks } from '../../src/testing/microtasks.js'
import { createManualClock } from '../../src/testing/index.js'
import type { CreateTaskManager } from './lanes.property.js'

const isEnd = (status: string): status is TaskCompleteMessage['status'] =>
  status === 'completed' || status === 'failed' || status === 'cancelled'

const GRACE_MS = 50
const TIMEOUT_MS = 200
const INSTANCE_GRACE_MS = 300
const WRITE_MS = 10
const INSTANCES = ['x', 'y'] as const

type InstanceId = (typeof INSTANCES)[number]

type Step = (
  | { readonly do: 'submit'; readonly to: InstanceId; readonly commands: number; readonly key: number }
  | { readonly do: 'cancel'; readonly task: number }
  | { readonly do: 'answer'; readonly call: number; readonly isError: boolean }
  | { readonly do: 'connect' | 'disconnect'; readonly instance: InstanceId }
  | { readonly do: 'advance'; readonly ms: number }
  /** The next writes fail. */
  | { readonly do: 'break'; readonly writes: number }
  /** The next writes take a while: they are stored before it or after it. */
  | { readonly do: 'slow down'; readonly writes: number; readonly isStoredFirst: boolean }
) & { /** Whether the process ends right after the step, before anything else can run. */ readonly crash: boolean }

/** How the parts are made; a planted fault makes them wrong. */
export interface RestartWiring {
  readonly createTaskManager?: CreateTaskManager
  readonly changeInstance?: (instance: Instance) => Instance
}

const crash = fc.integer({ min: 0, max: 4 }).map((n) => n === 0)
const instance = fc.constantFrom(...INSTANCES)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('submit' as const),
      to: instance,
      commands: fc.integer({ min: 1, max: 3 }),
      key: fc.nat(3),
      crash,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), task: fc.nat(7), crash }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      call: fc.nat(2),
      isError: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
      crash,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('connect' as const), instance, crash }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('disconnect' as const), instance, crash }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(0, 10, 50, 120), crash }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('break' as const), writes: fc.integer({ min: 1, max: 3 }), crash }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('slow down' as const),
      writes: fc.integer({ min: 1, max: 3 }),
      isStoredFirst: fc.boolean(),
      crash,
    }),
  },
)

export function restartsProperty(wiring: RestartWiring = {}) {
  return fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
    const world = new World(wiring)
    try {
      for (const one of steps) {
        world.run(one)
        if (one.crash) world.crash()
        await settle()
      }
      await world.conclude()
    } finally {
      await world.dispose()
    }
  })
}

const settle = (): Promise<void> => runMicrotasks(16)

function check(isKept: boolean, invariant: string, what: string): void {
  if (!isKept) throw new Error(`${invariant}: ${what}`)
}

interface Call {
  readonly life: number
  readonly instanceId: InstanceId
  readonly taskId: string
  readonly commandId: string
  /** When it was aborted, or cancelled by the next process. */
  abortedAt: number | undefined
  hasSettled: boolean
  readonly answer: (isError: boolean) => void
}

interface Submitted {
  readonly id: string
  readonly to: InstanceId
  readonly key: string
  isAccepted: boolean
}

interface Life {
  readonly instances: InstanceManager
  readonly manager: TaskManager
}

class World {
  readonly #wiring: RestartWiring
  readonly #clock = createManualClock(1000)
  readonly #lives: Life[] = []
  readonly #calls: Call[] = []
  #submitted: Submitted[] = []
  /** They could not be stored. */
  readonly #refused = new Set<string>()
  #failingWrites = 0
  #slowWrites = 0
  #isStoredFirst = false
  /** Writes that are stored, and not answered yet. */
  #unanswered = 0
  readonly #completes = new Map<string, Pick<TaskCompleteMessage, 'status'>>()
  /** The commands of each task that have succeeded, as was emitted. */
  readonly #successes = new Map<string, Set<string>>()
  readonly #cancelled = new Set<string>()
  readonly #problems: unknown[] = []
  #store: MemoryStore = memoryStore()

  constructor(wiring: RestartWiring) {
    this.#wiring = wiring
    this.#start()
    for (const id of INSTANCES) this.#connect(id)
  }

  crash(): void {
    this.#store = this.#store.copy()
    this.#failingWrites = 0
    this.#slowWrites = 0
    // Nobody was told their ids: they may come again.
    this.#refused.clear()
    const submitted = this.#submitted
    const isAnswered = this.#unanswered === 0
    this.#unanswered = 0
    // Nobody was told of an end that was stored, and not answered: a client reads it.
    for (const { id, status } of isAnswered ? [] : this.#store.contents().commandTasks) {
      if (isEnd(status)) this.#completes.set(id, { status })
    }
    this.#start()
    const stored = new Set(this.#life.manager.listTasks().map(({ id }) => id))
    // A write that was stored, and not answered, is found.
    this.#submitted = submitted.filter(({ id, isAccepted }) => isAccepted || (!isAnswered && stored.has(id)))
    for (const task of this.#submitted) task.isAccepted = true
    const accepted = new Set(this.#submitted.map(({ id }) => id))
    for (const id of stored) {
      this.#guard(() => check(accepted.has(id), 'K12', `${id} was not accepted, and is stored`))
    }
  }

  run(given: Step): void {
    const { manager, instances } = this.#life
    switch (given.do) {
      case 'submit': {
        const key = `${given.to} ${given.commands} ${given.key}`
        const result = manager.submitTask(
          {
            task_name: 't',
            instanceId: given.to,
            commands: Array.from({ length: given.commands }, () => ({ tool_name: 'tool' })),
          },
          { idempotencyKey: key },
        )
        if ('error' in result) return
        const known = this.#submitted.find((one) => one.key === key)
        check(known === undefined || known.id === result.taskId, 'K12', `${key} was submitted twice`)
        if (known !== undefined) return
        check(!this.#submitted.some(({ id }) => id === result.taskId), 'K12', `${result.taskId} came again`)
        void this.#follow({ id: result.taskId, to: given.to, key, isAccepted: false })
        return
      }
      case 'cancel': {
        const task = this.#submitted[given.task]
        if (task === undefined || !manager.cancelTask(task.id)) return
        void this.#noteCancelled(task.id)
        return
      }
      case 'answer':
        this.#calls.filter(({ hasSettled }) => !hasSettled)[given.call]?.answer(given.isError)
        return
      case 'connect':
        this.#connect(given.instance)
        return
      case 'disconnect':
        void instances.disconnect(given.instance)
        return
      case 'advance':
        this.#clock.advance(given.ms)
        return
      case 'break':
        this.#failingWrites = given.writes
        return
      case 'slow down':
        this.#slowWrites = given.writes
        this.#isStoredFirst = given.isStoredFirst
    }
  }

  /** A submission is accepted when it is stored. */
  async #follow(task: Submitted): Promise<void> {
    const life = this.#life
    const { manager } = life
    this.#submitted.push(task)
    const isAccepted = (await manager.accepted(task.id)) !== false
    if (life !== this.#life) return
    task.isAccepted = isAccepted
    if (isAccepted) return
    this.#submitted = this.#submitted.filter((other) => other !== task)
    this.#refused.add(task.id)
    this.#guard(() => check(manager.getTask(task.id) === undefined, 'K12', `${task.id} was refused, and is there`))
  }

  /** A cancellation counts when it is stored. */
  async #noteCancelled(id: string): Promise<void> {
    const life = this.#life
    const isStored = await life.manager.stored().then(
      () => true,
      () => false,
    )
    if (isStored && life === this.#life) this.#cancelled.add(id)
  }

  async conclude(): Promise<void> {
    const isBusy = ({ manager }: Life): boolean =>
      manager.laneDepths.size > 0 || manager.persistence?.isSettled() === false
    for (let round = 0; round < 100 && isBusy(this.#life); round += 1) {
      this.#clock.advance(TIMEOUT_MS)
      await settle()
    }
    if (this.#problems.length > 0) throw this.#problems[0]
    for (const { id } of this.#submitted) {
      const complete = this.#completes.get(id)
      const task = this.#life.manager.getTask(id)
      check(complete !== undefined, 'K12', `${id} was accepted and never ended`)
      check(
        task?.status === complete?.status,
        'K12',
        `${id} is ${task?.status ?? 'lost'} after ${complete?.status ?? ''}`,
      )
      if (this.#cancelled.has(id)) {
        check(task?.status === 'cancelled', 'K6', `${id} was cancelled, and has ${task?.status ?? ''}`)
      }
      for (const commandId of this.#successes.get(id) ?? []) {
        const kept = task?.commands.find((command) => command.id === commandId)
        check(kept?.result !== undefined, 'K12', `the result of ${commandId} of ${id} is lost`)
      }
    }
  }

  async dispose(): Promise<void> {
    this.#slowWrites = 0
    const ends = this.#lives.flatMap(({ manager, instances }) => [manager.dispose(), instances.dispose()])
    this.#clock.advance(GRACE_MS)
    await settle()
    this.#clock.advance(GRACE_MS)
    await Promise.all(ends)
  }

  get #life(): Life {
    const life = this.#lives.at(-1)
    if (life === undefined) throw new Error('there is no life')
    return life
  }

  #start(): void {
    const number = this.#lives.length
    const createTaskManager: CreateTaskManager =
      this.#wiring.createTaskManager ?? ((options) => new TaskManager(options))
    const instances = new InstanceManager({ clock: this.#clock, onError: () => undefined })
    const manager = createTaskManager({
      instances,
      clock: this.#clock,
      store: this.#breakable(this.#store),
      onError: () => undefined,
      commandTimeout: TIMEOUT_MS,
      abortGraceMs: GRACE_MS,
      instanceGraceMs: INSTANCE_GRACE_MS,
      retentionMs: 1e9,
    })
    this.#lives.push({ instances, manager })
    const note = (message: TaskProgressMessage | TaskCompleteMessage): void => {
      if (this.#lives.length - 1 === number) this.#guard(() => this.#note(message))
    }
    manager.on('progress', note).on('complete', note)
  }

  #breakable(store: MemoryStore): Store {
    return {
      ...store,
      write: async (changes) => {
        const isAlive = this.#store === store
        const isSlow = isAlive && this.#slowWrites > 0
        const isFailing = isAlive && this.#failingWrites > 0
        this.#slowWrites -= Number(isSlow)
        this.#failingWrites -= Number(isFailing)
        const write = async (): Promise<void> => {
          if (isFailing) throw new StoreError('STORE_FULL', 'the disk is full')
          await store.write(changes)
        }
        const isStoredFirst = this.#isStoredFirst && !isFailing
        if (isStoredFirst) await write()
        const isUnanswered = isStoredFirst && isSlow
        if (this.#store === store) this.#unanswered += Number(isUnanswered)
        if (isSlow) await new Promise<void>((resolve) => this.#clock.setTimeout(resolve, WRITE_MS))
        if (this.#store === store) this.#unanswered -= Number(isUnanswered)
        if (!isStoredFirst) await write()
      },
    }
  }

  #connect(id: InstanceId): void {
    const { instances } = this.#life
    if (instances.get(id) !== undefined) return
    const life = this.#lives.length - 1
    // What a worker names in its hello.
    const busy = this.#calls.filter((call) => call.instanceId === id && !call.hasSettled && call.life < life)
    for (const call of busy) call.abortedAt = this.#clock.now()
    const graceEnds = this.#clock.now() + GRACE_MS
    const isFree = (): boolean => this.#clock.now() >= graceEnds || busy.every(({ hasSettled }) => hasSettled)
    const freed = async (): Promise<void> => {
      while (!isFree() && this.#lives.length - 1 === life) {
        await new Promise<void>((resolve) => this.#clock.setTimeout(resolve, 10))
      }
    }
    const played: Instance = {
      id,
      kind: 'websocket',
      listTools: () => Promise.resolve([]),
      callTool: (call) => (this.#lives.length - 1 === life ? this.#call(id, call) : new Promise(() => undefined)),
      onLost: () => undefined,
      close: () => Promise.resolve(),
      connection: {
        timing: {},
        onEvent: (listener) => listener('connection.opened'),
        failCalls: () => undefined,
        freed: () => (isFree() ? undefined : freed()),
      },
    }
    instances.connect(this.#wiring.changeInstance?.(played) ?? played)
  }

  #call(instanceId: InstanceId, { taskId = '', commandId = '', signal }: ToolCall): Promise<ToolCallResult> {
    const now = this.#clock.now()
    const life = this.#lives.length - 1
    this.#guard(() => {
      for (const other of this.#calls) {
        check(other.taskId !== taskId || other.commandId !== commandId, 'K12', `${commandId} of ${taskId} ran again`)
        if (other.instanceId !== instanceId || other.hasSettled) continue
        const { abortedAt = Infinity } = other
        check(now >= abortedAt + GRACE_MS, 'S3', `${instanceId} got ${taskId} while it was busy with ${other.taskId}`)
      }
      check(!this.#refused.has(taskId), 'K12', `${taskId} was refused, and runs`)
      const order = this.#submitted.map(({ id }) => id)
      const last = this.#calls.filter((call) => call.instanceId === instanceId).at(-1)?.taskId
      const isInOrder = last === undefined || order.indexOf(taskId) >= order.indexOf(last)
      check(isInOrder, 'S3', `${taskId} overtook ${last ?? ''}`)
      check(!this.#completes.has(taskId), 'S4', `${taskId} had ended`)
      const stored = this.#store.contents().commandTasks.find(({ id }) => id === taskId)
      check(stored?.status === 'running', 'K12', `${taskId} is ${stored?.status ?? 'not'} stored while it runs`)
    })
    return new Promise((resolve, reject) => {
      const call: Call = {
        life,
        instanceId,
        taskId,
        commandId,
        abortedAt: undefined,
        hasSettled: false,
        answer: (isError) => {
          call.hasSettled = true
          if (isError) reject(new Error('it broke'))
          else resolve({ content: [{ type: 'text', text: commandId }] })
        },
      }
      this.#calls.push(call)
      signal.addEventListener('abort', () => {
        if (this.#lives.length - 1 === life) call.abortedAt = this.#clock.now()
      })
    })
  }

  #note(message: TaskProgressMessage | TaskCompleteMessage): void {
    const { taskId } = message
    check(!this.#refused.has(taskId), 'K12', `${taskId} was refused, and is told`)
    check(!this.#completes.has(taskId), 'S1', `${taskId} got an event after its complete`)
    if (message.type === 'task_complete') {
      const stored = this.#store.contents().commandTasks.find(({ id }) => id === taskId)
      check(stored?.status === message.status, 'K12', `${taskId} is ${stored?.status ?? 'not'} stored when it is told`)
      this.#completes.set(taskId, message)
    } else if (message.status === 'success') {
      const ids = this.#successes.get(taskId) ?? new Set()
      this.#successes.set(taskId, ids.add(message.commandId))
    }
  }

  /** Keeps an error for the end, because the caller would ignore it. */
  #guard(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.#problems.push(error)
    }
  }
}
