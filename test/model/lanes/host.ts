/** The real task manager as a side of the model test: it takes the actions, on a manual clock and with played instances. */
import { AgentTasksError } from '../../../src/errors.js'
import { InstanceManager } from '../../../src/command-tasks/instances/instance-manager.js'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'
import type { SubmitResult, TaskManagerOptions } from '../../../src/command-tasks/options.js'
import type {
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskSubmitMessage,
} from '../../../src/protocol/command-tasks.js'
import { nthLast, type Answer } from '../drawing.js'
import {
  answerOf,
  invalidSubmissions,
  isLive,
  laneInstances,
  SCRIPT_FUEL,
  SCRIPT_USES,
  submissionOf,
  type LaneAction,
  type LaneSettings,
  type ListenerKind,
  type PlayedAnswer,
  type Script,
  type TaskTarget,
} from './actions.js'
import { baseListeners, performLaneAction, type LaneLogEntry, type LanePerformers, type LaneSide } from './side.js'
import { createJumpingClock, type JumpingClock } from '../../support/jumping-clock.js'
import { createPlayedInstance, type PlayedCall, type PlayedInstance } from './played-instance.js'

export interface LaneHost extends LaneSide {
  readonly clock: JumpingClock
  readonly tasks: TaskManager
  readonly instances: InstanceManager
  drain(): Promise<void>
  advance(ms: number): Promise<void>
}

/** Options of `createLaneHost`. */
export interface LaneHostOptions {
  readonly settings: LaneSettings
  /** The time of the clock at first, in ms since the epoch. Default 0. */
  readonly start?: number
  /** Makes the task manager; a planted fault makes it wrong. Its engine must start and end work in microtasks. */
  readonly createTaskManager?: (options: TaskManagerOptions) => TaskManager
}

/** After so many microtasks without an event or a call, nothing is under way. */
const QUIET_TICKS = 24

/** More rounds than any script causes. */
const MAX_ROUNDS = 1000

