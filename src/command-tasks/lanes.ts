/**
 * The lanes of all instances: each runs the commands of its tasks one at a time, through the engine (S3 to S5).
 *
 * The charts decide (`lane.ts` what runs next, `command-task.ts` how a task ends); this file starts what they ask for, writes the
 * records, and says what is to be told. A lane lives as long as it has something queued or in flight, also while its instance is away.
 * It is long because every path to a task's end is here, and they must agree.
 */
import { createActor, type InspectionEvent } from 'xstate'
import {
  commandTaskMachine,
  type CommandFailure,
  type CommandTaskMachine,
  type CommandTaskEvent,
  type CommandTaskRef,
} from '../../machines/command-task.js'
import { laneMachine, type LaneMachine, type LaneRef, type LaneWork } from '../../machines/lane.js'
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import { runDirectly } from '../engine/direct-chart.js'
import type { Engine, Outcome, Run, Work } from '../engine/engine.js'
import type { Task, TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import { describeFailure } from '../protocol/outcomes.js'
import { toPlainData } from '../protocol/plain-data.js'
import type { CallProgress } from '../instances/instance.js'
import { completeMessage, endedTask, isLive, progressMessage, startedTask, withCommand } from './task-record.js'

/** A task and its actor. */
export interface TaskEntry {
  task: Task
  /** The place in the order of submission, from 1. */
  readonly place: number
  /** `InstanceEntry.serial` of the instance that it was submitted to; another may bear that id by now. */
  readonly instanceSerial: number
  readonly ref: CommandTaskRef
  readonly lane: Lane
}

export interface Lane {
  readonly instanceId: string
  readonly ref: LaneRef
  /** In the order of submission; ended tasks are dropped when the lane comes to them. */
  readonly entries: TaskEntry[]
  /** Tasks that have not ended. */
  live: number
  call: Call | undefined
}

/** A command in flight. It outlives its task when it was given up. */
interface Call {
  readonly entry: TaskEntry
  readonly index: number
  readonly run: Run
  isGivenUp: boolean
}

/** How one command is performed. */
export type PerformCommand = (
  task: Task,
  index: number,
  context: { readonly signal: AbortSignal; readonly onProgress: (progress: CallProgress) => void },
) => Promise<unknown>

export interface LanesOptions {
  readonly clock: Clock
  readonly engine: Engine
  readonly abortGraceMs: number
  /** How long a command may take that names no shorter time, in ms. */
  readonly commandTimeout: number
  readonly perform: PerformCommand
  readonly transact: <T>(change: () => T) => T
  readonly onProgress: (message: TaskProgressMessage) => void
  readonly onComplete: (message: TaskCompleteMessage) => void
  /** Runs later in the same change, when no chart is in a transition. */
  readonly defer: (effect: () => void) => void
  readonly onLateResult: (taskId: string, outcome: Outcome) => void
  readonly machines?: CommandTaskMachines | undefined
  /** Told of each inspection event inside the change; it must put it off. */
  readonly onInspected?: ((event: InspectionEvent) => void) | undefined
}

/** The charts to run, with implementations provided by `machine.provide`. */
export interface CommandTaskMachines {
  /** Runs the tasks of one instance, one after the other. */
  readonly lane?: LaneMachine
  /** Goes through the commands of one task. */
  readonly task?: CommandTaskMachine
}

export type Lanes = ReturnType<typeof createLanes>

export function createLanes(options: LanesOptions) {
  const { clock, engine, transact } = options
  const lanes = new Map<string, Lane>()
  const actorClock = {
    setTimeout: (run: () => void, ms: number) => setLongTimeout(clock, () => transact(run), ms),
    clearTimeout: (timer: unknown) => clearLongTimeout(clock, timer as LongTimer | undefined),
  }

  const timeoutOf = ({ task, ref }: TaskEntry): number =>
    Math.min(options.commandTimeout, task.commands[ref.getSnapshot().context.index]?.timeout ?? Infinity)

  // One chart for all lanes: to provide it anew would read it anew. What belongs to a lane is found by its work.
  const laneOf = new WeakMap<LaneWork, Lane>()
  const onLane = (act: (lane: Lane) => void) => (args: { readonly context: { readonly work: LaneWork } }) => {
    const lane = laneOf.get(args.context.work)
    if (lane !== undefined) act(lane)
  }
  const laneLogic = runDirectly(
    (options.machines?.lane ?? laneMachine).provide({
      actions: {
        startCall: onLane((lane) => {
          const entry = headOf(lane)
          if (entry !== undefined) startCall(entry)
        }),
        abortCall: onLane(giveUp),
        timeOutCall: onLane(timeOut),
      },
    }),
    options.machines?.lane === undefined && options.onInspected === undefined,
  )
  const taskLogic = runDirectly(
    options.machines?.task ?? commandTaskMachine,
    options.machines?.task === undefined && options.onInspected === undefined,
  )

  function openLane(instanceId: string): Lane {
    const known = lanes.get(instanceId)
    if (known !== undefined) return known
    const work: LaneWork = {
      hasNext: () => headOf(lane) !== undefined,
      timeoutMs: () => {
        const entry = headOf(lane)
        return entry === undefined ? options.commandTimeout : timeoutOf(entry)
      },
    }
    const ref = createActor(laneLogic, {
      id: `lane.${instanceId}`,
      clock: actorClock,
      ...(options.onInspected && { inspect: options.onInspected }),
      input: { instanceId, work },
    })
    const lane: Lane = { instanceId, ref, entries: [], live: 0, call: undefined }
    laneOf.set(work, lane)
    lanes.set(instanceId, lane)
    ref.start()
    return lane
  }

  function startCall(entry: TaskEntry): void {
    const now = clock.now()
    if (entry.task.status === 'queued') {
      entry.ref.send({ type: 'task.start' })
      entry.task = startedTask(entry.task, now)
    }
    const { index } = entry.ref.getSnapshot().context
    entry.task = withCommand(entry.task, index, { status: 'running', startedAt: now }, index)
    options.onProgress(progressMessage(entry.task, index, now))
    const { task } = entry
    const run = startRun({
      id: `${task.id}_${task.commands[index]?.id ?? index}`,
      graceMs: options.abortGraceMs,
      run: (signal) =>
        options.perform(task, index, { signal, onProgress: (progress) => reportProgress(call, progress) }),
      onLate: (outcome) => options.onLateResult(task.id, outcome),
    })
    const call: Call = { entry, index, run, isGivenUp: false }
    entry.lane.call = call
    run.settled.then(
      (outcome) => settleCall(call, outcome),
      (reason: unknown) => settleCall(call, { type: 'threw', reason }),
    )
  }

  /** An engine that refuses work must not stop the lane. */
  function startRun(work: Work): Run {
    try {
      return engine.start(work)
    } catch (reason) {
      return { settled: Promise.resolve({ type: 'threw', reason }), abort: () => undefined }
    }
  }

  function reportProgress(call: Call, { progress, total, message }: CallProgress): void {
    const { entry, index } = call
    if (entry.lane.call !== call || hasEnded(entry)) return
    // Field by field: a tool may report anything, and must not pass for the manager.
    const more = { progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) }
    transact(() => options.onProgress(progressMessage(entry.task, index, clock.now(), more)))
  }

  function settleCall(call: Call, outcome: Outcome): void {
    const { entry, index } = call
    const { lane } = entry
    transact(() => {
      if (call.isGivenUp) {
        if (outcome.type === 'returned') options.onLateResult(entry.task.id, outcome)
      } else if (outcome.type === 'returned') {
        endCommand(
          entry,
          index,
          { status: 'success', result: toPlainData(outcome.value) },
          { type: 'command.succeeded' },
        )
      } else {
        failCommand(entry, index, describeRejection(outcome))
      }
      lane.call = undefined
      lane.ref.send({ type: 'call.settled' })
      closeIfIdle(lane)
    })
  }

  function failCommand(entry: TaskEntry, index: number, error: CommandFailure): void {
    endCommand(entry, index, { status: 'error', error }, { type: 'command.failed', error })
  }

  function endCommand(
    entry: TaskEntry,
    index: number,
    change: { status: 'success'; result: unknown } | { status: 'error'; error: CommandFailure },
    event: CommandTaskEvent,
  ): void {
    const now = clock.now()
    entry.task = withCommand(entry.task, index, { completedAt: now, ...change })
    options.onProgress(progressMessage(entry.task, index, now))
    endBy(entry, event)
  }

  /** Tells a task's chart, and writes the end if that was it. Returns whether it was. */
  function endBy(entry: TaskEntry, event: CommandTaskEvent): boolean {
    const { task } = entry
    if (!isLive(task)) return false
    entry.ref.send(event)
    const end = entry.ref.getSnapshot().output
    if (end === undefined) return false
    const ended = endedTask(task, end, clock.now())
    entry.task = ended
    entry.lane.live -= 1
    options.onComplete(completeMessage(ended))
    return true
  }

  function timeOut(lane: Lane): void {
    const { call } = lane
    if (call === undefined) return
    const message = `Command timeout after ${timeoutOf(call.entry)}ms`
    failCommand(call.entry, call.index, { code: 'COMMAND_TIMEOUT', message })
  }

  function giveUp(lane: Lane): void {
    const { call } = lane
    if (call === undefined) return
    call.isGivenUp = true
    // Abort listeners are host code: not inside a transition of the lane.
    options.defer(() => call.run.abort(new DOMException('The command was given up.', 'AbortError')))
  }

  function closeIfIdle(lane: Lane): void {
    if (lane.live > 0 || lane.call !== undefined || lanes.get(lane.instanceId) !== lane) return
    lanes.delete(lane.instanceId)
    lane.ref.stop()
  }

  return {
    /** Tasks of an instance that have not ended. */
    liveCount: (instanceId: string): number => lanes.get(instanceId)?.live ?? 0,
    depths: (): ReadonlyMap<string, number> => new Map(Array.from(lanes, ([id, lane]) => [id, lane.live])),
    /** Puts a task at the end of its instance's lane; `wake` lets it start. */
    add(task: Task, place: number, instanceSerial: number): { entry: TaskEntry; wake: () => void } {
      const lane = openLane(task.instanceId)
      const ref = createActor(taskLogic, {
        id: `task.${task.id}`,
        input: { totalCommands: task.commands.length },
        parent: lane.ref,
      })
      ref.start()
      const entry: TaskEntry = { task, place, instanceSerial, ref, lane }
      lane.entries.push(entry)
      lane.live += 1
      // A task that was cancelled before this may have taken its lane with it.
      const wake = (): void => {
        if (lanes.get(task.instanceId) === lane) transact(() => lane.ref.send({ type: 'lane.wake' }))
      }
      return { entry, wake }
    },
    cancel: (entry: TaskEntry): boolean =>
      transact(() => {
        const error = { code: 'CANCELLED', message: 'Task cancelled' }
        if (!endBy(entry, { type: 'task.cancel', error })) return false
        const { lane } = entry
        // Tasks that are submitted and cancelled behind a long one would pile up otherwise (S9).
        const at = lane.entries.indexOf(entry)
        if (at !== -1) lane.entries.splice(at, 1)
        if (lane.call?.entry === entry) lane.ref.send({ type: 'call.abort' })
        closeIfIdle(lane)
        return true
      }),
    /** The instance is gone: every task of its lane fails that `isLost` does not except. */
    disconnect: (instanceId: string, isLost: (entry: TaskEntry) => boolean): void =>
      transact(() => {
        const lane = lanes.get(instanceId)
        if (lane === undefined) return
        const error = { code: 'INSTANCE_DISCONNECTED', message: 'Browser instance disconnected' }
        const lost = lane.entries.filter(isLost)
        lane.entries.splice(0, lane.entries.length, ...lane.entries.filter((entry) => !isLost(entry)))
        for (const entry of lost) endBy(entry, { type: 'instance.lost', error })
        if (lane.call !== undefined && isLost(lane.call.entry)) lane.ref.send({ type: 'call.abort' })
        closeIfIdle(lane)
      }),
    /** Calls that have not settled, given up or not. */
    calls: (): Promise<unknown>[] =>
      [...lanes.values()].flatMap(({ call }) => (call === undefined ? [] : [call.run.settled])),
    stop: (): void => {
      for (const lane of lanes.values()) lane.ref.stop()
      lanes.clear()
    },
  }
}

/** The task whose turn it is. Those that have ended are dropped on the way. */
function headOf({ entries }: Lane): TaskEntry | undefined {
  while (entries[0] !== undefined && hasEnded(entries[0])) entries.shift()
  return entries[0]
}

const hasEnded = ({ task }: TaskEntry): boolean => !isLive(task)

function describeRejection(outcome: Exclude<Outcome, { type: 'returned' }>): CommandFailure {
  if (outcome.type !== 'threw') return { code: 'EXECUTION_ERROR', message: 'The command did not run.' }
  const { reason } = outcome
  const code: unknown = reason instanceof Error && 'code' in reason ? reason.code : undefined
  return { code: typeof code === 'string' && code !== '' ? code : 'EXECUTION_ERROR', message: describeFailure(reason) }
}
