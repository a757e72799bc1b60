/**
 * The queue of one instance: it runs the commands of its tasks one at a time, in the order of submission (promise S3).
 *
 * The machine (`machines/lane.ts`) decides what comes next, and this class is its host. A lane exists while a task is queued or a
 * command is in flight, also while its instance is disconnected.
 */
import { createActor, fromTransition, type ActorRefFrom, type DoneActorEvent } from 'xstate'
import { laneMachine, type LaneHost, type LaneMachine, type LaneRef } from '../../machines/lane.js'
import { CommandRun, type CommandRunListener, type CommandSettings } from './command-run.js'
import type { InstanceEntry } from '../instances/instance-manager.js'
import type { CommandTask } from './command-task.js'

/**
 * The parent of all lanes and tasks of a task manager. It ignores the ends of tasks. It is not a machine, because their event types contain task ids,
 * and a machine would cache its result for each type.
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
  /** The parent of the lane's actor. */
  readonly parent: LaneParentRef
  readonly settings: CommandSettings
  /** Whether no further task may start now. */
  readonly isHeld: () => boolean
  /** Called when the lane is empty and has ended. */
  readonly onClosed: () => void
}

export class Lane implements LaneHost, CommandRunListener {
  readonly #parent: LaneParentRef
  readonly #settings: CommandSettings
  readonly #isHeld: () => boolean
  readonly #onClosed: () => void
  readonly #ref: LaneRef
  /** The unfinished tasks, in the order of submission. */
  readonly #tasks = new Set<CommandTask>()
  #run: CommandRun | undefined
  #isClosed = false

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

  /** Whether a task of an earlier process waits for the instance. */
  get isWaiting(): boolean {
    return [...this.#tasks].some(({ instance }) => instance === undefined)
  }

  /** Whether a task is running. */
  get hasRunning(): boolean {
    const [task] = this.#tasks
    return task?.hasStarted === true
  }

  /** The state of its machine. */
  get state(): string {
    return this.#ref.getSnapshot().value
  }

  /** The id of the running task. */
  get runningId(): string | undefined {
    const [task] = this.#tasks
    return task?.hasStarted === true ? task.id : undefined
  }

  /** Resolves when the command in flight has settled; undefined without one. */
  get settled(): Promise<unknown> | undefined {
    return this.#run?.settled
  }

  /** Appends a task. It starts in a later microtask, so that its submitter can subscribe first (promise S7). */
  add(task: CommandTask): void {
    this.#tasks.add(task)
    this.wake()
  }

  /** The instance has connected: starts the tasks of an earlier process that waited for it. */
  adopt(instance: InstanceEntry): void {
    for (const task of this.#tasks) task.adopt(instance)
    this.wake()
  }

  /** Fails the tasks of an earlier process whose instance did not come back. */
  abandonWaiting(message: string): void {
    this.#end((task) => task.instance === undefined, message)
  }

  /** Returns false when the task has already ended. */
  cancel(task: CommandTask, why?: string): boolean {
    return this.#settings.outbox.batch(() => {
      if (!task.cancel(why)) return false
      this.#tasks.delete(task)
      if (this.#run?.task === task) this.#ref.send({ type: 'call.abort' })
      this.#closeIfIdle()
      return true
    })
  }

  /** The instance was lost: fails the tasks that were submitted to it. */
  disconnect(isLost: (task: CommandTask) => boolean): void {
    this.#end(isLost)
  }

  /** Starts the next task in a later microtask, if allowed. */
  wake(): void {
    queueMicrotask(() => {
      if (this.#run !== undefined || this.#isClosed) return
      this.#settings.outbox.batch(() => this.#ref.send({ type: 'lane.wake' }))
    })
  }

  #end(isLost: (task: CommandTask) => boolean, message?: string): void {
    this.#settings.outbox.batch(() => {
      for (const task of [...this.#tasks].filter(isLost)) {
        task.lose(message)
        this.#tasks.delete(task)
      }
      if (this.#run !== undefined && isLost(this.#run.task)) this.#ref.send({ type: 'call.abort' })
      this.#closeIfIdle()
    })
  }

  /** Ends the lane, also with work left. */
  close(): void {
    this.#isClosed = true
    this.#parent.send({ type: 'lane.close', lane: this.#ref })
    this.#onClosed()
  }

  // LaneHost: called by the machine

  hasNext(): boolean {
    const [task] = this.#tasks
    return task?.instance !== undefined && (task.hasStarted || !this.#isHeld())
  }

  startCall(): void {
    const [task] = this.#tasks
    if (task !== undefined) this.#run = new CommandRun(task, this.#settings, this)
  }

  abortCall(): void {
    this.#run?.giveUp()
  }

  timeOutCall(): void {
    this.#run?.timeOut()
    this.#dropEnded()
  }

  // CommandRunListener: called by the command in flight

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
