/**
 * The queue of one instance. It runs the commands of the queued tasks one at a time, in the order of submission (promise S3).
 *
 * The state machine (`machines/lane.ts`) decides what happens next, and calls this class to do it. A lane exists while a task is queued or a command
 * is running, even if its instance is disconnected.
 */
import { createActor, fromTransition, type ActorRefFrom, type DoneActorEvent } from 'xstate'
import { laneMachine, type LaneHost, type LaneMachine, type LaneRef } from '../../machines/lane.js'
import { callContext, type CallContext } from '../isolation/call-context.js'
import { CommandRun, type CommandRunListener, type CommandSettings } from './command-run.js'
import type { InstanceEntry } from './instances/instance-manager.js'
import type { CommandTask } from './command-task.js'

/**
 * The parent actor of all lanes and tasks of a task manager. XState sends it an event when a task ends; the parent ignores these events. It is not a
 * state machine: the event types contain task ids, and a machine would keep a cache entry for each type.
 */
export const laneParentLogic = fromTransition(
  (state: undefined, event: LaneClose | DoneActorEvent<unknown, `task.${string}`>, { stopChild }) => {
    if (event.type === 'lane.close') stopChild(event.lane)
    return state
  },
  undefined,
)

interface LaneClose {
  readonly type: 'lane.close'
  readonly lane: LaneRef
}

export type LaneParentRef = ActorRefFrom<typeof laneParentLogic>

export interface LaneOptions {
  readonly instanceId: string
  readonly machine?: LaneMachine | undefined
  readonly parent: LaneParentRef
  readonly settings: CommandSettings
  /** Whether no further task may start now, for example because the instance is paused. */
  readonly isHeld: () => boolean
  readonly onClosed: () => void
}

export class Lane implements LaneHost, CommandRunListener {
  readonly #parent: LaneParentRef
  readonly #settings: CommandSettings
  readonly #isHeld: () => boolean
  readonly #onClosed: () => void
  readonly #ref: LaneRef
  /** The unfinished tasks, in the order of submission, with the contexts in which they were submitted. */
  readonly #tasks = new Map<CommandTask, CallContext>()
  #run: CommandRun | undefined
  #isClosed = false
  #isSuspended = false

  constructor({ instanceId, machine = laneMachine, parent, settings, isHeld, onClosed }: LaneOptions) {
    this.#isHeld = isHeld
    this.#parent = parent
    this.#settings = settings
    this.#onClosed = onClosed
    this.#ref = createActor(machine, { id: `lane.${instanceId}`, input: { instanceId, host: this }, parent })
    this.#ref.start()
  }

  /** The number of unfinished tasks. */
  get size(): number {
    return this.#tasks.size
  }

  /** Whether a task of an earlier process waits for the instance to connect. */
  get isWaiting(): boolean {
    return [...this.#tasks.keys()].some(({ instance }) => instance === undefined)
  }

  get hasRunning(): boolean {
    const [task] = this.#tasks.keys()
    return task?.hasStarted === true
  }

  get state(): string {
    return this.#ref.getSnapshot().value
  }

  get runningId(): string | undefined {
    const [task] = this.#tasks.keys()
    return task?.hasStarted === true ? task.id : undefined
  }

  /** Resolves when the running command has settled. Undefined if no command runs. */
  get settled(): Promise<unknown> | undefined {
    return this.#run?.settled
  }

  /** Appends a task. The task starts in a later microtask, so that the submitter can subscribe to its events first (promise S7). */
  add(task: CommandTask): void {
    this.#tasks.set(task, callContext())
    this.wake()
  }

  /** The instance has connected. Starts the tasks of an earlier process that were waiting for it. */
  adopt(instance: InstanceEntry): void {
    for (const task of this.#tasks.keys()) task.adopt(instance)
    this.wake()
  }

  /** Fails the tasks of an earlier process that wait for the instance, because it has not connected in time. */
  abandonWaiting(message: string): void {
    this.#end((task) => task.instance === undefined, message)
  }

  /** Cancels a task. Returns false when the task has already ended. */
  cancel(task: CommandTask, why?: string): boolean {
    return this.#settings.outbox.batch(() => {
      if (!task.cancel(why)) return false
      this.#tasks.delete(task)
      if (this.#run?.task === task) this.#ref.send({ type: 'call.abort' })
      this.#closeIfIdle()
      return true
    })
  }

  /** The instance has disconnected. Fails the tasks for which `isLost` returns true. */
  disconnect(isLost: (task: CommandTask) => boolean): void {
    this.#end(isLost)
  }

  /** Starts the next task in a later microtask, if a task may start then. */
  wake(): void {
    queueMicrotask(() => {
      if (this.#run !== undefined || this.#isClosed) return
      this.#settings.outbox.batch(() => this.#ref.send({ type: 'lane.wake' }))
    })
  }

  #end(isLost: (task: CommandTask) => boolean, message?: string): void {
    this.#settings.outbox.batch(() => {
      for (const task of [...this.#tasks.keys()].filter(isLost)) {
        task.lose(message)
        this.#tasks.delete(task)
      }
      if (this.#run !== undefined && isLost(this.#run.task)) this.#ref.send({ type: 'call.abort' })
      this.#closeIfIdle()
    })
  }

  /** Aborts the running command without ending its task. No further command starts. */
  suspend(): void {
    this.#isSuspended = true
    this.#run?.suspend()
  }

  /** Closes the lane, even if tasks or a command are left. */
  close(): void {
    this.#isClosed = true
    this.#parent.send({ type: 'lane.close', lane: this.#ref })
    this.#onClosed()
  }

  // Methods of LaneHost, which the state machine calls

  hasNext(): boolean {
    const [task] = this.#tasks.keys()
    return !this.#isSuspended && task?.instance !== undefined && (task.hasStarted || !this.#isHeld())
  }

  startCall(): void {
    const [next] = this.#tasks
    if (next !== undefined) this.#run = new CommandRun(...next, this.#settings, this)
  }

  abortCall(): void {
    this.#run?.giveUp()
  }

  timeOutCall(): void {
    this.#run?.timeOut()
    this.#dropEnded()
  }

  // Methods of CommandRunListener, which the running command calls

  onTimedOut(): void {
    this.#ref.send({ type: 'call.timedOut' })
  }

  onSettled(): void {
    this.#dropEnded()
    this.#run = undefined
    this.#ref.send({ type: 'call.settled' })
    this.#closeIfIdle()
  }

  #dropEnded(): void {
    if (this.#run?.task.hasEnded === true) this.#tasks.delete(this.#run.task)
  }

  #closeIfIdle(): void {
    if (this.#tasks.size === 0 && this.#run === undefined && !this.#isClosed) this.close()
  }
}
