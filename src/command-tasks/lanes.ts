/** The lanes (task queues) of a manager: one for each instance that has unfinished tasks. */
import type { LaneMachine } from '../../machines/lane.js'
import type { InstanceEntry } from './instances/instance-manager.js'
import type { CommandSettings } from './command-run.js'
import type { CommandTask } from './command-task.js'
import { Lane, type LaneParentRef } from './lane.js'

export interface LanesOptions {
  readonly machine: LaneMachine | undefined
  readonly parent: LaneParentRef
  readonly settings: CommandSettings
  /** Whether no further task may start on any instance. */
  readonly isHeld: () => boolean
}

export interface LaneStanding {
  readonly instanceId: string
  readonly state: string
  /** The number of unfinished tasks. */
  readonly size: number
  readonly runningId: string | undefined
}

export class Lanes {
  readonly #options: LanesOptions
  readonly #lanes = new Map<string, Lane>()
  /** The paused instances, and when each was paused, in ms since the epoch. */
  readonly paused = new Map<string, number>()

  constructor(options: LanesOptions) {
    this.#options = options
  }

  /** Queues a task for its instance. Returns the number of unfinished tasks of the instance, including this one. */
  add(task: CommandTask): number {
    const lane = this.open(task.instanceId)
    lane.add(task)
    return lane.size
  }

  /** Cancels a task. Returns false when the task has already ended. */
  cancel(task: CommandTask, why: string | undefined): boolean {
    return this.#lanes.get(task.instanceId)?.cancel(task, why) ?? false
  }

  /** The instance has connected. Starts the tasks of an earlier process that were waiting for it. */
  adopt(instance: InstanceEntry): void {
    if (instance.isConnected) this.#lanes.get(instance.id)?.adopt(instance)
  }

  /**
   * Fails the tasks of an instance that has disconnected.
   * @param successor an instance that has connected with the same id since then; tasks that were submitted to it continue
   */
  disconnect(instanceId: string, successor?: InstanceEntry): void {
    this.#lanes
      .get(instanceId)
      ?.disconnect(({ instance }) => (instance === undefined ? successor === undefined : instance !== successor))
  }

  /** Fails the tasks of an earlier process whose instances have not connected. */
  abandonWaiting(messageOf: (instanceId: string) => string): void {
    for (const [id, lane] of [...this.#lanes]) lane.abandonWaiting(messageOf(id))
  }

  /** Lets the tasks of an instance start again. Returns false when the instance was not paused. */
  resume(instanceId: string): boolean {
    if (!this.paused.delete(instanceId)) return false
    this.#lanes.get(instanceId)?.wake()
    return true
  }

  /** The number of unfinished tasks of an instance. */
  depthOf(instanceId: string): number {
    return this.#lanes.get(instanceId)?.size ?? 0
  }

  /** Whether tasks of an earlier process wait for this instance to connect. */
  isAwaited(instanceId: string): boolean {
    return this.#lanes.get(instanceId)?.isWaiting === true
  }

  instanceIds(): string[] {
    return [...this.#lanes.keys()]
  }

  standings(): LaneStanding[] {
    return Array.from(this.#lanes, ([instanceId, { state, size, runningId }]) => ({
      instanceId,
      state,
      size,
      runningId,
    }))
  }

  counts(): { running: number; queued: number } {
    const lanes = [...this.#lanes.values()]
    const running = lanes.filter(({ hasRunning }) => hasRunning).length
    return { running, queued: lanes.reduce((sum, { size }) => sum + size, 0) - running }
  }

  /** Resolves when every running command has settled. */
  async settled(): Promise<void> {
    await Promise.all([...this.#lanes.values()].flatMap(({ settled }) => settled ?? []))
  }

  /** Aborts the running commands without ending their tasks. */
  suspend(): void {
    for (const lane of [...this.#lanes.values()]) lane.suspend()
  }

  close(): void {
    for (const lane of [...this.#lanes.values()]) lane.close()
  }

  /**
   * Returns the lane of an instance. Creates the lane if necessary; call this before you create a task, because actors start in the order of
   * creation.
   */
  open(instanceId: string): Lane {
    let lane = this.#lanes.get(instanceId)
    if (lane === undefined) {
      const isHeld = (): boolean => this.#options.isHeld() || this.paused.has(instanceId)
      lane = new Lane({ ...this.#options, isHeld, instanceId, onClosed: () => this.#lanes.delete(instanceId) })
      this.#lanes.set(instanceId, lane)
    }
    return lane
  }
}
