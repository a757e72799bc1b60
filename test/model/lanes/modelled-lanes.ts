/**
 * The lanes of the model (S1 to S5). Each instance runs one call at a time, and its tasks in the order of submission. A task ends once.
 * After a call is aborted, the next one starts when it has settled or its grace has passed.
 */
import type {
  CommandError,
  Task,
  TaskCompleteMessage,
  TaskProgressMessage,
} from '../../../src/protocol/command-tasks.js'
import type { TaskProgress } from '../../../machines/records.js'
import { answerOf, isLive, type LaneSettings, type PlayedAnswer } from './actions.js'
import { changeCommand, commandOf, completeOf, endTask, progressOf, type TaskEnd } from './records.js'
import type { ModelledConnection } from './modelled-instances.js'
import type { ModelledLoop, ModelledOutbox } from './modelled-loop.js'

/** A task. Each change replaces its record. */
export interface ModelledTask {
  record: Task
  /** The index of the command that runs, or runs next. */
  index: number
  readonly lane: ModelledLane
  /** The connection of its instance when it was submitted. */
  readonly connection: ModelledConnection
  /** When it started, whatever the time of day was. */
  startedElapsed: number | undefined
}

export interface ModelledLane {
  readonly instanceId: string
  /** The live tasks, in the order of submission. */
  readonly live: ModelledTask[]
  call: ModelledCall | undefined
}

/** A call of a tool. It has a `connection` once it has begun. */
export interface ModelledCall {
  readonly task: ModelledTask
  readonly index: number
  readonly timeout: unknown
  grace: unknown
  /** Its command has ended, and it is aborted. */
  isAbandoned: boolean
  /** Its abort has reached the tool. */
  isAborted: boolean
  /** It no longer holds its lane. */
  isOver: boolean
  isAnswered: boolean
  connection: ModelledConnection | undefined
}

export interface ModelledLanesOptions {
  readonly settings: LaneSettings
  readonly loop: ModelledLoop
  readonly outbox: ModelledOutbox
  readonly emit: (message: TaskProgressMessage | TaskCompleteMessage) => void
  readonly connectionOf: (instanceId: string) => ModelledConnection | undefined
  /** Called with each result of an abandoned call. */
  readonly onLate: (taskId: string) => void
}

export type ModelledLanes = ReturnType<typeof createModelledLanes>

