/**
 * Races of command tasks, against S1 to S8: submits, cancels, results, time-outs, disconnects, reconnects, and late results. The test plays
 * the instances: it decides when and how each call ends.
 */
import fc from 'fast-check'
import { InstanceManager } from '../../src/command-tasks/instances/instance-manager.js'
import type { Instance, ToolCall } from '../../src/command-tasks/instances/instance.js'
import type { ToolCallResult } from '../../src/protocol/tool-result.js'
import { TaskManager } from '../../src/command-tasks/task-manager.js'
import type { TaskManagerOptions } from '../../src/command-tasks/options.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../../src/protocol/command-tasks.js'
import { runMicrotasks } from '../../src/testing/microtasks.js'
import { createManualClock, createRaceScheduler, raceOrders, type RaceScheduler } from '../../src/testing/index.js'

const GRACE_MS = 50
const TIMEOUT_MS = 200
const MAX_QUEUE = 3
const INSTANCES = ['x', 'y'] as const

type InstanceId = (typeof INSTANCES)[number]

type Step =
  | { readonly do: 'submit'; readonly to: InstanceId; readonly commands: number; readonly timeout: number | undefined }
  | { readonly do: 'cancel'; readonly task: number }
  | { readonly do: 'answer'; readonly call: number; readonly how: 'ok' | 'isError' | 'reject' }
  | { readonly do: 'disconnect' | 'reconnect'; readonly instance: InstanceId }
  | { readonly do: 'advance'; readonly ms: number }

/** Makes the task manager; a planted fault makes it wrong. */
export type CreateTaskManager = (options: TaskManagerOptions) => TaskManager

const instance = fc.constantFrom(...INSTANCES)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('submit' as const),
      to: instance,
      commands: fc.integer({ min: 1, max: 3 }),
      timeout: fc.option(fc.constantFrom(20, 100), { nil: undefined }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cancel' as const), task: fc.nat(7) }) },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      call: fc.nat(3),
      how: fc.constantFrom('ok' as const, 'ok' as const, 'isError' as const, 'reject' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('disconnect' as const, 'reconnect' as const), instance }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(0, 10, 50, 120, 250) }),
  },
)

/** Two or three actors, each with steps in order; the scheduler interleaves them. */
export function lanesProperty(create: CreateTaskManager = (options) => new TaskManager(options)) {
  const scripts = fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 3 })
  return fc.asyncProperty(raceOrders(), scripts, (order, script) =>
    runScript(create, createRaceScheduler(order), script),
  )
}

interface CallLog {
  readonly call: ToolCall
  readonly instanceId: string
  readonly startedAt: number
  abortedAt: number | undefined
  settledAt: number | undefined
  readonly answer: (how: 'ok' | 'isError' | 'reject') => void
}

function check(isKept: boolean, invariant: string, what: string): void {
  if (!isKept) throw new Error(`${invariant}: ${what}`)
}

class LaneWorld {
  readonly clock = createManualClock(1_000)
  readonly calls: CallLog[] = []
  readonly instances = new InstanceManager({ clock: this.clock, onError: () => undefined })
  readonly manager: TaskManager
  readonly submitted: { readonly id: string; readonly to: InstanceId }[] = []
  readonly events = new Map<string, (TaskProgressMessage | TaskCompleteMessage)[]>()
  readonly problems: Error[] = []

  constructor(create: CreateTaskManager) {
    this.manager = create({
      instances: this.instances,
      clock: this.clock,
      commandTimeout: TIMEOUT_MS,
      maxQueueSize: MAX_QUEUE,
      abortGraceMs: GRACE_MS,
      onError: () => undefined,
    })
    for (const event of ['progress', 'complete'] as const) {
      this.manager.on(event, () => {
        throw new Error('a listener that throws')
      })
    }
    this.manager.progress$.subscribe((message) => this.note(message))
    this.manager.complete$.subscribe((message) => this.note(message))
    for (const id of INSTANCES) this.connect(id)
  }

  connect(id: InstanceId): void {
    if (this.instances.get(id) !== undefined) return
    const played: Instance = {
      id,
      kind: 'local',
      listTools: () => Promise.resolve([]),
      callTool: (call) => this.call(id, call),
      onLost: () => undefined,
      close: () => Promise.resolve(),
    }
    this.instances.connect(played)
  }

