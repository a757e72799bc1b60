/** The errors that this package throws. Each has a stable `code`; those that callers catch have a class. */
import { preview } from './text/preview.js'

/** The base class of the errors that this package throws. */
export class AgentTasksError extends Error {
  /** The name of the class. */
  override readonly name: string = 'AgentTasksError'
  /** Identifies the kind of error; does not change between versions, as the message may. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** A task that is kept, in memory or in the history of the store, already has this id. Nothing has changed. */
export class TaskIdInUseError extends AgentTasksError {
  override readonly name = 'TaskIdInUseError'
  /** The id that is in use. */
  readonly taskId: string

  constructor(taskId: string) {
    super(
      'TASK_ID_IN_USE',
      `Task id ${preview(taskId)} is in use by a task that is kept, in memory or in the history of the store. Choose another id.`,
    )
    this.taskId = taskId
  }
}

/** Every slot is taken or reserved. Nothing has changed. */
export class TaskLimitError extends AgentTasksError {
  override readonly name = 'TaskLimitError'
  /** The limit that was reached. */
  readonly maxAsyncTasks: number

  /** @param queued how many tasks wait for a slot, or the bytes that are held for them, if the queue is full as well */
  constructor(maxAsyncTasks: number, queued?: number | QueueBytes, pool: LimitedPool = 'task') {
    super('TASK_LIMIT', limitReason(maxAsyncTasks, queued, pool))
    this.maxAsyncTasks = maxAsyncTasks
  }
}

const LIMITED = {
  task: 'async tasks',
  child: 'child tasks',
  command: 'command tasks',
  foreground: 'foreground tasks',
} as const

/** A queue that has no room for what a task needs, in bytes. */
export interface QueueBytes {
  /** What is held for the tasks that wait. */
  readonly bytes: number
  /** What one more task needs. */
  readonly asked: number
  /** The most that may be held. */
  readonly maxBytes: number
}

/** What a limit counts. */
type LimitedPool = keyof typeof LIMITED

/** The reason that there is no free slot. Models and hosts know this text. */
export function limitReason(max: number, queued?: number | QueueBytes, pool: LimitedPool = 'task'): string {
  const reason = `Max ${LIMITED[pool]} (${max}) reached`
  if (queued === undefined) return reason
  if (typeof queued === 'number') return `${reason}, and the queue is full (${queued} waiting)`
  const { bytes, asked, maxBytes } = queued
  return `${reason}, and the queue has no room for ${asked} bytes (${bytes} of ${maxBytes} bytes are in use)`
}

/** The reservation does not exist: it was used or cancelled, or has expired. Nothing has changed. */
export class ReservationError extends AgentTasksError {
  override readonly name = 'ReservationError'
  /** The id of the reservation. */
  readonly reservationId: string

  constructor(reservationId: string) {
    super(
      'RESERVATION_UNKNOWN',
      `Reservation ${preview(reservationId)} does not exist or has expired. Reserve a slot again with tryReserveAsyncSlot().`,
    )
    this.reservationId = reservationId
  }
}

/** The value of a setting or option is out of its range. The previous value stays. */
export class InvalidSettingError extends AgentTasksError {
  override readonly name = 'InvalidSettingError'
  /** The name of the setting or option. */
  readonly setting: string
  /** The value that was given. */
  readonly received: unknown

  /** @param message default: the setting, what came, and what was expected */
  constructor(
    setting: string,
    received: unknown,
    expected: string,
    message = `Setting ${setting}: got ${preview(received)}, expected ${expected}.`,
  ) {
    super('INVALID_SETTING', message)
    this.setting = setting
    this.received = received
  }
}

/** An argument is invalid. Nothing has changed. */
export class InvalidInputError extends AgentTasksError {
  override readonly name = 'InvalidInputError'
  /** The path of the invalid field, such as `input.goalPrompt`. */
  readonly field: string