export function createModelledLanes(options: ModelledLanesOptions) {
  const { settings, loop, outbox, emit } = options
  const { clock } = loop
  const lanes = new Map<string, ModelledLane>()
  /** The calls that have begun, in that order. */
  const calls: ModelledCall[] = []

  function startNext(lane: ModelledLane): void {
    const task = lane.live[0]
    if (lane.call !== undefined || task === undefined) return
    const { index } = task
    const now = clock.now()
    const { status, startedAt = now } = task.record
    task.startedElapsed ??= clock.monotonic()
    const record: Task = status === 'queued' ? { ...task.record, status: 'running', startedAt } : task.record
    task.record = changeCommand({ ...record, currentCommandIndex: index }, index, { status: 'running', startedAt: now })
    emit(progressOf(task.record, index, now))
    const call: ModelledCall = {
      task,
      index,
      timeout: clock.setTimeout(() => outbox.batch(() => timeOut(call)), timeoutOf(task)),
      grace: undefined,
      isAbandoned: false,
      isAborted: false,
      isOver: false,
      isAnswered: false,
      connection: undefined,
    }
    lane.call = call
    loop.later(() => begin(call))
  }

  const timeoutOf = ({ record, index }: ModelledTask): number =>
    Math.min(settings.commandTimeout, commandOf(record, index).timeout ?? Infinity)

  /** Does not begin a call that was aborted before. */
  function begin(call: ModelledCall): void {
    if (call.isAborted) {
      clock.clearTimeout(call.grace)
      loop.later(() => release(call))
      return
    }
    const { record } = call.task
    call.connection = options.connectionOf(record.instanceId)
    calls.push(call)
    if (commandOf(record, call.index).tool_name === 'returns') answer(call, 'text')
  }

  /** The tool answers. In time, this ends the command. */
  function answer(call: ModelledCall, how: PlayedAnswer): boolean {
    if (call.isAnswered) return false
    call.isAnswered = true
    const { error, settle } = answerOf(how)
    // A late error follows from the abort; a late result is lost work.
    const lose = (): void => {
      if (error === undefined) options.onLate(call.task.record.id)
    }
    loop.afterwards(() => {
      if (call.isOver) {
        lose()
        return
      }
      clock.clearTimeout(call.grace)
      outbox.batch(() => {
        if (call.isAbandoned) lose()
        else if (error !== undefined) failCommand(call, error)
        else if ('returns' in settle) succeed(call, settle.returns)
        release(call)
      })
    })
    return true
  }

  function succeed({ task, index, timeout }: ModelledCall, result: unknown): void {
    clock.clearTimeout(timeout)
    endCommand(task, index, { status: 'success', result })
    task.index += 1
    if (task.index === task.record.commands.length) end(task, { status: 'completed' })
  }

  function failCommand({ task, index, timeout }: ModelledCall, error: CommandError): void {
    clock.clearTimeout(timeout)
    endCommand(task, index, { status: 'error', error })
    end(task, { status: 'failed', error })
  }

  function endCommand(
    task: ModelledTask,
    index: number,
    how: { status: 'success'; result: unknown } | { status: 'error'; error: CommandError },
  ): void {
    task.record = changeCommand(task.record, index, { ...how, completedAt: clock.now() })
    emit(progressOf(task.record, index, clock.now()))
  }

  function timeOut(call: ModelledCall): void {
    failCommand(call, { code: 'COMMAND_TIMEOUT', message: `Command timeout after ${timeoutOf(call.task)}ms` })
    abandon(call)
  }

  function end(task: ModelledTask, how: TaskEnd): void {
    const { live } = task.lane
    live.splice(live.indexOf(task), 1)
    const { startedElapsed = clock.monotonic() } = task
    const record = endTask(task.record, how, clock.now(), clock.monotonic() - startedElapsed)
    task.record = record
    emit(completeOf(record, clock.now()))
  }

  function abandon(call: ModelledCall): void {
    if (call.isAbandoned) return
    call.isAbandoned = true
    clock.clearTimeout(call.timeout)
    outbox.push(() => {
      if (call.isOver) return
      call.grace = clock.setTimeout(() => loop.later(() => release(call)), settings.abortGraceMs)
      call.isAborted = true
      const isHeeded = commandOf(call.task.record, call.index).tool_name === 'stops'
      if (isHeeded && call.connection !== undefined) answer(call, 'throws')
    })
  }

  /** Frees the lane of a call. */
  function release(call: ModelledCall): void {
    const { lane } = call.task
    call.isOver = true
    outbox.batch(() => {
      lane.call = undefined
      startNext(lane)
      closeIfIdle(lane)
    })
  }

  function closeIfIdle(lane: ModelledLane): void {
    const isIdle = lane.live.length === 0 && lane.call === undefined
    if (isIdle && lanes.get(lane.instanceId) === lane) lanes.delete(lane.instanceId)
  }

  return {
    calls,
    depths: (): Record<string, number> =>
      Object.fromEntries(Array.from(lanes, ([id, { live }]) => [id, live.length] as const)),
    liveCount: (instanceId: string): number => lanes.get(instanceId)?.live.length ?? 0,
    isIdle: (): boolean => lanes.size === 0,
    add(record: Task, connection: ModelledConnection): ModelledTask {
      const { instanceId } = record
      const lane = lanes.get(instanceId) ?? { instanceId, live: [], call: undefined }
      lanes.set(instanceId, lane)
      const task: ModelledTask = { record, index: 0, lane, connection, startedElapsed: undefined }
      lane.live.push(task)
      loop.later(() => {
        if (lanes.get(instanceId) === lane) outbox.batch(() => startNext(lane))
      })
      return task
    },
    cancel: (task: ModelledTask, why?: string): boolean =>
      outbox.batch(() => {
        if (!isLive(task.record.status)) return false
        const message = why === undefined ? 'Task cancelled' : `Task cancelled: ${why}`
        end(task, { status: 'cancelled', error: { code: 'CANCELLED', message } })
        const { call } = task.lane
        if (call?.task === task) abandon(call)
        closeIfIdle(task.lane)
        return true
      }),
    /** Fails the tasks of an instance, or of one of its connections. */
    dropTasks: (instanceId: string, connection?: ModelledConnection): void =>
      outbox.batch(() => {
        const lane = lanes.get(instanceId)
        if (lane === undefined) return
        const isLost = (task: ModelledTask): boolean => connection === undefined || task.connection === connection
        for (const task of lane.live.filter(isLost)) {
          const name = task.connection.kind === 'local' ? 'In-process instance' : 'Browser instance'
          end(task, { status: 'failed', error: { code: 'INSTANCE_DISCONNECTED', message: `${name} disconnected` } })
        }
        if (lane.call !== undefined && isLost(lane.call.task)) abandon(lane.call)
        closeIfIdle(lane)
      }),
    answer,
    failCalls(connection: ModelledConnection): void {
      for (const call of calls) if (call.connection === connection) answer(call, 'connection lost')
    },
    report({ task, index, isAbandoned, isOver }: ModelledCall, progress: TaskProgress): void {
      if (isAbandoned || isOver) return
      outbox.batch(() => emit(progressOf(task.record, index, clock.now(), progress)))
    },
  }
}
