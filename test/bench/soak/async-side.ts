/**
 * The async tasks under a soak: tasks of several owners that end in every way, deliveries that are accepted, refused or hang, agents that
 * are busy, triggers that come and go, waits that are aborted. Each task is followed until nothing can happen to it any more, and
 * forgotten then, so that the soak itself does not grow.
 */
import { AsyncTaskAutoTrigger, type TurnDelivery } from '../../../src/async-tasks/auto-trigger.js'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { AsyncTaskReminderService } from '../../../src/async-tasks/reminder-service.js'
import { AgentTasksError } from '../../../src/errors.js'
import type { TaskTransition } from '../../../machines/records.js'
import type { Findings } from './findings.js'
import type { Random } from './random.js'
import { holdsWithin, pause, type Side } from './side.js'

const MAX_TASKS = 40
const STEPS_AT_ONCE = 20

interface Followed {
  readonly owner: string
  end: string | undefined
  isAccepted: boolean
}

interface Agent {
  readonly owner: string
  readonly trigger: AsyncTaskAutoTrigger
  unsubscribe: (() => void) | undefined
  isBusy: boolean
  underWay: number
}

export function createAsyncSide(random: Random, findings: Findings): Side {
  const manager = new AsyncTaskManager({
    maxAsyncTasks: MAX_TASKS,
    graceMs: 20,
    onError: (_error, { source }) => findings.count(`errors reported of ${source}`),
  })
  const reminders = new AsyncTaskReminderService(manager)
  const tasks = new Map<string, Followed>()
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
        () => `${id} was told, and owes nothing`,
      )
      findings.check(task?.isAccepted !== true, 'A5', () => `${id} is in two accepted messages`)
      if (task !== undefined) task.isAccepted = true
      findings.count('results accepted')
    }
  }

  const note = (transition: TaskTransition): void => {
    const { kind, seq, taskId, from, to, owner } = transition
    findings.check(seq > lastSeq, 'A2', () => `change ${seq} was told after ${lastSeq}`)
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
      // What a wait returns counts as told before whoever waits can look at it.
      if (to === 'delivered' && transition.deliveryId?.startsWith('wait-') === true) accept([taskId])
    } else if (kind === 'history') {
      const task = tasks.get(taskId)
      const isDone = task?.end === 'cancelled' || task?.isAccepted === true
      findings.check(isDone, 'A7', () => `${taskId} was pruned while it owed a message`)
      tasks.delete(taskId)
    }
  }
  manager.transitions$.subscribe(note)
  manager.onTaskCompleted(() => {
    findings.count('handlers that threw')
    if (random.chance(0.05)) throw new Error('a handler that throws')
  })

  const agents: Agent[] = ['main', 'researcher', 'writer'].map((owner) => {
    const turn = async (_text: string, { taskIds, signal }: TurnDelivery): Promise<void> => {
      findings.check(agent.underWay === 0, 'A6', () => `two deliveries of ${owner} are under way`)
      agent.underWay += 1
      let isOver = false
      // A turn that was given up may go on for a while; it no longer counts.
      const over = (): void => {
        if (!isOver) agent.underWay -= 1
        isOver = true
      }
      signal.addEventListener('abort', over, { once: true })
      try {
        const how = isDraining ? 0 : random.below(10)
        if (how > 0) await pause(random.below(6))
        if (how === 8) throw new Error('refused')
        if (how === 9) {
          findings.count('deliveries that hung')
          await new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(new Error('given up')), { once: true })
          })
        }
        // Its lease has been returned: what it says now comes too late.
        if (signal.aborted) throw new Error('given up')
        accept(taskIds)
      } finally {
        over()
        findings.count('deliveries')
      }
    }
    const agent: Agent = {
      owner,
      isBusy: false,
      underWay: 0,
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
      // Some stop when they are asked to, some do not.
      const isDeaf = random.chance(0.3)
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve()
        else if (!isDeaf) signal.addEventListener('abort', () => resolve(), { once: true })
      })
    }
    return { final_message: 'x'.repeat(random.below(200)) }
  }

  const begin = (): void => {
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
    // After its deadline whatever is said makes it fail, so that an end may be another than the one that was asked for.
    findings.check(!ended || wasRunning, 'A1', () => `${id} had ended, and ended again`)
    findings.check(manager.getTask(id)?.status !== 'running', 'A1', () => `${id} was ended and still runs`)
    findings.check(!manager.completeTask(id, {}), 'A1', () => `${id} was completed after its end`)
  }

  /** Two waits for one task both return it, which is no second message of ours. */
  const awaited = new Set<string>()
  const wait = (): void => {
    const free = manager.getRunningTasks().filter(({ id }) => !awaited.has(id))
    const ids = free.slice(0, 3).map(({ id }) => id)
    if (ids.length === 0) return
    for (const id of ids) awaited.add(id)
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('no longer wanted')), random.below(20))
    manager
      .waitFor(ids, { mode: random.pick(['any', 'all']), signal: controller.signal })
      .then(
        () => findings.count('waits'),
        () => findings.count('waits that were aborted'),
      )
      .finally(() => {
        for (const id of ids) awaited.delete(id)
      })
  }

  const act = (): void => {
    const what = random.below(100)
    const agent = random.pick(agents)
    if (what < 45) begin()
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
    const owing = all.filter(({ delivery }) => delivery === 'owed' || delivery === 'leased').length
    const ended = all.filter(({ status }) => status !== 'running').length
    findings.check(ended <= owing + 2 * MAX_TASKS, 'A7', () => `${ended} records are kept, and ${owing} of them owe`)
    findings.check(
      all.every((record) => Object.isFrozen(record)),
      'A8',
      () => 'a record is not frozen',
    )
  }

  return {
    step: () => {
      // What is registered and never ended would fill the registry.
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
      void manager.whenQuiet().then(() => (hasSettled = true))
      const isQuiet = await holdsWithin(20_000, () => hasSettled)
      findings.check(isQuiet, 'A6', () => `${manager.getPendingNotifications().length} are owed and nobody is told`)
      for (const [id, { end, isAccepted }] of tasks) {
        findings.check(end !== undefined, 'A1', () => `${id} never ended`)
        findings.check(end === 'cancelled' || isAccepted, 'A5', () => `${id} is ${end ?? 'running'} and never arrived`)
      }
      await manager.dispose()
    },
  }
}
