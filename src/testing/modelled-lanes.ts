/**
 * The lanes as they should be (S1 to S5): per instance one call at a time, tasks in the order of submission, a task that ends once, and
 * nothing after a call that was given up before it has settled or its grace has passed.
 */
import type { CommandError, Task, TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import type { TaskProgress } from '../../machines/records.js'
import { answerOf, isLive, type LaneSettings, type PlayedAnswer } from './lane-actions.js'
import { changeCommand, commandOf, completeOf, endTask, progressOf, type TaskEnd } from './lane-records.js'
import type { ModelledConnection } from './modelled-instances.js'
import type { ModelledLoop, Telling } from './modelled-loop.js'

/** A task of the model; its record is replaced at each change. */
export interface ModelledTask {
  record: Task
  /** The command that runs, or runs next. */
  index: number
  readonly lane: ModelledLane
  /** The one that its instance had when it was submitted. */
  readonly connection: ModelledConnection
}

export interface ModelledLane {
  readonly instanceId: string
  /** Tasks that have not ended, in the order of submission. */
  readonly live: ModelledTask[]
  call: ModelledCall | undefined
}

/** A call of a tool. The tool has seen it once `connection` is there. */
export interface ModelledCall {
  readonly task: ModelledTask
  readonly index: number
  readonly timeout: unknown
  grace: unknown
  isGivenUp: boolean
  isAborted: boolean
  /** The lane no longer counts it. */
  isOver: boolean
  isAnswered: boolean
  connection: ModelledConnection | undefined
}

export interface ModelledLanesOptions {
  readonly settings: LaneSettings
  readonly loop: ModelledLoop
  readonly telling: Telling
  readonly tell: (message: TaskProgressMessage | TaskCompleteMessage) => void
  readonly connectionOf: (instanceId: string) => ModelledConnection | undefined
  /** A result of a call that was given up. */
  readonly onLate: (taskId: string) => void
}

export type ModelledLanes = ReturnType<typeof createModelledLanes>

export function createModelledLanes(options: ModelledLanesOptions) {
  const { settings, loop, telling, tell } = options
  const { clock } = loop
  const lanes = new Map<string, ModelledLane>()
  /** Those that a tool has seen, in that order. */
  const calls: ModelledCall[] = []

  function startNext(lane: ModelledLane): void {
    const task = lane.live[0]
    if (lane.call !== undefined || task === undefined) return
    const { index } = task
    const now = clock.now()
    const { status, startedAt = now } = task.record
    const record: Task = status === 'queued' ? { ...task.record, status: 'running', startedAt } : task.record
    task.record = changeCommand({ ...record, currentCommandIndex: index }, index, { status: 'running', startedAt: now })
    tell(progressOf(task.record, index, now))
    const call: ModelledCall = {
      task,
      index,
      timeout: clock.setTimeout(() => telling.change(() => timeOut(call)), timeoutOf(task)),
      grace: undefined,
      isGivenUp: false,
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

  /** A call that was aborted before it began never begins. */
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

  /** What the tool says ends the command, if it comes in time. */
  function answer(call: ModelledCall, how: PlayedAnswer): boolean {
    if (call.isAnswered) return false
    call.isAnswered = true
    const { error, settle } = answerOf(how)
    // An error that comes late is what an abort leads to; a result that does is lost work.
    const lose = (): void => {
      if (error === undefined) options.onLate(call.task.record.id)
    }
    loop.afterwards(() => {
      if (call.isOver) {
        lose()
        return
      }
      clock.clearTimeout(call.grace)
      telling.change(() => {
        if (call.isGivenUp) lose()
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
    tell(progressOf(task.record, index, clock.now()))
  }

  function timeOut(call: ModelledCall): void {
    failCommand(call, { code: 'COMMAND_TIMEOUT', message: `Command timeout after ${timeoutOf(call.task)}ms` })
    giveUp(call)
  }

  function end(task: ModelledTask, how: TaskEnd): void {
    const { live } = task.lane
    live.splice(live.indexOf(task), 1)
    const record = endTask(task.record, how, clock.now())
    task.record = record
    tell(completeOf(record, clock.now()))
  }

  function giveUp(call: ModelledCall): void {
    if (call.isGivenUp) return
    call.isGivenUp = true
    clock.clearTimeout(call.timeout)
    telling.tell(() => {
      if (call.isOver) return
      call.grace = clock.setTimeout(() => loop.later(() => release(call)), settings.abortGraceMs)
      call.isAborted = true
      const isHeeded = commandOf(call.task.record, call.index).tool_name === 'stops'
      if (isHeeded && call.connection !== undefined) answer(call, 'throws')
    })
  }

  /** The call no longer holds its lane. */
  function release(call: ModelledCall): void {
    const { lane } = call.task
    call.isOver = true
    telling.change(() => {
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
      const task: ModelledTask = { record, index: 0, lane, connection }
      lane.live.push(task)
      loop.later(() => {
        if (lanes.get(instanceId) === lane) telling.change(() => startNext(lane))
      })
      return task
    },
    cancel: (task: ModelledTask): boolean =>
      telling.change(() => {
        if (!isLive(task.record.status)) return false
        end(task, { status: 'cancelled', error: { code: 'CANCELLED', message: 'Task cancelled' } })
        const { call } = task.lane
        if (call?.task === task) giveUp(call)
        closeIfIdle(task.lane)
        return true
      }),
    /** Fails the tasks of an instance, or of one connection of it. */
    dropTasks: (instanceId: string, connection?: ModelledConnection): void =>
      telling.change(() => {
        const lane = lanes.get(instanceId)
        if (lane === undefined) return
        const isLost = (task: ModelledTask): boolean => connection === undefined || task.connection === connection
        for (const task of lane.live.filter(isLost)) {
          const name = task.connection.kind === 'local' ? 'In-process instance' : 'Browser instance'
          end(task, { status: 'failed', error: { code: 'INSTANCE_DISCONNECTED', message: `${name} disconnected` } })
        }
        if (lane.call !== undefined && isLost(lane.call.task)) giveUp(lane.call)
        closeIfIdle(lane)
      }),
    answer,
    failCalls(connection: ModelledConnection): void {
      for (const call of calls) if (call.connection === connection) answer(call, 'connection lost')
    },
    report({ task, index, isGivenUp, isOver }: ModelledCall, progress: TaskProgress): void {
      if (isGivenUp || isOver) return
      telling.change(() => tell(progressOf(task.record, index, clock.now(), progress)))
    },
  }
}
