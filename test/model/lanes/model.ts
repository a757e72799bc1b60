/**
 * The model of a task manager and its instances: the answer of every action, the events that listeners get, and everything observable
 * after it, by S1 to S9. It has no actors, no promises and no engine.
 *
 * The commands (`commands.ts`) take the same actions on it and on a real task manager, and compare both.
 */
import type {
  Task,
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskSubmitMessage,
} from '../../../src/protocol/command-tasks.js'
import { AgentTasksError } from '../../../src/errors.js'
import { nthLast, type Answer } from '../drawing.js'
import {
  invalidSubmissions,
  isLive,
  laneInstances,
  SCRIPT_FUEL,
  SCRIPT_USES,
  submissionOf,
  type LaneAction,
  type LaneSettings,
  type ListenerKind,
  type Script,
  type TaskTarget,
} from './actions.js'
import { acceptedTask } from './records.js'
import { baseListeners, performLaneAction, type LaneLogEntry, type LanePerformers, type LaneSide } from './side.js'
import { createModelledInstances } from './modelled-instances.js'
import { createModelledLanes, type ModelledLanes, type ModelledTask } from './modelled-lanes.js'
import { createModelledLoop, createModelledOutbox } from './modelled-loop.js'

export interface LaneModel extends LaneSide {
  /** The record of a retained task. */
  getTask(taskId: string): Task | undefined
  /** Accepts or refuses a message, for a command that submits by itself. */
  submit(message: TaskSubmitMessage): unknown
}

interface ModelledListener {
  readonly number: number
  readonly to: 'progress' | 'complete'
  readonly by: ListenerKind
  readonly script: Script
  uses: number
  isListening: boolean
}

const HOUR_MS = 3_600_000

/**
 * Makes a model whose instances are connected.
 * @param start the time of the clock, in ms since the epoch
 */