  private call(instanceId: string, call: ToolCall): Promise<ToolCallResult> {
    const now = this.clock.now()
    this.guard(() => {
      const taskId = call.taskId ?? ''
      check(!this.hasEnded(taskId), 'S4', `a command of ${taskId} started after its end`)
      for (const other of this.calls) {
        if (other.instanceId !== instanceId || other.settledAt !== undefined) continue
        check(other.abortedAt !== undefined, 'S3', `two commands run on ${instanceId}`)
        check(
          now >= (other.abortedAt ?? 0) + GRACE_MS,
          'S5',
          `a command started before the grace of the one before had passed`,
        )
      }
      const order = this.submitted.filter(({ to }) => to === instanceId).map(({ id }) => id)
      const last = this.calls.filter((other) => other.instanceId === instanceId).at(-1)?.call.taskId
      check(
        last === undefined || order.indexOf(taskId) >= order.indexOf(last),
        'S3',
        `${taskId} overtook ${last ?? ''}`,
      )
    })
    return new Promise((resolve, reject) => {
      const log: CallLog = {
        call,
        instanceId,
        startedAt: now,
        abortedAt: undefined,
        settledAt: undefined,
        answer: (how) => {
          if (log.settledAt !== undefined) return
          log.settledAt = this.clock.now()
          if (how === 'reject') reject(new Error('it broke'))
          else resolve({ content: [{ type: 'text', text: how }], ...(how === 'isError' && { isError: true }) })
        },
      }
      this.calls.push(log)
      call.signal.addEventListener('abort', () => {
        log.abortedAt = this.clock.now()
      })
    })
  }

  run(given: Step): void {
    switch (given.do) {
      case 'submit': {
        const live = this.submitted.filter(({ id, to }) => to === given.to && !this.hasEnded(id)).length
        const isConnected = this.instances.get(given.to)?.isConnected === true
        const result = this.manager.submitTask({
          task_name: 't',
          instanceId: given.to,
          commands: Array.from({ length: given.commands }, () => ({
            tool_name: 'tool',
            ...(given.timeout !== undefined && { timeout: given.timeout }),
          })),
        })
        if ('error' in result) {
          const expected = !isConnected
            ? ['INVALID_INSTANCE', 'NOT_CONNECTED']
            : live >= MAX_QUEUE
              ? ['QUEUE_FULL']
              : []
          check(expected.includes(result.code), 'S8', `refused with ${result.code}, ${live} live`)
          return
        }
        check(isConnected && live < MAX_QUEUE, 'S8', `accepted with ${live} live`)
        check(result.queuePosition === live + 1, 'S8', `position ${result.queuePosition} with ${live} live`)
        this.submitted.push({ id: result.taskId, to: given.to })
        return
      }
      case 'cancel': {
        const task = this.submitted[given.task]
        if (task === undefined) return
        const wasLive = !this.hasEnded(task.id)
        check(this.manager.cancelTask(task.id) === wasLive, 'S1', `cancelling ${task.id} did not return ${wasLive}`)
        check(this.hasEnded(task.id), 'S1', `${task.id} was cancelled and has not ended`)
        return
      }
      case 'answer':
        this.calls.filter((call) => call.settledAt === undefined)[given.call]?.answer(given.how)
        return
      case 'disconnect':
        void this.instances.disconnect(given.instance)
        for (const { id, to } of this.submitted) {
          if (to === given.instance) check(this.hasEnded(id), 'S1', `${id} outlived its instance`)
        }
        return
      case 'reconnect':
        this.connect(given.instance)
        return
      case 'advance':
        this.clock.advance(given.ms)
    }
  }

  conclude(): void {
    if (this.problems[0] !== undefined) throw this.problems[0]
    for (const { id } of this.submitted) {
      const events = this.events.get(id) ?? []
      check(
        events.filter(({ type }) => type === 'task_complete').length === 1,
        'S1',
        `${id} did not get exactly one complete`,
      )
      const task = this.manager.getTask(id)
      check(task !== undefined && task.status !== 'queued' && task.status !== 'running', 'S1', `${id} has not ended`)
    }
    for (const { call, abortedAt, settledAt } of this.calls) {
      check(
        settledAt !== undefined || abortedAt !== undefined,
        'S5',
        `a call of ${call.taskId ?? ''} neither settled nor was aborted`,
      )
    }
    check(this.clock.pending <= 1, 'S9', `${this.clock.pending} timers are left`)
  }

