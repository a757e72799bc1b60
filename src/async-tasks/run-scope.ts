/** One run of a task, and what it needs of the manager. */
import type { ActiveTaskInfo } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { ChildTaskInput, RunChildren } from '../engine/children.js'
import type { Engine } from '../engine/engine.js'
import type { Runner } from '../engine/runner.js'
import type { CurrentRun } from '../features/families/families.js'
import { overError, StepsOfRun } from '../features/steps/steps-of-run.js'
import type { IsolatedController } from '../isolation/isolated-controller.js'
import type { Telemetry } from '../protocol/telemetry.js'
import type { TaskRegistry } from './registry.js'
import { plans, type RunStart } from './run-plan.js'

export interface RunHost {
  readonly registry: TaskRegistry
  readonly engine: Engine
  readonly telemetry: Telemetry | undefined
  /** How much of a task's output is kept, in bytes. */
  readonly outputBytes: number
  launchChild(parent: TaskEntry, input: ChildTaskInput, runner: Runner | undefined): ActiveTaskInfo
  childrenOf(parent: TaskEntry, run: CurrentRun): RunChildren
  newController(taskId: string): IsolatedController
}

/** The signal of a run. Its `AbortController` is created when the signal is read. */
export interface RunAbort {
  readonly signal: AbortSignal
}

export class RunScope {
  readonly host: RunHost
  readonly entry: TaskEntry
  readonly start: RunStart
  readonly attempt: number
  /** Called when a durable run was suspended, and no step of it works. */
  onRest: () => void = () => undefined
  #steps: StepsOfRun | undefined

  constructor(host: RunHost, entry: TaskEntry, start: RunStart) {
    this.host = host
    this.entry = entry
    this.start = start
    this.attempt = entry.record.attempt ?? 1
  }

  /** Whether this is the current run of its task. What an earlier run reports is ignored. */
  get isCurrent(): boolean {
    return (this.entry.record.attempt ?? 1) === this.attempt
  }

  get isDurable(): boolean {
    return this.start.runner.durable === true
  }

  /** Why the run has failed although its function has returned or still runs; undefined if it has not. */
  get failure(): unknown {
    return this.#steps?.failure
  }

  /**
   * The steps of the run. They end with it.
   * @throws AgentTasksError `RUN_ENDED` if the run has ended before its first step, because its steps would take events of the current run
   */
  steps({ signal }: RunAbort): StepsOfRun {
    const { host, entry, start } = this
    if (this.#steps !== undefined) return this.#steps
    if (!this.isCurrent || entry.ref === undefined) throw overError(entry)
    this.#steps = new StepsOfRun(host.registry, entry, {
      signal,
      isCurrent: () => this.isCurrent,
      ticket: start.runner.releasesSlot === true ? plans.get(entry)?.ticket : undefined,
      onRest: () => this.onRest(),
    })
    return this.#steps
  }

  close(): void {
    this.#steps?.close()
  }
}
