/** Decides about submissions (promise S8): a task is accepted when it is valid, its instance is connected, and there is room for it. */
import type { Clock } from '../clock.js'
import type { InstanceEntry, InstanceManager } from '../instances/instance-manager.js'
import { instanceNotFound, toolsNotFound } from '../instances/not-found.js'
import { jsonBytes } from '../json/json-size.js'
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
  /** The last place in the order of submission that an earlier process assigned. */
  readonly lastPlace: number
}

/** An accepted task, which the caller creates. */
export interface AcceptedTask {
  readonly submitted: SubmittedTask
  readonly origin: CommandTaskOrigin & { readonly instance: InstanceEntry }
}

export class Intake {
  readonly #options: IntakeOptions
  /** The last assigned place in the order of submission. */
  #lastPlace: number

  constructor(options: IntakeOptions) {
    this.#options = options
    this.#lastPlace = options.lastPlace
  }

  /** Decides about a submission, or repeats the answer to an earlier one with the same key. A refusal changes no state. */
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
    if (depth >= maxQueueSize) return refusal('QUEUE_FULL', `Task queue is full (max ${maxQueueSize})`)
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

  /** The first connected instance that has all tools, or else the first whose tools are not known. */
  #instanceWith(commands: readonly { readonly tool_name: string }[]): InstanceEntry | SubmitRefusal {
    const connected = this.#options.instances.list().filter(({ isConnected }) => isConnected)
    const [only] = connected
    if (only === undefined) return refusal('NO_INSTANCE', 'No instance is connected')
    // Its commands before the one with an unknown tool run, as if it had been named.
    if (connected.length === 1) return only
    const wanted = [...new Set(commands.map(({ tool_name }) => tool_name))]
    const offers = connected.map((entry) => ({ entry, names: entry.instance.toolNames }))
    const found =
      offers.find(({ names }) => names !== undefined && wanted.every((tool) => names.includes(tool))) ??
      // The tools of an MCP server may have changed since it named them.
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

  /** Reserves the bytes of a submission. Returns their number, or why it is refused. */
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
    return refusal('QUEUE_FULL', `Task queue is full: the tasks that have not ended hold ${maxBytes} bytes`)
  }
}