  private hasEnded(taskId: string): boolean {
    return (this.events.get(taskId) ?? []).some(({ type }) => type === 'task_complete')
  }

  /** Keeps an error for the end, because the scheduler would ignore it. */
  guard(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.problems.push(error as Error)
    }
  }

  private note(message: TaskProgressMessage | TaskCompleteMessage): void {
    this.guard(() => {
      const events = this.events.get(message.taskId) ?? []
      this.events.set(message.taskId, [...events, message])
      check(
        !events.some(({ type }) => type === 'task_complete'),
        'S1',
        `${message.taskId} got an event after its complete`,
      )
      if (message.type === 'task_progress') checkProgress(events, message)
      else checkComplete(events, message)
    })
  }
}

function checkProgress(
  events: readonly (TaskProgressMessage | TaskCompleteMessage)[],
  message: TaskProgressMessage,
): void {
  const before = events.filter((event) => event.type === 'task_progress')
  const last = before.at(-1)
  if (message.status === 'running') {
    check(
      message.commandIndex === (last === undefined ? 0 : last.commandIndex + 1),
      'S7',
      'a command was skipped, or its event was repeated',
    )
    check(last === undefined || last.status === 'success', 'C2', 'a command started after one that failed')
  } else {
    check(
      last?.status === 'running' && last.commandIndex === message.commandIndex,
      'S7',
      'the end of a command before its start',
    )
  }
}

function checkComplete(
  events: readonly (TaskProgressMessage | TaskCompleteMessage)[],
  message: TaskCompleteMessage,
): void {
  const { summary, results, status } = message
  const progress = events.filter((event) => event.type === 'task_progress')
  check(
    !results.some((result) => result.status === 'pending' || result.status === 'running'),
    'S2',
    'a command is left open',
  )
  check(Number.isFinite(summary.duration) && summary.duration >= 0, 'S2', `duration ${summary.duration}`)
  check(progress.length > 0 || summary.duration === 0, 'S2', 'a task that never started took time')
  const successes = results.filter((result) => result.status === 'success').length
  check(summary.successfulCommands === successes, 'S2', 'successfulCommands does not match')
  check(successes === progress.filter((event) => event.status === 'success').length, 'S7', 'a success had no event')
  check(
    (status === 'completed') === (successes === summary.totalCommands),
    'S2',
    `${status} with ${successes} successes`,
  )
  const last = progress.at(-1)
  const stopped = last?.status === 'running' ? last.commandIndex : undefined
  results.forEach(({ status: step, error }, index) => {
    const isTold = step === 'error' || index === stopped
    check((error !== undefined) === isTold, 'S2', `command ${index} is ${step} ${error ? 'with' : 'without'} an error`)
  })
  const failed = results.findIndex((result) => result.status === 'error')
  check(summary.failedCommandIndex === (failed === -1 ? undefined : failed), 'S2', 'failedCommandIndex does not match')
}

const settle = (): Promise<void> => runMicrotasks(12)

async function runScript(
  create: CreateTaskManager,
  scheduler: RaceScheduler,
  scripts: readonly (readonly Step[])[],
): Promise<void> {
  const world = new LaneWorld(create)
  for (const script of scripts) {
    scheduler.scheduleSequence(
      script.map((given) => ({
        label: JSON.stringify(given),
        builder: async () => {
          world.guard(() => world.run(given))
          await settle()
        },
      })),
    )
  }
  await scheduler.waitIdle()
  // What is still queued ends by its time-out or its grace.
  for (let round = 0; round < 80 && world.manager.laneDepths.size > 0; round += 1) {
    world.clock.advance(TIMEOUT_MS)
    await settle()
  }
  world.clock.advance(GRACE_MS)
  await settle()
  world.conclude()
  const disposal = world.manager.dispose()
  world.clock.advance(GRACE_MS)
  await disposal
  await world.instances.dispose()
  check(world.clock.pending === 0, 'S9', `${world.clock.pending} timers are left after dispose`)
}
