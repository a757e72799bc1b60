/** Decides whether to accept a submission (promise S8). The task must be valid, its instance connected, and there must be room for the task. */
import type { Clock } from '../system/clock.js'
import type { InstanceEntry, InstanceManager } from './instances/instance-manager.js'
import { instanceNotFound, toolsNotFound } from './instances/not-found.js'
import { jsonBytes } from '../data/json-size.js'
import type { TaskSubmitMessage } from '../protocol/task-submission.js'
import type { CommandTaskOrigin, SubmittedTask } from './command-task.js'
import type { Lanes } from './lanes.js'
import type { SubmitResult } from './options.js'
import { isSameSubmission } from './stored-tasks.js'
import { readSubmission, refusal, type Submission, type SubmitRefusal } from './submission.js'
import type { TaskTable } from './task-table.js'

export interface IntakeOptions {
  readonly instances: InstanceManager
  readonly lanes: Lanes
  readonly tasks: TaskTable
  readonly clock: Clock
  /** The maximum number of unfinished tasks of an instance. */
  readonly maxQueueSize: number
  /** The number of the last task that an earlier process has accepted. */
  readonly lastPlace: number
}

/** A decision to accept a task. The caller creates the task. */
export interface AcceptedTask {
  readonly submitted: SubmittedTask
  readonly origin: CommandTaskOrigin & { readonly instance: InstanceEntry }
}

export class Intake {
  readonly #options: IntakeOptions
  #lastPlace: number

  constructor(options: IntakeOptions) {
    this.#options = options
    this.#lastPlace = options.lastPlace
  }

  /** Decides about a submission. If a task with the same idempotency key exists, returns the earlier answer. A refusal changes no state. */
  decide(message: TaskSubmitMessage, key: string | undefined): AcceptedTask | SubmitResult {
    const read = readSubmission(message)
    if ('error' in read) return read
    const answer = key === undefined ? undefined : this.#earlierAnswer(key, read)
    if (answer !== undefined) return answer
    const { instanceId, submission } = read
    const instance = instanceId === undefined ? this.#instanceWith(submission.commands) : this.#instanceOf(instanceId)
    if ('error' in instance) return instance
    const { clock, lanes, maxQueueSize } = this.#options
    const depth = lanes.depthOf(instance.id)
    if (depth >= maxQueueSize) return refusal('QUEUE_FULL', `Task queue is full (max ${maxQueueSize}, maxQueueSize)`)
    const createdAt = clock.now()
    const place = this.#lastPlace + 1
    const submitted = { id: `task_${createdAt}_${place.toString(36)}`, createdAt, ...submission }
    const request = key === undefined ? undefined : { key, instanceId, queuePosition: depth + 1 }
    const bytes = this.#hold(submitted)
    if (typeof bytes !== 'number') return bytes
    this.#lastPlace = place
    return { submitted, origin: { instanceId: instance.id, place, instance, bytes, request } }
  }

  #earlierAnswer(key: string, { instanceId, submission }: Submission): SubmitResult | undefined {
    const known = this.#options.tasks.ofKey(key)
    if (known?.request === undefined) return undefined
    return known.request.instanceId === instanceId && isSameSubmission(known.submitted, submission)
      ? { taskId: known.id, queuePosition: known.request.queuePosition }
      : refusal('IDEMPOTENCY_KEY_REUSED', 'This idempotency key was used for another task. Choose another key.')
  }

  #instanceOf(instanceId: string): InstanceEntry | SubmitRefusal {
    const { instances } = this.#options
    const instance = instances.get(instanceId)
    if (instance?.isConnected === true) return instance
    if (instance !== undefined) return refusal('NOT_CONNECTED', `Instance not connected: ${instance.id}`)
    const ids = instances.list().map(({ id }) => id)
    return refusal('INVALID_INSTANCE', instanceNotFound(instanceId, ids))
  }

  /**
   * Returns the first connected instance that has all tools of the commands. If there is none, returns the first one whose tools may have changed or
   * are unknown.
   */
  #instanceWith(commands: readonly { readonly tool_name: string }[]): InstanceEntry | SubmitRefusal {
    const connected = this.#options.instances.list().filter(({ isConnected }) => isConnected)
    const [only] = connected
    if (only === undefined) return refusal('NO_INSTANCE', 'No instance is connected')
    // With a single instance, the task is accepted even if a tool is missing. The commands before the missing tool then run, as with a named instance.
    if (connected.length === 1) return only
    const wanted = [...new Set(commands.map(({ tool_name }) => tool_name))]
    const offers = connected.map((entry) => ({ entry, names: entry.instance.toolNames }))
    const found =
      offers.find(({ names }) => names !== undefined && wanted.every((tool) => names.includes(tool))) ??
      // An MCP server may offer other tools now than when it last listed them.
      offers.find(({ entry, names }) => names === undefined || entry.kind === 'mcp')
    if (found !== undefined) return found.entry
    return refusal(
      'NO_INSTANCE',
      toolsNotFound(
        wanted,
        offers.map(({ entry, names }) => ({ id: entry.id, names })),
      ),
    )
  }

  /** Reserves room for a submission. Returns its size in bytes of JSON, or why it is refused. */
  #hold(submitted: SubmittedTask): number | SubmitRefusal {
    const { tasks } = this.#options
    const { maxSubmissionBytes, maxBytes } = tasks.limits
    const bytes = jsonBytes(submitted, maxSubmissionBytes)
    if (bytes > maxSubmissionBytes) {
      return refusal(
        'INVALID_TASK',
        `task: got ${bytes} or more bytes of JSON, expected at most ${maxSubmissionBytes}.`,
      )
    }
    if (tasks.take(bytes)) return bytes
    return refusal(
      'QUEUE_FULL',
      `Task queue is full: with this task, the unfinished tasks would hold more than ${maxBytes} bytes of JSON (maxBytes)`,
    )
  }
}
