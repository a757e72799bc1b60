/**
 * A real task manager that takes the actions of `lane-actions.ts`: with played instances, on a manual clock, wired as its user wires it.
 */
import { AgentTasksError } from '../../../src/errors.js'
import { InstanceManager } from '../../../src/instances/instance-manager.js'
import type { Instance } from '../../../src/instances/instance.js'
import { TaskManager, type SubmitResult, type TaskManagerOptions } from '../../../src/command-tasks/task-manager.js'
import type {
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskSubmitMessage,
} from '../../../src/protocol/command-tasks.js'
import {
  answerOf,
  invalidSubmissions,
  isLive,
  laneInstances,
  nthLast,
  SCRIPT_FUEL,
  SCRIPT_USES,
  submissionOf,
  type Answer,
  type LaneAction,
  type LaneInstance,
  type LaneSettings,
  type ListenerKind,
  type PlayedAnswer,
  type Script,
  type TaskTarget,
} from './actions.js'
import { baseListeners, performLaneAction, type LaneLogEntry, type LanePerformers, type LaneSide } from './side.js'
import { createManualClock, type ManualClock } from '../../../src/testing/manual-clock.js'
import { createPlayedInstance, type PlayedCall, type PlayedInstance } from './played-instance.js'

/** The real thing. */
export interface LaneHost extends LaneSide {
  /** Its time. */
  readonly clock: ManualClock
  /** The task manager under test. */
  readonly tasks: TaskManager
  /** Its instances. */
  readonly instances: InstanceManager
  drain(): Promise<void>
  advance(ms: number): Promise<void>
}

/** Options of `createLaneHost`. */
export interface LaneHostOptions {
  /** The limits of the task manager. */
  readonly settings: LaneSettings
  /** What the clock shows at first, in ms since the epoch. */
  readonly start?: number
  /** What may be connected, and is when the host is made. */
  readonly instances?: readonly LaneInstance[]
  /**
   * Makes the manager from these options: yours, with your listeners. It must take the clock, the instances and `onError` that it is
   * given, and an engine of yours must begin and end work in microtasks.
   */
  readonly createTaskManager?: (options: TaskManagerOptions) => TaskManager
  /** Wraps an instance in yours; its calls must reach the one that is given. */
  readonly wrapInstance?: (instance: Instance) => Instance
}

/** So many microtasks without a word, and nothing is under way any more. */
const QUIET_TURNS = 24

/** No script keeps a task manager busy for longer. */
const MAX_ROUNDS = 1000

/** Makes a host with its instances connected. */
export function createLaneHost(options: LaneHostOptions): LaneHost {
  const {
    settings,
    start = 0,
    instances: kinds = laneInstances,
    wrapInstance = (instance: Instance) => instance,
  } = options
  const clock = createManualClock(start)
  const log: LaneLogEntry[] = []
  let fuel = SCRIPT_FUEL
  let isOver = false
  const calls: PlayedCall[] = []
  const answers: (() => void)[] = []
  const submitted: string[] = []
  const connections: PlayedInstance[] = []
  const listeners: { stop: () => void }[] = []

  const instances = new InstanceManager({ clock, onError: (error) => void log.push({ reported: String(error) }) })
  const create = options.createTaskManager ?? ((given: TaskManagerOptions) => new TaskManager(given))
  const tasks = create({
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
    const kind = kinds.find((one) => one.id === id) ?? { id, kind: 'local' }
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
    instances.connect(wrapInstance(played.instance))
    connections.push(played)
  }

  const connectionsOf = (id: string) => connections.filter(({ instance }) => instance.id === id)

  // Whoever submits, a command of the user's own among them, the actions can name what was submitted.
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
    const onTold = (told: TaskProgressMessage | TaskCompleteMessage): void => {
      log.push({ listener: number, told })
      if (uses === SCRIPT_USES) return
      uses += 1
      for (const action of script) {
        if (fuel === 0) return
        fuel -= 1
        if (action.do === 'throw') throw new Error('a listener that throws')
        log.push({ listener: number, did: action.do, answer: perform(action) })
      }
    }
    // In the list first: a stream that has ended says so at once.
    const listener = { stop: () => undefined as unknown }
    listeners.push(listener)
    if (by === 'handler') {
      tasks.on(to, onTold)
      listener.stop = () => tasks.off(to, onTold)
      return
    }
    const observer = { next: onTold, complete: () => void log.push({ listener: number, ended: true }) }
    const subscription = to === 'progress' ? tasks.progress$.subscribe(observer) : tasks.complete$.subscribe(observer)
    listener.stop = () => subscription.unsubscribe()
  }

  const performers: LanePerformers = {
    submit: (action) => withoutWords(tasks.submitTask(submissionOf(action))),
    submitInvalid: ({ input }) => {
      const { message, refused } = invalidSubmissions[input]
      const names = 'names' in refused ? refused.names : undefined
      const result = tasks.submitTask(message as unknown as TaskSubmitMessage)
      const isNamed = names !== undefined && 'error' in result && result.error.startsWith(`${names}: `)
      return isNamed ? { ...withoutWords(result), names } : withoutWords(result)
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
      let heard: number
      do {
        heard = log.length + calls.length
        if ((rounds += 1) > MAX_ROUNDS) throw new Error('The task manager does not come to rest: it never ends.')
        for (let turn = 0; turn < QUIET_TURNS; turn += 1) await Promise.resolve()
      } while (log.length + calls.length !== heard)
    } while (takeAnswer())
  }

  function takeAnswer(): boolean {
    const next = answers.shift()
    next?.()
    return next !== undefined
  }

  for (const { to, by, script } of baseListeners) listen(to, by, script)
  for (const { id } of kinds) {
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
      const until = clock.now() + ms
      while (clock.nextDue !== undefined && clock.nextDue <= until) {
        clock.runNext()
        await drain()
      }
      clock.advance(until - clock.now())
    },
    get timers() {
      return clock.pending
    },
    observe: () => ({
      tasks: tasks.listTasks(),
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

/** Which words a refusal uses is its own affair; its code, and which field it means, are not. */
const withoutWords = (result: SubmitResult): object => ('error' in result ? { code: result.code } : { ...result })
