/**
 * The errors that this package throws. Each has a `code` that does not change between versions. The classes below `AgentTasksError` make messages and fields; users
 * compare `code`, so that these classes are not public.
 */
import { preview } from './data/preview.js'
import type { ErrorCode } from './error-codes.js'

/** The error of this package. `code` says what went wrong (docs/errors.md); the other fields are present with some codes. */
export class AgentTasksError extends Error {
  /** The name of the class. */
  override readonly name: string = 'AgentTasksError'
  /** Identifies the kind of error. The code is the same in all versions, while the message may change. An error of a tool or of a server has the code that the tool or the server sent. */
  readonly code: ErrorCode
  /** The invalid argument, such as `input.goalPrompt`, or the setting or option that is out of range (`INVALID_INPUT`, `INVALID_SETTING`). */
  declare readonly field?: string
  /** The task whose id is in use, that has asked, that the server no longer has, or whose run tried to launch or wait (`TASK_ID_IN_USE`, `QUESTION_WITHDRAWN`, `TASK_EXPIRED`, `FAMILY_LIMIT`, `PARENT_ENDED`, `HELD_BY_PARENT`, `DEADLOCK`). */
  declare readonly taskId?: string
  /** The owner (conversation) that is paused, or whose own limit was reached (`PAUSED`, `TASK_LIMIT`). */
  declare readonly owner?: string
  /** The instance that cannot be used (`INSTANCE_…`). */
  declare readonly instanceId?: string
  /** The process that owns the store, if it is known (`STORE_IN_USE`). */
  declare readonly pid?: number | undefined

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Another task has the same id, in memory or in the history of the store. No task was registered. */
export class TaskIdInUseError extends AgentTasksError {
  override readonly taskId: string

  constructor(taskId: string) {
    super(
      'TASK_ID_IN_USE',
      `Task id ${preview(taskId)} is in use by a task that is kept, in memory or in the history of the store. Choose another id.`,
    )
    this.taskId = taskId
  }
}

/** All slots are taken or reserved, and the task may not wait or the queue is full. No task was registered. */
export class TaskLimitError extends AgentTasksError {
  /** The maximum number of tasks that was reached. */
  readonly maxAsyncTasks: number
  /** Absent if a limit of all owners was reached. */
  declare readonly owner?: string

  /**
   * @param queued given if the queue is full too: the number of waiting tasks, or what their goals and parameters take
   * @param remedy what the caller can do about it, as a sentence
   * @param ofOwner given if a limit of one owner was reached
   */
  constructor(
    maxAsyncTasks: number,
    queued?: number | QueueBytes,
    pool: LimitedPool = 'task',
    remedy?: string,
    ofOwner?: OwnerUse,
  ) {
    const reason =
      ofOwner === undefined
        ? limitReason(maxAsyncTasks, queued, pool)
        : ownerLimitReason(ofOwner, maxAsyncTasks, queued, pool)
    super('TASK_LIMIT', remedy === undefined ? reason : `${reason}. ${remedy}`)
    this.maxAsyncTasks = maxAsyncTasks
    if (ofOwner !== undefined) this.owner = ofOwner.owner
  }
}

const LIMITED = {
  task: 'async tasks',
  child: 'child tasks',
  command: 'command tasks',
  foreground: 'foreground tasks',
} as const

/** A queue that has no room for the goal and parameters of one more task. */
export interface QueueBytes {
  /** The bytes that are held for the waiting tasks. */
  readonly bytes: number
  /** The bytes that the new task needs. */
  readonly asked: number
  /** The maximum number of bytes that may be held. */
  readonly maxBytes: number
}

type LimitedPool = keyof typeof LIMITED

/** Explains why no slot is free. Do not change the text, because hosts and models may rely on it. A full queue is named by its option. */
export function limitReason(max: number, queued?: number | QueueBytes, pool: LimitedPool = 'task'): string {
  const reason = `Max ${LIMITED[pool]} (${max}) reached`
  if (queued === undefined) return reason
  if (typeof queued === 'number') return `${reason}, and the queue is full (${queued} waiting, queue.max)`
  return `${reason}, and the queue has no room for ${bytesReason(queued, 'queue.maxBytes')}`
}

/** An owner that has reached a limit of its own, and how many slots it holds. */
export interface OwnerUse {
  readonly owner: string
  readonly running: number
}

/** Explains why an owner may launch no further task. */
export function ownerLimitReason(
  { owner, running }: OwnerUse,
  max: number,
  queued?: number | QueueBytes,
  pool: LimitedPool = 'task',
): string {
  const who = preview(owner)
  if (queued === undefined) {
    return `Max ${LIMITED[pool]} of ${who} (${max}, ownerLimits.maxRunning) reached: ${running} run`
  }
  if (typeof queued === 'number') {
    return `Max waiting tasks of ${who} (${max}, ownerLimits.maxQueued) reached: ${queued} wait`
  }
  return `The waiting tasks of ${who} have no room for ${bytesReason(queued, 'ownerLimits.maxQueuedBytes')}`
}

const bytesReason = ({ bytes, asked, maxBytes }: QueueBytes, option: string): string =>
  `${asked} bytes (${bytes} of ${maxBytes} bytes are in use, ${option})`

/** The reservation does not exist: it was used, was cancelled, or has expired. No task was registered. */
export class ReservationError extends AgentTasksError {
  constructor(reservationId: string) {
    super(
      'RESERVATION_UNKNOWN',
      `Reservation ${preview(reservationId)} does not exist or has expired. Reserve a slot again with tryReserveAsyncSlot().`,
    )
  }
}

/** The value of a setting or option is out of range. The previous value stays in force. */
export class InvalidSettingError extends AgentTasksError {
  override readonly field: string