export function createLaneModel(settings: LaneSettings, start = 0): LaneModel {
  const loop = createModelledLoop(start)
  const { clock } = loop
  const outbox = createModelledOutbox()
  const tasks = new Map<string, ModelledTask>()
  /** When each ended task ended, whatever the time of day was, in the order of their complete events. */
  const ended = new Map<string, number>()
  const submitted: string[] = []
  const listeners: ModelledListener[] = []
  const log: LaneLogEntry[] = []
  let fuel = SCRIPT_FUEL
  let sweep: unknown
  let lateResults = 0
  let isDisposed = false
  let hasFinished = false

  const connections = createModelledInstances(loop, {
    onGone: (connection) => {
      if (!isDisposed) lanes.dropTasks(connection.id, connection)
    },
    failCalls: (connection) => lanes.failCalls(connection),
  })
  const lanes: ModelledLanes = createModelledLanes({
    settings,
    loop,
    outbox,
    emit: (message) => outbox.push(() => emit(message)),
    connectionOf: (instanceId) => connections.get(instanceId),
    onLate: (taskId) => {
      lateResults += 1
      if (!isDisposed) log.push({ reported: 'late-result', taskId })
    },
  })

  function emit(message: TaskProgressMessage | TaskCompleteMessage): void {
    const isComplete = message.type === 'task_complete'
    if (isComplete) ended.set(message.taskId, clock.monotonic())
    const to = isComplete ? 'complete' : 'progress'
    for (const by of ['stream', 'handler'] satisfies ListenerKind[]) {
      // A listener that is added meanwhile gets the next event.
      for (const listener of listeners.filter((one) => one.by === by && one.to === to && one.isListening)) {
        if (listener.isListening) notify(listener, message)
      }
    }
    if (isComplete) prunePastLimit()
  }

  function notify(listener: ModelledListener, event: TaskProgressMessage | TaskCompleteMessage): void {
    const { number, script } = listener
    log.push({ listener: number, event })
    if (listener.uses === SCRIPT_USES) return
    listener.uses += 1
    for (const action of script) {
      if (fuel === 0) return
      fuel -= 1
      if (action.do === 'throw') {
        log.push(listener.by === 'stream' ? { reported: 'stream' } : { reported: 'handler', taskId: event.taskId })
        return
      }
      log.push({ listener: number, did: action.do, answer: perform(action) })
    }
  }

  function prunePastLimit(): void {
    while (ended.size > settings.maxRetained) forget([...ended.keys()][0] ?? '')
    if (sweep !== undefined || isDisposed || ended.size === 0) return
    sweep = clock.setTimeout(
      () => {
        sweep = undefined
        prune()
        if (ended.size > 0) prunePastLimit()
      },
      Math.max(1000, Math.min(HOUR_MS, settings.retentionMs)),
    )
  }

  function prune(maxAge: number = settings.retentionMs): number {
    const old = [...ended].filter(([, at]) => at < clock.monotonic() - maxAge)
    for (const [id] of old) forget(id)
    return old.length
  }

  function forget(id: string): void {
    ended.delete(id)
    tasks.delete(id)
  }

  function submit(message: TaskSubmitMessage): unknown {
    if (isDisposed) return { code: 'NO_INSTANCE' }
    const { instanceId } = message
    const connection = instanceId === undefined ? connections.first() : connections.get(instanceId)
    if (connection === undefined) return { code: instanceId === undefined ? 'NO_INSTANCE' : 'INVALID_INSTANCE' }
    if (connection.state !== 'connected') return { code: 'NOT_CONNECTED' }
    const live = lanes.liveCount(connection.id)
    if (live >= settings.maxQueueSize) return { code: 'QUEUE_FULL' }
    const id = `task_${clock.now()}_${(submitted.length + 1).toString(36)}`
    submitted.push(id)
    tasks.set(id, lanes.add(acceptedTask(id, connection.id, message, clock.now()), connection))
    return { taskId: id, queuePosition: live + 1 }
  }

  function idOf(target: TaskTarget): string {
    if ('id' in target) return target.id
    const ids = submitted.filter((id) => target.of === 'all' || isLive(tasks.get(id)?.record.status))
    return nthLast(ids, target.nth) ?? 'none'
  }

  const openCalls = () => lanes.calls.filter((call) => !call.isAnswered)

  const performers: LanePerformers = {
    submit: (action) => submit(submissionOf(action)),
    submitInvalid: ({ input }) => {
      if (isDisposed) return { code: 'NO_INSTANCE' }
      return invalidSubmissions[input].refused
    },
    cancel: ({ task }) => {
      const entry = tasks.get(idOf(task))
      return entry !== undefined && lanes.cancel(entry)
    },
    answer: ({ call: nth, how }) => {
      const call = nthLast(openCalls(), nth)
      return call !== undefined && lanes.answer(call, how)
    },
    report: ({ call: nth, progress }) => {
      const call = nthLast(lanes.calls, nth)
      if (call !== undefined) lanes.report(call, progress)
    },
    connect: ({ instance }) => connections.connect(instance),
    open: ({ instance }) => connections.open(instance),
    takeOver: ({ instance }) => connections.takeOver(instance),
    disconnect: ({ instance }) => connections.disconnect(instance),
    lose: ({ instance, connection }) => connections.lose(instance, connection),
    dropTasks: ({ instance }) => lanes.dropTasks(instance),
    listen: ({ to, by, script }) => {
      const number = listeners.length
      listeners.push({ number, to, by, script, uses: 0, isListening: !hasFinished || by === 'handler' })
      if (hasFinished && by === 'stream') log.push({ listener: number, ended: true })
    },
    unlisten: ({ listener }) => {
      const own = nthLast(listeners.slice(baseListeners.length), listener)
      if (own !== undefined) own.isListening = false
    },
    prune: ({ maxAge }) => prune(maxAge),
    jump: ({ ms }) => clock.jump(ms),
    look: ({ task, instance, status }) => ({
      task: tasks.get(idOf(task))?.record,
      listed: Array.from(tasks.values(), ({ record }) => record)
        .filter((record) => instance === undefined || record.instanceId === instance)
        .filter((record) => status === undefined || record.status === status)
        .map(({ id }) => id)
        .reverse(),
    }),
    dispose: () => {
      if (isDisposed) return
      isDisposed = true
      outbox.batch(() => {
        for (const task of [...tasks.values()]) lanes.cancel(task, 'the task manager was disposed')
        outbox.push(finish)
      })
    },
    throw: () => undefined,
  }

  function finish(): void {
    hasFinished = true
    clock.clearTimeout(sweep)
    for (const listener of listeners) {
      if (listener.by === 'stream' && listener.isListening) log.push({ listener: listener.number, ended: true })
      listener.isListening = false
    }
  }

  function perform(action: LaneAction): Answer {
    try {
      return { returned: performLaneAction(performers, action) }
    } catch (error) {
      if (error instanceof AgentTasksError) return { threw: error.code }
      throw error
    }
  }

  for (const listener of baseListeners) performers.listen(listener)
  for (const { id } of laneInstances) {
    connections.connect(id)
    connections.open(id)
  }

  return {
    act: perform,
    drain: () => loop.drain(),
    advance: (ms) => loop.advance(ms),
    get timers() {
      return clock.pending
    },
    getTask: (taskId) => tasks.get(taskId)?.record,
    submit,
    observe: () => ({
      tasks: Array.from(tasks.values(), ({ record }) => record),
      depths: lanes.depths(),
      instances: connections.list(),
      calls: lanes.calls.map(({ task: { record }, index, isAborted, isAnswered, connection }) => ({
        instanceId: record.instanceId,
        name: record.commands[index]?.tool_name ?? '',
        arguments: { index, ...(connection?.kind === 'websocket' && { instanceId: record.instanceId }) },
        taskId: record.id,
        commandId: record.commands[index]?.id,
        isAborted,
        isAnswered,
      })),
      lateResults,
      isOver: hasFinished && lanes.isIdle(),
    }),
    takeLog: () => {
      fuel = SCRIPT_FUEL
      return log.splice(0)
    },
  }
}
