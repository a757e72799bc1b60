/**
 * The soak's load on async tasks: tasks of several owners that end in every way, deliveries that are accepted, refused or hang, busy
 * agents, triggers that subscribe and unsubscribe, waits that are aborted. A task is tracked until its record is pruned, so that the
 * soak itself does not grow.
 */
import {
  AgentTasksError,
  AsyncTaskAutoTrigger,
  AsyncTaskManager,
  AsyncTaskReminderService,
  type TurnDelivery,
} from 'agent-tasks'
import type { Findings } from './findings.js'
import type { Random } from './random.js'
import { holdsWithin, pause, type Side } from './side.js'
import type { TaskTransition } from '../../../machines/transitions.js'

const MAX_TASKS = 40
const STEPS_AT_ONCE = 20

interface TrackedTask {
  readonly owner: string
  end: string | undefined
  isAccepted: boolean
}

interface Agent {
  readonly owner: string
  readonly trigger: AsyncTaskAutoTrigger
  unsubscribe: (() => void) | undefined
  isBusy: boolean
  deliveriesInFlight: number
}

export function createAsyncSide(random: Random, findings: Findings): Side {
  const manager = new AsyncTaskManager({
    maxAsyncTasks: MAX_TASKS,
    graceMs: 20,
    onError: (_error, { source }) => findings.count(`errors reported by ${source}`),
  })
  const reminders = new AsyncTaskReminderService(manager)
  const tasks = new Map<string, TrackedTask>()
  const registered: string[] = []
  let lastSeq = 0
  let isDraining = false
  let count = 0

  const accept = (taskIds: readonly string[]): void => {
    for (const id of taskIds) {
      const task = tasks.get(id)
      findings.check(
        task?.end === 'completed' || task?.end === 'failed',
        'A5',
        () => `${id} was delivered and owes nothing`,
      )
      findings.check(task?.isAccepted !== true, 'A5', () => `${id} is in two accepted messages`)
      if (task !== undefined) task.isAccepted = true
      findings.count('results accepted')
    }
  }

  const check = (transition: TaskTransition): void => {
    const { kind, seq, taskId, from, to, owner } = transition
    findings.check(seq > lastSeq, 'A2', () => `transition ${seq} was emitted after ${lastSeq}`)
    lastSeq = seq
    if (kind === 'status' && from === null) {
      findings.check(!tasks.has(taskId), 'A4', () => `${taskId} was registered while a record held its id`)
      tasks.set(taskId, { owner, end: undefined, isAccepted: false })
    } else if (kind === 'status') {
      const task = tasks.get(taskId)
      findings.check(task !== undefined && task.end === undefined, 'A1', () => `${taskId} ended twice`)
      if (task !== undefined) task.end = to
      findings.count(`tasks ${to}`)
    } else if (kind === 'delivery') {
      // A wait acknowledges its results before its promise resolves.
      if (to === 'delivered' && transition.deliveryId?.startsWith('wait-') === true) accept([taskId])
    } else if (kind === 'history') {
      const task = tasks.get(taskId)
      const isDone = task?.end === 'cancelled' || task?.isAccepted === true
      findings.check(isDone, 'A7', () => `${taskId} was pruned while it owed a message`)
      tasks.delete(taskId)
    }
  }
  manager.transitions$.subscribe(check)
  manager.onTaskCompleted(() => {
    findings.count('handlers that threw')
    if (random.chance(0.05)) throw new Error('a handler that throws')
  })

  const agents: Agent[] = ['main', 'researcher', 'writer'].map((owner) => {
    const turn = async (_text: string, { taskIds, signal }: TurnDelivery): Promise<void> => {
      findings.check(agent.deliveriesInFlight === 0, 'A6', () => `two deliveries of ${owner} are in flight`)
      agent.deliveriesInFlight += 1
      let hasEnded = false
      // An aborted turn may go on for a while, but it is no longer a delivery in flight.
      const end = (): void => {
        if (!hasEnded) agent.deliveriesInFlight -= 1
        hasEnded = true
      }
      signal.addEventListener('abort', end, { once: true })
      try {
        const how = isDraining ? 0 : random.below(10)
        if (how > 0) await pause(random.below(6))
        if (how === 8) throw new Error('refused')
        if (how === 9) {
          findings.count('deliveries that hung')
          await new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
          })
        }
        // The lease has been released: accepting now would be too late.
        if (signal.aborted) throw new Error('aborted')
        accept(taskIds)
      } finally {
        end()
        findings.count('deliveries')
      }
    }
    const agent: Agent = {
      owner,
      isBusy: false,
      deliveriesInFlight: 0,
      unsubscribe: undefined,
      trigger: new AsyncTaskAutoTrigger(manager, reminders, () => agent.isBusy, turn, {
        owner,
        retry: { initialMs: 5, maxMs: 40 },
        pollMs: 10,
        deliveryTimeoutMs: 30,
      }),
    }
    agent.unsubscribe = agent.trigger.subscribe()
    return agent
  })

  const run = async (signal: AbortSignal): Promise<Record<string, unknown>> => {
    const how = random.below(6)
    if (how > 1) await pause(random.below(10))
    if (how === 3) throw new Error('it broke')
    if (how === 4) {
      // Some runs ignore the abort.
      const ignoresAbort = random.chance(0.3)
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve()
        else if (!ignoresAbort) signal.addEventListener('abort', () => resolve(), { once: true })
      })
    }
    return { final_message: 'x'.repeat(random.below(200)) }
  }

  const start = (): void => {
    const owner = random.pick(agents).owner
    const input = { subagentName: 'agent', goalPrompt: 'soak', owner, timeoutMs: 15 + random.below(30) }
    try {
      if (random.chance(0.5)) {
        const reservation = random.chance(0.3) ? (manager.tryReserveAsyncSlot({ ttlMs: 50 }) ?? undefined) : undefined
        manager.launch(input, (_input, { signal }) => run(signal), reservation)
      } else {
        const id = `registered-${(count += 1)}`
        const controller = new AbortController()
        manager.registerTask({ ...input, id, abortController: controller })
        registered.push(id)
        if (random.chance(0.05)) controller.abort()
      }
    } catch (error) {
      findings.check(error instanceof AgentTasksError, 'A3', () => `a launch failed with ${String(error)}`)
      findings.count('launches refused')
    }
  }

  const endOne = (): void => {
    const id = registered.splice(random.below(registered.length), 1)[0]
    if (id === undefined) return
    const wasRunning = manager.getTask(id)?.status === 'running'
    const how = random.below(3)
    const ended =
      how === 0 ? manager.completeTask(id, { n: 1 }) : how === 1 ? manager.failTask(id, 'no') : manager.cancelTask(id)
    // After its deadline a task can only fail, so it may end differently from what was requested.
    findings.check(!ended || wasRunning, 'A1', () => `${id} had ended and ended again`)
    findings.check(manager.getTask(id)?.status !== 'running', 'A1', () => `${id} was ended and is still running`)
    findings.check(!manager.completeTask(id, {}), 'A1', () => `${id} was completed after its end`)
  }

  /** Two waits for one task both return it, which A5 allows; the soak waits for a task once. */
  const awaited = new Set<string>()
  const wait = (): void => {
    const free = manager.getRunningTasks().filter(({ id }) => !awaited.has(id))
    const ids = free.slice(0, 3).map(({ id }) => id)
    if (ids.length === 0) return
    for (const id of ids) awaited.add(id)
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('the wait was aborted')), random.below(20))
    manager
      .waitFor(ids, { mode: random.pick(['any', 'all']), signal: controller.signal })
      .then(
        () => findings.count('waits'),
        () => findings.count('waits aborted'),
      )
      .finally(() => {
        for (const id of ids) awaited.delete(id)
      })
  }

  const act = (): void => {
    const what = random.below(100)
    const agent = random.pick(agents)
    if (what < 45) start()
    else if (what < 75) endOne()
    else if (what < 80) {
      const victim = random.pick(manager.getRunningTasks())
      if ((victim as unknown) !== undefined) manager.cancelTask(victim.id)
    } else if (what < 85) agent.isBusy = !agent.isBusy
    else if (what < 88) agent.trigger.notifyIdle()
    else if (what < 92) {
      agent.unsubscribe?.()
      agent.unsubscribe = agent.unsubscribe === undefined ? agent.trigger.subscribe() : undefined
    } else if (what < 95) wait()
    else {
      const lease = reminders.leaseReminder({ owner: agent.owner })
      if (lease === undefined) return
      if (random.chance(0.3)) lease.release()
      else {
        accept(lease.taskIds)
        lease.acknowledge()
      }
    }
  }

  const checkLimits = (): void => {
    const all = manager.getAllTasks()
    for (const { owner } of agents) {
      const ended = all.filter((record) => record.owner === owner && record.status !== 'running')
      const owing = ended.filter(({ delivery }) => delivery === 'owed' || delivery === 'leased').length
      findings.check(
        ended.length <= owing + 2 * MAX_TASKS,
        'A7',
        () => `${owner} has ${ended.length} ended records, and ${owing} of them are owed`,
      )
    }
    findings.check(
      all.every((record) => Object.isFrozen(record)),
      'A8',
      () => 'a record is not frozen',
    )
  }

  return {
    step: () => {
      for (let n = 0; n < STEPS_AT_ONCE; n += 1) act()
      checkLimits()
    },
    finish: async () => {
      isDraining = true
      while (registered.length > 0) endOne()
      for (const agent of agents) {
        agent.isBusy = false
        agent.unsubscribe ??= agent.trigger.subscribe()
        agent.trigger.notifyIdle()
      }
      let hasSettled = false
      void manager.onIdle().then(() => (hasSettled = true))
      const isQuiet = await holdsWithin(20_000, () => hasSettled)
      findings.check(
        isQuiet,
        'A6',
        () => `${manager.getPendingNotifications().length} results are owed and no delivery starts`,
      )
      for (const [id, { end, isAccepted }] of tasks) {
        findings.check(end !== undefined, 'A1', () => `${id} never ended`)
        findings.check(
          end === 'cancelled' || isAccepted,
          'A5',
          () => `${id} is ${end ?? 'running'} and was never delivered`,
        )
      }
      await manager.dispose()
    },
  }
}