  constructor(field: string, received: unknown, expected: string) {
    super('INVALID_INPUT', `${field}: got ${preview(received)}, expected ${expected}.`)
    this.field = field
  }
}

/**
 * A run may not launch this task: its family has its full size (`FAMILY_LIMIT`), its own task has ended (`PARENT_ENDED`), or the new task needs a slot that
 * a task above it holds (`HELD_BY_PARENT`). Or the run would wait for tasks that wait for it (`DEADLOCK`).
 */
export class FamilyError extends AgentTasksError {
  override readonly name = 'FamilyError'
  /** The task whose run was to launch another one. */
  readonly parentId: string

  constructor(
    code: 'FAMILY_LIMIT' | 'PARENT_ENDED' | 'HELD_BY_PARENT' | 'DEADLOCK',
    parentId: string,
    message: string,
  ) {
    super(code, message)
    this.parentId = parentId
  }
}

/** The tasks of the owner, or of all, are paused: nothing starts in the foreground (`PAUSED`). Nothing has changed. */
export class PausedError extends AgentTasksError {
  override readonly name = 'PausedError'
  /** Whose task was not started. */
  readonly owner: string

  constructor(owner: string) {
    super(
      'PAUSED',
      `The background tasks of ${preview(owner)} are paused: no task starts that its caller waits for. Launch it in the background, where it waits, or call resume().`,
    )
    this.owner = owner
  }
}

/** The manager was disposed: it can be read, but takes no new tasks. Or the turns of an agent were disposed (`createTurns`). */
export class DisposedError extends AgentTasksError {
  override readonly name = 'DisposedError'

  constructor(message = 'The task manager was disposed: it takes no new tasks.') {
    super('DISPOSED', message)
  }
}

/** A configuration file cannot be read or is invalid. Nothing was started. */
export class ConfigFileError extends AgentTasksError {
  override readonly name = 'ConfigFileError'
  /** The path of the file. */
  readonly file: string

  constructor(file: string, problem: string, options?: ErrorOptions) {
    super('INVALID_CONFIG', `${file}: ${problem}`, options)
    this.file = file
  }
}

/** A run's question was withdrawn: by the run, or because its task has ended or its deadline has passed. */
export class QuestionWithdrawnError extends AgentTasksError {
  override readonly name = 'QuestionWithdrawnError'
  /** The task whose run asked. */
  readonly taskId: string

  constructor(taskId: string) {
    super(
      'QUESTION_WITHDRAWN',
      `Task ${preview(taskId)} has ended or is overdue, or withdrew its question: that will not be answered.`,
    )
    this.taskId = taskId
  }
}

/**
 * An instance cannot be used: it did not start (`INSTANCE_START_FAILED`), has disconnected (`INSTANCE_DISCONNECTED`), does not
 * exist (`INSTANCE_UNKNOWN`), or its id is in use (`INSTANCE_ID_IN_USE`).
 */
export class InstanceError extends AgentTasksError {
  override readonly name = 'InstanceError'
  /** The id of the instance. */
  readonly instanceId: string

  constructor(code: InstanceErrorCode, instanceId: string, message: string, options?: ErrorOptions) {
    super(code, message, options)
    this.instanceId = instanceId
  }
}

/** The code of an `InstanceError`. */
export type InstanceErrorCode =
  'INSTANCE_START_FAILED' | 'INSTANCE_DISCONNECTED' | 'INSTANCE_UNKNOWN' | 'INSTANCE_ID_IN_USE'

/** A tool returned an error; code and message are the tool's. */
export class ToolCallError extends AgentTasksError {
  override readonly name = 'ToolCallError'
  /** The code as a number, when the tool sent one, as in JSON-RPC. */
  readonly number: number | undefined
  /** Further data of the tool about the error, if it sent any. */
  readonly data: unknown

  constructor(code: string | number, message: string, data?: unknown) {
    super(String(code), message)
    this.number = typeof code === 'number' ? code : undefined
    this.data = data
  }
}

/** A connection received something that its protocol does not allow. */
export class ProtocolError extends AgentTasksError {
  override readonly name = 'ProtocolError'

  constructor(message: string, options?: ErrorOptions) {
    super('PROTOCOL_ERROR', message, options)
  }
}
