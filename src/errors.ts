/** The errors this package throws. Each has a stable `code`; the ones a caller would catch have a class. */
import { preview } from './preview.js'

/** The base of every error thrown here. */
export class AgentTasksError extends Error {
  /** The name of the class. */
  override readonly name: string = 'AgentTasksError'
  /** Stable and machine-readable; the message is for people. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** A retained record holds the id already (A4). Nothing was changed. */
export class TaskIdInUseError extends AgentTasksError {
  override readonly name = 'TaskIdInUseError'
  /** The id that is taken. */
  readonly taskId: string

  constructor(taskId: string) {
    super('TASK_ID_IN_USE', `Task id ${preview(taskId)} is in use: a retained task holds it. Choose another id.`)
    this.taskId = taskId
  }
}

/** Every slot is taken or reserved (A3). The message starts with the text of seed 000. */
export class TaskLimitError extends AgentTasksError {
  override readonly name = 'TaskLimitError'
  /** The limit that was reached. */
  readonly maxAsyncTasks: number

  constructor(maxAsyncTasks: number) {
    super('TASK_LIMIT', limitReason(maxAsyncTasks))
    this.maxAsyncTasks = maxAsyncTasks
  }
}

/** The text of seed 000 for a registry without a free slot. */
export function limitReason(maxAsyncTasks: number): string {
  return `Max async tasks (${maxAsyncTasks}) reached`
}

/** The reservation was never made, was used or cancelled, or has expired. Nothing was changed. */
export class ReservationError extends AgentTasksError {
  override readonly name = 'ReservationError'
  /** The reservation that was named. */
  readonly reservationId: string

  constructor(reservationId: string) {
    super(
      'RESERVATION_UNKNOWN',
      `Reservation ${preview(reservationId)} does not exist or has expired. Reserve a slot again with tryReserveAsyncSlot().`,
    )
    this.reservationId = reservationId
  }
}

/** A setting or limit is out of its range. The previous value stays. */
export class InvalidSettingError extends AgentTasksError {
  override readonly name = 'InvalidSettingError'
  /** The name of the setting or option. */
  readonly setting: string
  /** What came. */
  readonly received: unknown

  constructor(setting: string, received: unknown, expected: string) {
    super('INVALID_SETTING', `Setting ${setting}: got ${preview(received)}, expected ${expected}.`)
    this.setting = setting
    this.received = received
  }
}

/** An argument is not what the signature asks for. Nothing was changed. */
export class InvalidInputError extends AgentTasksError {
  override readonly name = 'InvalidInputError'
  /** The path of the field, as in `input.goalPrompt`. */
  readonly field: string

  constructor(field: string, received: unknown, expected: string) {
    super('INVALID_INPUT', `${field}: got ${preview(received)}, expected ${expected}.`)
    this.field = field
  }
}

/** The manager was disposed; it can still be read. */
export class DisposedError extends AgentTasksError {
  override readonly name = 'DisposedError'

  constructor() {
    super('DISPOSED', 'The task manager was disposed: it takes no new tasks.')
  }
}

/** A configuration file cannot be read, or holds what is not allowed. Nothing was started. */
export class ConfigFileError extends AgentTasksError {
  override readonly name = 'ConfigFileError'
  readonly file: string

  constructor(file: string, problem: string, options?: ErrorOptions) {
    super('INVALID_CONFIG', `${file}: ${problem}`, options)
    this.file = file
  }
}

/** A run's question will not be answered: its task has ended, or its deadline has passed. */
export class QuestionWithdrawnError extends AgentTasksError {
  override readonly name = 'QuestionWithdrawnError'
  /** The task that asked. */
  readonly taskId: string

  constructor(taskId: string) {
    super('QUESTION_WITHDRAWN', `Task ${preview(taskId)} has ended or is overdue: its question will not be answered.`)
    this.taskId = taskId
  }
}

/**
 * An instance cannot be used: it did not start (`INSTANCE_START_FAILED`), is gone (`INSTANCE_DISCONNECTED`), is not known
 * (`INSTANCE_UNKNOWN`), or its id is taken (`INSTANCE_ID_IN_USE`).
 */
export class InstanceError extends AgentTasksError {
  override readonly name = 'InstanceError'
  /** The instance it is about. */
  readonly instanceId: string

  constructor(code: InstanceErrorCode, instanceId: string, message: string, options?: ErrorOptions) {
    super(code, message, options)
    this.instanceId = instanceId
  }
}

/** The codes of `InstanceError`. */
export type InstanceErrorCode =
  'INSTANCE_START_FAILED' | 'INSTANCE_DISCONNECTED' | 'INSTANCE_UNKNOWN' | 'INSTANCE_ID_IN_USE'

/** A tool answered with an error of its protocol; code and message are the tool's own. */
export class ToolCallError extends AgentTasksError {
  override readonly name = 'ToolCallError'
  /** The JSON-RPC number, when the code is one. */
  readonly number: number | undefined
  /** What the tool said besides, if anything. */
  readonly data: unknown

  constructor(code: string | number, message: string, data?: unknown) {
    super(String(code), message)
    this.number = typeof code === 'number' ? code : undefined
    this.data = data
  }
}

/** What came over a connection is not what its protocol allows. */
export class ProtocolError extends AgentTasksError {
  override readonly name = 'ProtocolError'

  constructor(message: string, options?: ErrorOptions) {
    super('PROTOCOL_ERROR', message, options)
  }
}