  /** @param message default: the setting, the received value and the expected value */
  constructor(
    setting: string,
    received: unknown,
    expected: string,
    message = `Setting ${setting}: got ${preview(received)}, expected ${expected}.`,
  ) {
    super('INVALID_SETTING', message)
    this.field = setting
  }
}

/** An argument is invalid. Nothing was changed. */
export class InvalidInputError extends AgentTasksError {
  override readonly field: string

  constructor(field: string, received: unknown, expected: string) {
    super('INVALID_INPUT', `${field}: got ${preview(received)}, expected ${expected}.`)
    this.field = field
  }
}

/**
 * A run may not launch this task or wait for these tasks. The code says why. `FAMILY_LIMIT`: it would exceed `maxFamilyDepth` or `maxChildrenPerTask`. `PARENT_ENDED`:
 * its own task has ended. `HELD_BY_PARENT`: the new task needs a slot that a task above it holds. `DEADLOCK`: the run would wait for tasks that wait
 * for it.
 */
export class FamilyError extends AgentTasksError {
  /** The task whose run tried to launch or wait. */
  override readonly taskId: string

  constructor(
    code: 'FAMILY_LIMIT' | 'PARENT_ENDED' | 'HELD_BY_PARENT' | 'DEADLOCK',
    parentId: string,
    message: string,
  ) {
    super(code, message)
    this.taskId = parentId
  }
}

/** The tasks of this owner, or all tasks, are paused, so no foreground task may start (`PAUSED`). No task was registered. */
export class PausedError extends AgentTasksError {
  override readonly owner: string

  constructor(owner: string) {
    super(
      'PAUSED',
      `The background tasks of ${preview(owner)} are paused, so a foreground task cannot start. Launch it in the background, where it waits, or call resume().`,
    )
    this.owner = owner
  }
}

/**
 * The manager was disposed: you can still read from it, but it takes no new tasks. `result` of a handle rejects with it
 * when a host with a store stops before the task has ended. Functions of a disposed `createTurns` throw this error too.
 */
export class DisposedError extends AgentTasksError {
  constructor(message = 'The task manager was disposed: it takes no new tasks.') {
    super('DISPOSED', message)
  }
}

/** A configuration file cannot be read or is invalid. Nothing was started. */
export class ConfigFileError extends AgentTasksError {
  /** The path of the file. */
  readonly file: string

  constructor(file: string, problem: string, options?: ErrorOptions) {
    super('INVALID_CONFIG', `${file}: ${problem}`, options)
    this.file = file
  }
}

/** A question will not be answered: its run has withdrawn it, the task has ended, or the deadline has passed. */
export class QuestionWithdrawnError extends AgentTasksError {
  override readonly taskId: string

  constructor(taskId: string) {
    super(
      'QUESTION_WITHDRAWN',
      `Task ${preview(taskId)} has ended or is overdue, or withdrew its question: the question will not be answered.`,
    )
    this.taskId = taskId
  }
}

/**
 * An instance cannot be used. The code says why. `INSTANCE_START_FAILED`: it did not start. `INSTANCE_DISCONNECTED`: its connection was lost.
 * `INSTANCE_UNKNOWN`: it does not exist. `INSTANCE_ID_IN_USE`: another instance has the same id.
 */
export class InstanceError extends AgentTasksError {
  override readonly instanceId: string

  constructor(code: InstanceErrorCode, instanceId: string, message: string, options?: ErrorOptions) {
    super(code, message, options)
    this.instanceId = instanceId
  }
}

/** The codes of instances that cannot be used. */
export type InstanceErrorCode =
  'INSTANCE_START_FAILED' | 'INSTANCE_DISCONNECTED' | 'INSTANCE_UNKNOWN' | 'INSTANCE_ID_IN_USE'

/** A tool has returned an error. The code and the message come from the tool. */
export class ToolCallError extends AgentTasksError {
  /** The numeric code of the error, as in JSON-RPC, if the tool has sent one. */
  readonly number: number | undefined
  /** Further data about the error, if the tool sent any. */
  readonly data: unknown

  constructor(code: string | number, message: string, data?: unknown) {
    super(String(code), message)
    this.number = typeof code === 'number' ? code : undefined
    this.data = data
  }
}

/** A connection received a message that its protocol does not allow. */
export class ProtocolError extends AgentTasksError {
  constructor(message: string, options?: ErrorOptions) {
    super('PROTOCOL_ERROR', message, options)
  }
}