/** Makes a host whose instances are connected. */
export function createLaneHost(options: LaneHostOptions): LaneHost {
  const { settings, start = 0, createTaskManager = (given: TaskManagerOptions) => new TaskManager(given) } = options
  const clock = createJumpingClock(start)
  const log: LaneLogEntry[] = []
  let fuel = SCRIPT_FUEL
  let isOver = false
  const calls: PlayedCall[] = []
  const answers: (() => void)[] = []
  const submitted: string[] = []
  const connections: PlayedInstance[] = []
  const listeners: { stop: () => void }[] = []

  const instances = new InstanceManager({ clock, onError: (error) => void log.push({ reported: String(error) }) })
  const tasks = createTaskManager({
    ...settings,
    instances,
    clock,
    onError: (_error, { source, taskId }) =>
      void log.push({ reported: source, ...(taskId !== undefined && { taskId }) }),
  })

  function answer(call: PlayedCall, how: PlayedAnswer): boolean {
    if (call.isAnswered) return false
    call.isAnswered = true
    const { settle } = answerOf(how)
    answers.push(() => ('returns' in settle ? call.resolve(settle.returns) : call.reject(settle.throws())))
    return true
  }

  function connect(id: string): void {
    const kind = laneInstances.find((one) => one.id === id) ?? { id, kind: 'local' }
    const played = createPlayedInstance(kind, {
      onCall: (call) => {
        calls.push(call)
        if (call.call.name === 'returns') answer(call, 'text')
      },
      onAbort: (call) => {
        if (call.call.name === 'stops') answer(call, 'throws')
      },
      failCalls: (failed) => {
        for (const call of failed) answer(call, 'connection lost')
      },
    })
    instances.connect(played.instance)
    connections.push(played)
  }

  const connectionsOf = (id: string) => connections.filter(({ instance }) => instance.id === id)

  // The actions can also target tasks that a command submits by itself, as the agent's tool does.
  const submitTask = tasks.submitTask.bind(tasks)
  tasks.submitTask = (message) => {
    const result = submitTask(message)
    if (!('error' in result)) submitted.push(result.taskId)
    return result
  }

  function idOf(target: TaskTarget): string {
    if ('id' in target) return target.id
    const ids = submitted.filter((id) => target.of === 'all' || isLive(tasks.getTask(id)?.status))
    return nthLast(ids, target.nth) ?? 'none'
  }

  function listen(to: 'progress' | 'complete', by: ListenerKind, script: Script): void {
    const number = listeners.length
    let uses = 0
    const onEvent = (event: TaskProgressMessage | TaskCompleteMessage): void => {
      log.push({ listener: number, event })
      if (uses === SCRIPT_USES) return
      uses += 1
      for (const action of script) {
        if (fuel === 0) return
        fuel -= 1
        if (action.do === 'throw') throw new Error('a listener that throws')
        log.push({ listener: number, did: action.do, answer: perform(action) })
      }
    }
    // Added before it subscribes: a stream that has ended completes at once.
    const listener = { stop: () => undefined as unknown }
    listeners.push(listener)
    if (by === 'handler') {
      tasks.on(to, onEvent)
      listener.stop = () => tasks.off(to, onEvent)
      return
    }
    const observer = { next: onEvent, complete: () => void log.push({ listener: number, ended: true }) }
    const subscription = to === 'progress' ? tasks.progress$.subscribe(observer) : tasks.complete$.subscribe(observer)
    listener.stop = () => subscription.unsubscribe()
  }

  const performers: LanePerformers = {
    submit: (action) => withoutText(tasks.submitTask(submissionOf(action))),
    submitInvalid: ({ input }) => {
      const { message, refused } = invalidSubmissions[input]
      const names = 'names' in refused ? refused.names : undefined
      const result = tasks.submitTask(message as unknown as TaskSubmitMessage)
      const isNamed = names !== undefined && 'error' in result && result.error.startsWith(`${names}: `)
      return isNamed ? { ...withoutText(result), names } : withoutText(result)
    },
    cancel: ({ task }) => tasks.cancelTask(idOf(task)),
    answer: ({ call: nth, how }) => {
      const open = nthLast(
        calls.filter((call) => !call.isAnswered),
        nth,
      )
      return open !== undefined && answer(open, how)
    },
    report: ({ call, progress }) => nthLast(calls, call)?.report(progress),
    connect: ({ instance }) => connect(instance),
    open: ({ instance }) => connectionsOf(instance).at(-1)?.open(),
    takeOver: ({ instance }) => connectionsOf(instance).at(-1)?.takeOver(),
    disconnect: ({ instance }) => {
      const isKnown = instances.get(instance) !== undefined
      void instances.disconnect(instance)
      return isKnown
    },
    lose: ({ instance, connection }) => nthLast(connectionsOf(instance), connection)?.lose('The connection broke.'),
    dropTasks: ({ instance }) => tasks.handleInstanceDisconnect(instance),
    listen: ({ to, by, script }) => listen(to, by, script),
    unlisten: ({ listener }) => nthLast(listeners.slice(baseListeners.length), listener)?.stop(),
    prune: ({ maxAge }) => tasks.cleanupTasks(maxAge),
    jump: ({ ms }) => clock.jump(ms),
    look: ({ task, instance, status }) => ({
      task: tasks.getTask(idOf(task)),
      listed: tasks.listTasks(instance, status).map(({ id }) => id),
    }),
    dispose: () => {
      void tasks.dispose().then(() => (isOver = true))
    },
    throw: () => undefined,
  }

  function perform(action: LaneAction): Answer {
    try {
      const returned = performLaneAction(performers, action)
      return { returned: returned === tasks || action.do === 'unlisten' ? undefined : returned }
    } catch (error) {
      return { threw: error instanceof AgentTasksError ? error.code : String(error) }
    }
  }

  async function drain(): Promise<void> {
    let rounds = 0
    do {
      let before: number
      do {
        before = log.length + calls.length
        if ((rounds += 1) > MAX_ROUNDS) throw new Error('The task manager does not come to rest.')
        for (let tick = 0; tick < QUIET_TICKS; tick += 1) await Promise.resolve()
      } while (log.length + calls.length !== before)
    } while (takeAnswer())
  }

  function takeAnswer(): boolean {
    const next = answers.shift()
    next?.()
    return next !== undefined
  }

  for (const { to, by, script } of baseListeners) listen(to, by, script)
  for (const { id } of laneInstances) {
    connect(id)
    connections.at(-1)?.open()
  }

  return {
    clock,
    tasks,
    instances,
    act: perform,
    drain,
    advance: async (ms) => {
      const until = clock.monotonic() + ms
      while (clock.nextDue !== undefined && clock.nextDue <= until) {
        clock.runNext()
        await drain()
      }
      clock.advance(until - clock.monotonic())
    },
    get timers() {
      return clock.pending
    },
    observe: () => ({
      tasks: tasks.listTasks().reverse(),
      depths: Object.fromEntries(tasks.laneDepths),
      instances: instances.list().map(({ id, state }) => [id, state] as const),
      calls: calls.map(({ instanceId, isAnswered, call }) => ({
        instanceId,
        name: call.name,
        arguments: call.arguments,
        taskId: call.taskId,
        commandId: call.commandId,
        isAborted: call.signal.aborted,
        isAnswered,
      })),
      lateResults: tasks.lateResults,
      isOver,
    }),
    takeLog: () => {
      fuel = SCRIPT_FUEL
      return log.splice(0)
    },
  }
}

/** The text of a refusal is not compared; its code is. */
const withoutText = (result: SubmitResult): object => ('error' in result ? { code: result.code } : { ...result })
