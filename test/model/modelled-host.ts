/**
 * The model of the manager with a host around it: which callbacks are called, in which order, and what they do.
 *
 * The one rule is A2. A change is made and answered at once. Its events go to an outbox, which is emptied in order, and
 * never recursively, when the outermost call returns. Each event goes to the streams first, in the order of their
 * subscription, then to the handlers; the observers of the actor are notified when the outbox is empty.
 *
 * It is longer than most files because it specifies the whole public interface of the manager in one place.
 */
import {
  badInputs,
  outputs,
  OWNERS,
  RATE_LIMITED,
  reasons,
  type Action,
  type LaunchFields,
  type RegistrySettings,
  type Script,
  type StreamName,
  type Target,
  type TopAction,
} from './actions.js'
import {
  baseSubscriptions,
  KEY_LIMITS,
  perform,
  REMINDER_CHARS,
  SCRIPT_FUEL,
  SCRIPT_USES,
  type Host,
  type Performers,
} from './host.js'
import { nthLast, type Answer } from './drawing.js'
import {
  ANSWER_SCHEMA,
  budgetText,
  failureText,
  limitText,
  messageRefusal,
  notificationText,
  QUESTION,
  reminderText,
  stopText,
  unmetText,
  waitedText,
  type ModelOutcome,
} from './expected-texts.js'
import { accept, setReader, take, type ModelledInbox, type ModelTake } from './modelled-inbox.js'
import { abortSignal, makeSignal, stopListening, type ModelledSignal } from './modelled-signal.js'
import * as model from '../../src/testing/task-model.js'
import type { ModelLease, ModelQuestion, ModelRecord, ModelTask, OutboxItem } from '../../src/testing/task-model.js'

interface Subscription {
  readonly n: number
  readonly to: StreamName | 'completed' | 'failed' | 'cancelled' | 'abort'
  readonly script: Script
  readonly mayThrow: boolean
  uses: number
  isActive: boolean
  /** It gets only changes after this one. */
  since: number
  /** The counts it last got. */
  counts: string
}

interface Run {
  readonly n: number
  readonly task: ModelTask
  /** Which run of its task it is. */
  readonly attempt: number
  hasBegun: boolean
  isAborted: boolean
  outcome: ModelOutcome | undefined
}

interface Wait {
  readonly n: number
  readonly id: string
  readonly found: readonly ModelTask[]
  readonly unknown: readonly string[]
  readonly isOver: () => boolean
  isActive: boolean
  isAborted: boolean
}

interface Lease {
  readonly lease: ModelLease
  /** What it carried when it was taken. */
  readonly tasks: readonly ModelTask[]
  readonly records: readonly ModelRecord[]
  readonly questions: readonly ModelQuestion[]
}

/**
 * What the time brings to a task: its time limit, the end of its time to wrap up, and of its grace period after either; while it waits,
 * the time of its next run, or the end of the longest wait. One timer serves all of them.
 */
interface Deadline {
  readonly at: number
  readonly task: ModelTask
  readonly of: 'limit' | 'wrap-up' | 'grace' | 'back-off' | 'wait'
}

/** What a task with `after` waits for, in the order in which it names them, and what ends it. */
interface Dependent {
  readonly tasks: readonly ModelTask[]
  readonly mayFail: boolean
  /** How they ended. */
  readonly ends: Map<ModelTask, Readonly<ModelRecord>>
}

/** A question that a run has asked. */
interface Asked {
  readonly task: ModelTask
  /** Undefined when it could not ask. */
  readonly id: string | undefined
  answer: object | undefined
  /** Its run knows the answer, or that there will be none. */
  isSettled: boolean
}

interface Timer {
  readonly due: number
  readonly of: 'deadlines' | 'retries' | Wait
  readonly run: () => void
}

/** What only the host knows of a task. */
interface Attached {
  controller: ModelledSignal | undefined
  run: Run | undefined
  readonly retry: LaunchFields['retry']
  readonly takesMessages: boolean
  inbox: ModelledInbox | undefined
  /** How many questions its runs have asked. */
  asked: number
  /** The budget that it has exceeded, in words. */
  excess: string | undefined
  /** How long it may run on after an abort, in ms. */
  readonly graceMs: number
  isOverdue: boolean
  /** What it appended. */
  text: string
}

/** What the run of a task that was stopped still reported. */
interface StoppedRun {
  readonly reported?: string
  readonly more?: string
  readonly lateOutput?: object
}

/** An error of the model: only its message is compared. */
class Refusal extends Error {}

export function createModelledHost(settings: RegistrySettings, start: number): Host {
  const { max: maxQueued = 100 } = settings.queue ?? {}
  const ledger = model.emptyLedger(settings.maxAsyncTasks, settings.notifyCancelled, start)
  Object.assign(ledger, { agingMs: settings.queue?.agingMs ?? 60_000, keyLimits: KEY_LIMITS })
  let log: unknown[] = []
  const subscriptions: Subscription[] = []
  /** In the order of subscription: streams of changes, and waits. */
  let subscribed: (Subscription | Wait)[] = []
  const controllers = new Map<string, ModelledSignal>()
  const attached = new Map<ModelTask, Attached>()
  const runs: Run[] = []
  const waitResults: unknown[] = []
  const waits: (Wait | undefined)[] = []
  const leases: Lease[] = []
  const reservations: (string | null)[] = []
  const idCounters = new Map<string, number>()
  /** What follows the changes of a batch, in their order: aborts, the ends of times to wrap up, and starts of runs. */
  const effects: (() => void)[] = []
  /** What tasks with `after` wait for. */
  const dependent = new Map<ModelTask, Dependent>()
  /** Since when an owner is paused, or everyone. */
  const pauses = new Map<string | undefined, number>()
  /** How long tasks that a pause holds back may still wait for a slot, in ms. */
  const waitsLeft = new Map<ModelTask, number>()
  const asked: Asked[] = []
  const takes: ModelTake[] = []
  const spent = new Map<string | undefined, number>()
  let sent = 0
  /** The engine refuses the next run. */
  let refusesNext = false
  let timers: Timer[] = []
  let deadlines: Deadline[] = []
  const jobs: (() => void)[] = []
  let depth = 0
  let isEmitting = false
  let fuel = SCRIPT_FUEL
  let disposal: { readonly runs: readonly Run[] } | undefined
  let isDisposed = false

  // The outbox (A2)

  function batch<T>(change: () => T): T {
    depth += 1
    try {
      return change()
    } finally {
      for (let next = effects.shift(); next; next = effects.shift()) next()
      depth -= 1
      if (depth === 0 && !isEmitting) emptyOutbox()
    }
  }

  function emptyOutbox(): void {
    isEmitting = true
    do {
      for (const item of ledger.outbox.splice(0)) emit(item)
      if (ledger.outbox.length === 0) {
        setDeadlineTimer()
        notifyObservers()
        // An observer may have reserved a slot, of which nobody is notified.
        setDeadlineTimer()
      }
    } while (ledger.outbox.length > 0)
    isEmitting = false
  }

  function emit(item: OutboxItem): void {
    for (const subscriber of [...subscribed]) {
      if (!('found' in subscriber) && subscriber.isActive && !isDisposed) emitToStream(subscriber, item)
    }
    if ('questionsOf' in item) lookAtWaits(item.questionsOf)
    // What waits for a task looks at each change of its status: others that it waits for may have ended meanwhile.
    if ('transition' in item && item.transition.kind === 'status' && item.transition.from !== null) {
      lookAtWaits(item.task)
    }
    if (!isEnd(item)) return
    const { transition, task } = item
    for (const handler of subscriptions.filter(({ to }) => to === transition.to)) {
      if (!handler.isActive || handler.since >= transition.seq) continue
      call(handler, 'handler', transition.taskId, () => ({
        record: transition.record,
        found: model.find(ledger, transition.taskId)?.record,
      }))
    }
    unlink(task)
    const { inbox } = of(task)
    if (inbox) setReader(inbox, undefined)
    stopWaiting(task)
    task.isHandled = true
    if (!isDisposed) model.prune(ledger)
  }

  function lookAtWaits(task: ModelTask): void {
    for (const wait of [...subscribed]) {
      if ('found' in wait && wait.isActive && wait.found.includes(task) && wait.isOver()) endWait(wait)
    }
  }

  function emitToStream(subscription: Subscription, item: OutboxItem): void {
    const { to } = subscription
    if (!('transition' in item)) return
    if (to === 'owed' || to === 'running') {
      emitCounts(subscription)
      return
    }
    if (item.transition.seq <= subscription.since) return
    if (to === 'transitions') call(subscription, 'stream', undefined, () => ({ transition: item.transition }))
    else if (isEnd(item)) call(subscription, 'stream', undefined, () => ({ settled: item.transition.record }))
  }

  function emitCounts(subscription: Subscription): void {
    const counts = countsOf(subscription.to === 'owed' ? model.owed(ledger) : model.running(ledger))
    if (JSON.stringify(counts) === subscription.counts) return
    subscription.counts = JSON.stringify(counts)
    call(subscription, 'stream', undefined, () => ({ counts }))
  }

  function notifyObservers(): void {
    for (const observer of subscriptions.filter(({ to }) => to === 'actor')) {
      if (!observer.isActive || observer.since === ledger.seq) continue
      observer.since = ledger.seq
      call(observer, 'actor-observer', undefined, () => ({ actor: ledger.seq }))
    }
  }

  /** Calls a callback of the host: logs its argument, runs its script, and reports what it throws. */
  function call(to: Subscription, source: string, taskId: string | undefined, what: () => object): void {
    log.push({ called: to.n, ...what() })
    if (to.uses === 0) return
    to.uses -= 1
    for (const action of to.script) {
      if (fuel === 0) return
      fuel -= 1
      if (action.do !== 'throw') log.push({ by: to.n, did: action.do, answer: answerTo(action) })
      else if (to.mayThrow) {
        report(source, taskId)
        return
      }
    }
  }

  function report(source: string, taskId?: string): void {
    log.push({ reported: source, ...(taskId !== undefined && { taskId }) })
  }

  // Tasks

  function admit(
    fields: LaunchFields,
    id: string,
    how: {
      isLaunched: boolean
      isForeground: boolean
      reservation?: number
      takesMessages?: boolean
      waits?: Dependent
    },
  ) {
    if (disposal) throw new Refusal('DISPOSED')
    const { concurrencyKey: key } = fields
    const isAbove = (at: ModelTask | undefined): boolean =>
      at !== undefined &&
      ((ledger.keyed.includes(at) && at.record.concurrencyKey === key) ||
        isAbove(at.record.parentId === undefined ? undefined : model.find(ledger, at.record.parentId)))
    // A task above it has its key.
    if (key !== undefined && isAbove(parentOf(fields.parent))) throw new Refusal('a family')
    if (model.find(ledger, id)) throw new Refusal('TASK_ID_IN_USE')
    const reservationId = reservationOf(how.reservation)
    if (reservationId !== undefined && !model.liveReservations(ledger).includes(reservationId)) {
      throw new Refusal('RESERVATION_UNKNOWN')
    }
    const parent = parentOf(fields.parent)
    const isPaused = how.isLaunched && !parent && isPausedOwner(fields.owner ?? 'main')
    const isLimited = how.isLaunched && !how.isForeground && reservationId === undefined && !parent
    const isHeld = how.waits !== undefined && isHeldBack(how.waits)
    const lacksKey = key !== undefined && !mayHaveKey(key)
    const waits = isHeld || lacksKey || (isPaused && !how.isForeground) || (isLimited && !model.hasRoom(ledger))
    const pool = how.isForeground ? 'none' : parent ? (`child ${(parent.record.depth ?? 0) + 1}` as const) : 'task'
    const waiting = model.queueOf(ledger, pool).filter(({ record }) => pool !== 'none' || !record.parentId).length
    if (waits && fields.whenFull === undefined && !how.waits && key === undefined && !isPaused) {
      throw new Refusal(`TASK_LIMIT: ${limitText(ledger.max)}`)
    }
    if (waits && waiting >= maxQueued) {
      const text = limitText(pool === 'task' ? ledger.max : pool === 'none' ? -1 : 20, waiting)
      const kind = pool === 'task' ? 'async' : pool === 'none' ? 'foreground' : 'child'
      throw new Refusal(`TASK_LIMIT: ${text.replace('async', kind)}`)
    }
    if (isPaused && how.isForeground) throw new Refusal('PAUSED')
    if (parent && !mayLaunch(parent)) throw new Refusal('a family')
    const { timeoutMs, budget, retry, priority = 0 } = fields
    const controller = fields.controller === undefined ? undefined : controllerOf(fields.controller)
    const name = controller?.name ?? (how.isLaunched ? 'own' : undefined)
    const task = model.newTask(
      {
        id,
        subagentName: 'agent',
        goalPrompt: 'goal',
        owner: parent ? model.ownerOfRun(parent.record.id) : (fields.owner ?? 'main'),
        launchedAt: ledger.now,
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(budget && { budget }),
        ...(key !== undefined && { concurrencyKey: key }),
        ...(how.waits && { after: how.waits.tasks.map(({ record }) => record.id) }),
        ...(parent && { parentId: parent.record.id, depth: (parent.record.depth ?? 0) + 1 }),
        ...(name !== undefined && { abortController: name }),
      },
      { ...how, priority },
    )
    const pending = isHeld ? how.waits!.tasks.filter(model.isActive) : []
    if (pending.length > 0) task.record = { ...task.record, waitsFor: pending.map(({ record }) => record.id) }
    task.isHeld = isHeld
    model.admit(ledger, task, how.isForeground, reservationId, waits ? 'queued' : 'running')
    const registered = task.record
    const graceMs = fields.graceMs ?? settings.graceMs
    attached.set(task, {
      controller,
      run: undefined,
      graceMs,
      isOverdue: false,
      text: '',
      retry,
      takesMessages: how.takesMessages === true,
      inbox: undefined,
      asked: 0,
      excess: undefined,
    })
    if (!waits) setDeadline(task, 'limit')
    else if (!isHeld) waitForSlots(task)
    // A foreground task leaves the slot of its reservation to what waits.
    batch(startNext)
    if (controller) link(task, controller)
    return { task, registered }
  }

  /** Moves a task from the foreground to the background (F14). */
  function detach(id: string): object {
    const refuse = (reason: string): object => ({ detached: false, reason })
    const task = model.find(ledger, id)
    const name = JSON.stringify(id)
    if (!task) return refuse(`There is no task ${name}.`)
    startNext()
    if (!model.isActive(task)) return refuse(`Task ${name} has ended: it is ${task.record.status}.`)
    if (task.record.isForeground !== true) return refuse(`Task ${name} is in the background already.`)
    if (!model.detach(ledger, task)) throw new Refusal(`TASK_LIMIT: ${limitText(ledger.max)}`)
    if (task.record.status === 'queued' && !task.isDelayed && task.record.concurrencyKey === undefined) {
      setDeadline(task, 'wait')
    }
    startNext()
    return { detached: true }
  }

  /** Whether a new task may have its key, and nothing that waits reserves it. */
  function mayHaveKey(key: string): boolean {
    const { keyed, keyLimits } = ledger
    const isFree = keyed.filter(({ record }) => record.concurrencyKey === key).length < (keyLimits[key] ?? 1)
    return isFree && model.lookAtKeyed(ledger).reserved !== key
  }

  /** Only slots are missing from now on: when it is only that of its pool, its longest wait begins. */
  function waitForSlots(task: ModelTask): void {
    task.since.slots = ledger.now
    if (task.record.concurrencyKey === undefined) setDeadline(task, 'wait')
  }

  /** The longest wait of a task with a key counts while its key is free. */
  function limitKeyedWaits(): void {
    for (const task of model.keyedQueue(ledger)) {
      if (!model.isKeyFree(ledger, task)) dropDeadlines(task)
      else if (deadlines.every((deadline) => deadline.task !== task)) setDeadline(task, 'wait')
    }
  }

  const parentOf = (target: Target | undefined): ModelTask | undefined => target && model.find(ledger, idOf(target))

  /** Three generations below the first, and at most twenty tasks of one run. */
  function mayLaunch(parent: ModelTask): boolean {
    const { id, status, depth = 0 } = parent.record
    if (status !== 'running' || of(parent).isOverdue || depth >= 3) return false
    const owner = model.ownerOfRun(id)
    const ended = [...model.owed(ledger, owner), ...model.leased(ledger, owner)]
    return model.childrenOf(ledger, parent).length + ended.length < 20
  }

  /** Every change ends with this: a free slot goes to the task that is next (F8). */
  function startNext(): void {
    if (isDisposed) return
    applyPauses()
    for (const task of model.startNext(ledger)) {
      dropDeadlines(task)
      setDeadline(task, 'limit')
      effects.push(() => startWaited(task))
    }
    limitKeyedWaits()
  }

  /** A task that has waited took a slot: its run starts, unless it has ended since. */
  function startWaited(task: ModelTask): void {
    stopWaiting(task)
    if (model.isActive(task)) startRun(task)
    else batch(() => freeSlot(task))
  }

  function freeSlot(task: ModelTask): void {
    if (isDisposed) return
    model.releaseSlot(ledger, task)
    startNext()
  }

  function reservationOf(nth: number | undefined): string | undefined {
    return nth === undefined || reservations.length === 0 ? undefined : (nthLast(reservations, nth) ?? 'none')
  }

  function launch(action: Action & { do: 'launch' }): ModelRecord {
    const { fields, isForeground = false, isRefused = false } = action
    if (fields.parent && !parentOf(fields.parent)) throw new Refusal('INVALID_INPUT')
    if (fields.after && isForeground) throw new Refusal('INVALID_INPUT')
    if (isRefused) refusesNext = true
    try {
      return batch(() => {
        const id = fields.id ?? freshId('agent', (taken) => model.find(ledger, taken) !== undefined)
        const waits = dependentOf(fields, id)
        const how = { ...action, isLaunched: true, isForeground, ...(waits && { waits }) }
        const { task, registered } = admit(fields, id, how)
        if (waits && model.isActive(task) && task.isHeld) beginToWait(task, waits)
        if (registered.status === 'running') startRun(task)
        return registered
      })
    } finally {
      refusesNext = false
    }
  }

  // Pauses (F19)

  const isPausedOwner = (owner: string): boolean =>
    !owner.startsWith('run:') && (pauses.has(undefined) || pauses.has(owner))

  /** What waits is held back while its owner is paused: that does not count as waiting for a slot. */
  function applyPauses(): void {
    for (const task of model.queued(ledger)) {
      const isPaused = isPausedOwner(task.record.owner)
      if (isPaused === task.isPaused) continue
      task.isPaused = isPaused
      const wait = deadlines.find((deadline) => deadline.task === task && deadline.of === 'wait')
      if (isPaused && wait) {
        waitsLeft.set(task, wait.at - ledger.now)
        deadlines = deadlines.filter((deadline) => deadline !== wait)
      }
      if (!isPaused && !task.isHeld && !task.isDelayed) {
        const { maxWaitMs = 0 } = settings.queue ?? {}
        task.since.slots = ledger.now - (maxWaitMs - (waitsLeft.get(task) ?? maxWaitMs))
        if (task.record.concurrencyKey === undefined) setDeadline(task, 'wait', waitsLeft.get(task))
      }
      if (!isPaused) waitsLeft.delete(task)
    }
  }

  function pause(owner: string | undefined): object {
    if (isDisposed) throw new Refusal('DISPOSED')
    if (!pauses.has(owner)) {
      pauses.set(owner, ledger.now)
      batch(startNext)
    }
    return { deliveries: 'send', since: pauses.get(owner), ...(owner !== undefined && { owner }) }
  }

  function resume(owner: string | undefined): boolean {
    if (isDisposed || !pauses.delete(owner)) return false
    batch(startNext)
    return true
  }

  // Tasks that run after others (F15)

  function dependentOf({ after, owner = 'main', onFailedDependency }: LaunchFields, id: string): Dependent | undefined {
    if (!after) return undefined
    const tasks = after.map((target) => {
      const named = idOf(target)
      const task = model.find(ledger, named)
      if (!task || named === id || !isSeenBy(task, owner)) throw new Refusal('INVALID_INPUT')
      return task
    })
    const unique = [...new Set(tasks)]
    const ended = unique.filter((task) => !model.isActive(task))
    const ends = new Map(ended.map((task) => [task, task.record]))
    return { tasks: unique, mayFail: onFailedDependency === undefined, ends }
  }

  /** It owns it, or a task above it. */
  function isSeenBy({ record }: ModelTask, owner: string): boolean {
    if (record.owner === owner) return true
    const above = record.owner.startsWith('run:') ? model.find(ledger, record.owner.slice(4)) : undefined
    return above !== undefined && (above.record.depth ?? 0) < (record.depth ?? 0) && isSeenBy(above, owner)
  }

  const failedOf = ({ tasks, mayFail, ends }: Dependent): ModelTask | undefined =>
    mayFail ? tasks.find((task) => ends.has(task) && ends.get(task)!.status !== 'completed') : undefined

  const isHeldBack = (waits: Dependent): boolean =>
    waits.ends.size < waits.tasks.length || failedOf(waits) !== undefined

  function beginToWait(task: ModelTask, waits: Dependent): void {
    dependent.set(task, waits)
    task.needs = waits.tasks
    ledger.waiting.push(task)
    if (failedOf(waits)) batch(() => failUnmet(task, waits))
  }

  function failUnmet(task: ModelTask, waits: Dependent): void {
    const text = unmetText(waits.ends.get(failedOf(waits)!)!)
    effects.push(() => {
      if (model.isActive(task)) end(task, { status: 'failed', error: text, errorCode: 'DEPENDENCY_FAILED' })
    })
  }

  /** A task has ended: those that wait for it fail, go on waiting, or lack only a slot. */
  function notifyDependents(ended: ModelTask): void {
    for (const task of ledger.waiting) {
      const waits = dependent.get(task)!
      if (!model.isActive(task) || !waits.tasks.includes(ended)) continue
      waits.ends.set(ended, ended.record)
      if (failedOf(waits)) {
        failUnmet(task, waits)
        continue
      }
      const { waitsFor: _, ...fields } = task.record
      const ids = waits.tasks.filter((one) => !waits.ends.has(one)).map(({ record }) => record.id)
      task.record = ids.length === 0 ? fields : { ...fields, waitsFor: ids }
      if (ids.length > 0) continue
      task.isHeld = false
      waitForSlots(task)
    }
  }

  /** What it has waited for may be pruned. */
  function stopWaiting(task: ModelTask): void {
    if (!ledger.waiting.includes(task)) return
    ledger.waiting = ledger.waiting.filter((other) => other !== task)
    // Not a batch: what follows this change comes after what is being done.
    if (!isDisposed) model.prune(ledger)
  }

  function startRun(task: ModelTask): void {
    const { id, attempt = 1 } = task.record
    const run: Run = { n: runs.length, task, attempt, hasBegun: false, isAborted: false, outcome: undefined }
    const attachment = of(task)
    if (attachment.takesMessages) {
      attachment.inbox ??= { reader: undefined, waiting: [], takers: [] }
      setReader(attachment.inbox, run)
    }
    if (refusesNext) {
      refusesNext = false
      settleRun(task, { type: 'threw', index: 0 }, true)
      return
    }
    runs.push(run)
    log.push({ run: run.n, started: id })
    attachment.run = run
    if (!model.isActive(task)) abortRun(run, 'AbortError')
  }

  /** Whether a run that has failed is repeated: not one that did not stop, or was over its budget (F9). */
  function isRepeated(task: ModelTask, outcome: ModelOutcome, couldNotStart: boolean): boolean {
    const { retry, isOverdue, excess } = of(task)
    if (!retry || !model.isActive(task) || (task.record.attempt ?? 1) >= retry.attempts) return false
    if (excess !== undefined || outcome.type === 'abandoned') return false
    const isLimited = outcome.type === 'threw' && outcome.index === RATE_LIMITED
    const reason = isOverdue ? 'timeout' : couldNotStart ? 'start-failed' : isLimited ? 'rate-limited' : undefined
    return reason !== undefined && retry.on.includes(reason)
  }

  function repeat(task: ModelTask, outcome: ModelOutcome): void {
    const attachment = of(task)
    const { isOverdue, controller } = attachment
    const reported = outcome.type === 'returned' ? undefined : failureText(outcome)
    const error = isOverdue ? stopText(task, undefined, reported) : (reported ?? '')
    if (controller?.isAborted === true) {
      attachment.controller = undefined
      task.record = { ...task.record, abortController: 'own' }
    }
    attachment.run = undefined
    attachment.isOverdue = false
    dropDeadlines(task)
    model.requeue(ledger, task, error)
    task.isDelayed = attachment.retry!.backoff.initialMs > 0
    if (task.isDelayed) setDeadline(task, 'back-off')
    else waitForSlots(task)
    startNext()
  }

  /** A run has used a step. Over its budget, it is asked to conclude, and is stopped when its time to wrap up is over (F10). */
  function spend({ task }: Run): void {
    const attachment = of(task)
    const { budget } = task.record
    const steps = (task.record.spent?.steps ?? 0) + 1
    task.record = { ...task.record, spent: { steps } }
    for (const of of [undefined, model.payerOf(ledger, task)]) spent.set(of, (spent.get(of) ?? 0) + 1)
    if (!budget || steps <= budget.steps || attachment.excess !== undefined || attachment.isOverdue) return
    attachment.excess = budgetText(budget.steps, steps)
    model.withdrawQuestions(ledger, task)
    effects.push(() => setDeadline(task, 'wrap-up'))
  }

  const isCurrent = ({ task, attempt }: Run): boolean =>
    task.record.status === 'running' && (task.record.attempt ?? 1) === attempt

  // Questions and messages

  function ask(run: Run): void {
    const { task, attempt } = run
    const attachment = of(task)
    const mayAsk = isCurrent(run) && !attachment.isOverdue && attachment.excess === undefined
    const id = mayAsk ? `question-${(attachment.asked += 1)}` : undefined
    asked.push({ task, id, answer: undefined, isSettled: false })
    if (attempt !== (task.record.attempt ?? 1)) return
    batch(() => {
      if (id !== undefined) {
        model.ask(ledger, task, { id, message: QUESTION, schema: ANSWER_SCHEMA, askedAt: ledger.now })
      }
    })
  }

  const isOpen = ({ task, id }: Pick<Asked, 'task' | 'id'>): boolean =>
    task.record.questions?.some((question) => question.id === id) === true

  /** The first answer to a question counts (F6). */
  function answerQuestion(question: Asked | undefined): boolean {
    if (question?.id === undefined || !isOpen(question)) return false
    const { task, id } = question
    question.answer = { action: 'accept', content: { answer: 'yes' } }
    batch(() => model.closeQuestion(ledger, task, id))
    return true
  }

  function withdraw(question: Asked | undefined): void {
    if (question?.id === undefined || question.isSettled) return
    const { task, id } = question
    question.isSettled = true
    batch(() => {
      if (isOpen(question)) model.closeQuestion(ledger, task, id)
    })
  }

  function send(id: string): object {
    const task = model.find(ledger, id)
    sent += 1
    const reason = messageRefusal(task, id, task && of(task))
    if (!task || reason !== undefined) return { sent: false, reason }
    const { messagesSent = 0 } = task.record
    accept(of(task).inbox!, `message ${sent}`)
    task.record = { ...task.record, messagesSent: messagesSent + 1 }
    return { sent: true }
  }

  // Ends

  function end(task: ModelTask, how: Parameters<typeof model.settle>[2]): void {
    const { text, isOverdue } = of(task)
    const tail = text.trimEnd()
    const isKept = (how.status === 'cancelled' || isOverdue) && tail !== '' && how.error?.endsWith(tail) !== true
    model.settle(ledger, task, { ...how, ...(isKept && { outputTail: tail }) })
    dropDeadlines(task)
    notifyDependents(task)
    startNext()
  }

  /** Ends a task that was stopped, by its deadline or because of its budget. */
  function endStopped(task: ModelTask, { reported, more = '', lateOutput }: StoppedRun = {}): void {
    const { excess } = of(task)
    const error = `${stopText(task, excess, reported)}${more}`
    const errorCode = excess === undefined ? 'TASK_TIMEOUT' : 'BUDGET_EXCEEDED'
    end(task, { status: 'failed', error, errorCode, ...(lateOutput && { lateOutput }) })
  }

  function complete(task: ModelTask, index: number): void {
    const { kept } = outputs[index]!
    if (!of(task).isOverdue) end(task, { status: 'completed', output: kept })
    else if (Object.keys(kept).length === 0) endStopped(task)
    else endStopped(task, { more: ' It then returned a result, too late.', lateOutput: kept })
  }

  function fail(task: ModelTask, error: string): void {
    const { name, code } = reasons.find(({ text }) => text === error) ?? {}
    if (of(task).isOverdue) endStopped(task, { reported: error })
    else {
      const named = { ...(name !== undefined && { errorName: name }), ...(code !== undefined && { errorCode: code }) }
      end(task, { status: 'failed', error, ...named })
    }
  }

  function cancel(task: ModelTask, reason?: string): boolean {
    return batch(() => cancelFamily(task, reason)).length > 0
  }

  function cancelFamily(task: ModelTask, reason: string | undefined): ModelTask[] {
    if (!model.isActive(task)) return []
    const children = model.childrenOf(ledger, task)
    // What starts in its place does so after it was aborted.
    effects.push(() => runAbort(task, 'AbortError', reason))
    end(task, { status: 'cancelled', ...(reason !== undefined && { cancelReason: reason }) })
    const inherited = `its parent ${task.record.id} was cancelled`
    return [task, ...children.flatMap((child) => cancelFamily(child, inherited))]
  }

  function cancelAll(owner: string | undefined, reason: string | undefined): string[] {
    const cancelled = batch(() => activeOf(owner).flatMap((task) => cancelFamily(task, reason)))
    return cancelled.map(({ record }) => record.id)
  }

  /** What waits comes first: nothing of it starts while the rest is cancelled. */
  const activeOf = (owner?: string): ModelTask[] => [...model.queued(ledger, owner), ...model.running(ledger, owner)]

  // Abort controllers (A8)

  function controllerOf(name: string): ModelledSignal {
    const controller = controllers.get(name) ?? makeSignal(name)
    controllers.set(name, controller)
    return controller
  }

  function link(task: ModelTask, controller: ModelledSignal): void {
    controller.listeners.push({ of: task, call: () => cancel(task, controller.why) })
    if (controller.isAborted) cancel(task, controller.why)
  }

  function of(task: ModelTask): Attached {
    return attached.get(task)!
  }

  function unlink(task: ModelTask): void {
    const { controller } = of(task)
    if (controller) stopListening(controller, task)
  }

  function runAbort(task: ModelTask, reason: string, why: string | undefined): void {
    const timedOut = `its parent ${task.record.id} has reached its limit`
    const children = model.childrenOf(ledger, task)
    if (children.length > 0) batch(() => children.forEach((child) => cancelFamily(child, timedOut)))
    const { controller, run } = of(task)
    unlink(task)
    if (controller) abortSignal(controller, reason, why)
    if (run) abortRun(run, reason)
  }

  // Runs

  function abortRun(run: Run, reason: string): void {
    if (run.outcome || run.isAborted) return
    run.isAborted = true
    log.push({ run: run.n, aborted: reason })
  }

  function begin(run: Run): void {
    if (run.outcome || run.hasBegun) return
    if (run.isAborted) {
      settleLater(run, { type: 'skipped' })
      return
    }
    run.hasBegun = true
    const { id, owner } = run.task.record
    log.push({ run: run.n, began: id, owner })
  }

  function finish(run: Run, outcome: ModelOutcome): void {
    begin(run)
    if (!run.outcome) {
      settleLater(run, outcome)
      return
    }
    if (run.outcome.type !== 'abandoned') return
    run.outcome = outcome
    reportLate(run.task, outcome)
  }

  function settleLater(run: Run, outcome: ModelOutcome): void {
    run.outcome = outcome
    jobs.push(() => settleRun(run.task, outcome))
  }

  function settleRun(task: ModelTask, outcome: ModelOutcome, couldNotStart = false): void {
    batch(() => {
      if (isRepeated(task, outcome, couldNotStart)) {
        repeat(task, outcome)
        return
      }
      if (!model.isActive(task)) reportLate(task, outcome)
      else if (outcome.type === 'returned') complete(task, outcome.index)
      else fail(task, failureText(outcome))
      freeSlot(task)
    })
  }

  function reportLate(task: ModelTask, outcome: ModelOutcome): void {
    const isNews =
      outcome.type === 'threw' || (outcome.type === 'returned' && outputs[outcome.index]!.given !== undefined)
    if (isNews && !isDisposed) report('late-result', task.record.id)
  }

  // Waits

  function wait(ids: readonly string[], mode: 'all' | 'any', timeoutMs: number | undefined): void {
    const id = freshId('wait', (taken) => ledger.leases.has(taken))
    const unique = [...new Set(ids)]
    const found = unique.flatMap((one) => model.find(ledger, one) ?? [])
    const unknown = unique.filter((one) => !model.find(ledger, one))
    const hasEnded = (task: ModelTask): boolean => !model.isActive(task)
    const isOver = (): boolean => found.length === 0 || (mode === 'all' ? found.every(hasEnded) : found.some(hasEnded))
    const begun: Wait = { n: waits.length, id, found, unknown, isOver, isActive: true, isAborted: false }
    waits.push(begun)
    waitResults.push('pending')
    batch(() => !isDisposed && model.takeClaim(ledger, id, found))
    // A subscriber may have aborted it when it was notified of the lease.
    if (isOver() || isDisposed || begun.isAborted) {
      conclude(begun)
      return
    }
    if (timeoutMs !== undefined) setTimer(begun, timeoutMs, () => endWait(begun))
    subscribed.push(begun)
  }

  function endWait(wait: Wait): void {
    wait.isActive = false
    subscribed = subscribed.filter((other) => other !== wait)
    timers = timers.filter(({ of }) => of !== wait)
    jobs.push(() => conclude(wait))
  }

  function conclude(wait: Wait): void {
    const { n, id, found, unknown } = wait
    const lease = ledger.leases.get(id)
    if (wait.isAborted) {
      change(() => lease && model.release(ledger, lease))
      waitResults[n] = 'aborted'
      return
    }
    batch(() => {
      const settled = found.filter((task) => !model.isActive(task))
      const pending = found.filter(model.isActive).map(({ record }) => record)
      change(() => {
        if (lease) model.acknowledge(ledger, lease)
        // The wait has delivered them, even those that another message leases.
        model.acceptLate(ledger, settled, id)
      })
      waitResults[n] = { settled: settled.map(({ record }) => record), pending, unknown }
    })
  }

  function abortWait(wait: Wait | undefined): void {
    if (!wait || wait.isAborted) return
    wait.isAborted = true
    if (subscribed.includes(wait)) endWait(wait)
  }

  // Deliveries

  /** Changes the ledger, unless it is disposed. */
  function change(run: () => void): void {
    batch(() => {
      if (isDisposed) return
      run()
      model.prune(ledger)
      startNext()
    })
  }

  function lease(
    owner: string | undefined,
    isExclusive: boolean,
    questions: readonly ModelQuestion[] = [],
  ): Lease | undefined {
    const id = freshId('delivery', (taken) => ledger.leases.has(taken))
    const taken = batch(() => {
      const made = isDisposed ? undefined : model.takeLease(ledger, id, owner, isExclusive, questions)
      return made && { lease: made, tasks: [...made.tasks], records: made.tasks.map(({ record }) => record), questions }
    })
    if (taken) leases.push(taken)
    return taken
  }

  function remind(
    tasks: readonly ModelTask[],
    owner: string | undefined,
    isLeased = false,
    questions: readonly ModelQuestion[] = [],
  ): string {
    const isPaused = owner !== undefined && isPausedOwner(owner)
    const counts = {
      running: model.running(ledger, owner).length,
      queued: model.queued(ledger, owner).length,
      isPaused,
    }
    return tasks.some(isLong) ? 'cut' : reminderText(tasks, counts, isLeased, questions)
  }

  function leaseReminder(owner: string, isExclusive: boolean): unknown {
    const questions = model.owedQuestions(ledger, owner)
    const tasks = lease(owner, isExclusive, questions)?.tasks
    if (!tasks) return undefined
    const text = remind(tasks, owner, true, questions)
    const cut = tasks.filter(isLong)
    if (cut.length > 0) {
      change(() => {
        for (const task of cut) if (ledger.tasks.includes(task)) task.isUnread = true
      })
    }
    return { taskIds: tasks.map(({ record }) => record.id), text, questions: questions.map(nameOf) }
  }

  // Subscriptions and disposal

  function subscribe(stream: StreamName, script: Script): void {
    const made = addSubscription(stream, script, true)
    if (stream === 'owed' || stream === 'running') {
      if (!isDisposed) subscribed.push(made)
      emitCounts(made)
    } else if (stream === 'transitions' || stream === 'settled') subscribed.push(made)
    if (isDisposed) finishSubscription(made)
  }

  function addSubscription(to: Subscription['to'], script: Script, mayThrow: boolean): Subscription {
    const n = subscriptions.length
    const made = { n, to, script, mayThrow, uses: SCRIPT_USES, isActive: true, since: ledger.seq, counts: '' }
    subscriptions.push(made)
    return made
  }

  function finishSubscription(subscription: Subscription): void {
    if (!subscription.isActive) return
    subscription.isActive = false
    log.push({ called: subscription.n, isOver: true })
  }

  function unsubscribe(subscription: Subscription | undefined): void {
    if (!subscription) return
    subscription.isActive = false
    subscribed = subscribed.filter((other) => other !== subscription)
  }

  function dispose(): void {
    if (disposal) return
    disposal = { runs: runs.filter(({ outcome }) => !outcome) }
    batch(() => {
      batch(() => {
        const waiting = model.queued(ledger).filter(({ record }) => record.waitsFor)
        for (const task of waiting) cancelFamily(task, undefined)
      })
      for (const task of activeOf()) cancel(task)
    })
    isDisposed = true
    const streams = new Set<string>(['progress', 'actor'])
    for (const made of subscriptions) {
      if (['completed', 'failed', 'cancelled'].includes(made.to)) made.isActive = false
    }
    subscriptions.filter(({ to }) => to === 'progress').forEach(finishSubscription)
    for (const one of [...subscribed]) {
      if ('found' in one) endWait(one)
      else finishSubscription(one)
    }
    subscriptions.filter(({ to }) => streams.has(to)).forEach(finishSubscription)
    subscribed = []
  }

  function freshId(prefix: string, isTaken: (id: string) => boolean): string {
    const count = (idCounters.get(prefix) ?? 0) + 1
    idCounters.set(prefix, count)
    const id = `${prefix}-${count}`
    return isTaken(id) ? freshId(prefix, isTaken) : id
  }

  function setDeadline(task: ModelTask, of: Deadline['of'], ms = timeOf(task, of)): void {
    if (of === 'wait' && isPausedOwner(task.record.owner)) return
    if (ms !== undefined) deadlines.push({ at: ledger.now + ms, task, of })
  }

  function timeOf(task: ModelTask, what: Deadline['of']): number | undefined {
    switch (what) {
      case 'limit':
        return task.record.timeoutMs
      case 'wrap-up':
        return task.record.budget?.wrapUpMs
      case 'grace':
        return of(task).graceMs
      case 'back-off':
        return of(task).retry?.backoff.initialMs
      case 'wait':
        return task.pool === 'none' ? undefined : settings.queue?.maxWaitMs
    }
  }

  function dropDeadlines(task: ModelTask): void {
    deadlines = deadlines.filter((deadline) => deadline.task !== task)
  }

  /** A timer that is too early stays: it looks for the next deadline when it fires. */
  function setDeadlineTimer(): void {
    // A reservation that expires is of interest only to what waits.
    const isAwaited = model.queueOf(ledger, 'task').length > 0
    const expiries = isAwaited ? [...ledger.reservations.values()].filter((expiry) => ledger.now < expiry) : []
    const isRetry = (deadline: Deadline): boolean => deadline.of === 'back-off'
    const times = deadlines.filter((deadline) => !isRetry(deadline)).map(({ at }) => at)
    setTimerOf('deadlines', [...times, ...expiries])
    setTimerOf(
      'retries',
      deadlines.filter(isRetry).map(({ at }) => at),
    )
  }

  function setTimerOf(what: 'deadlines' | 'retries', times: readonly number[]): void {
    const at = isDisposed || times.length === 0 ? undefined : Math.min(...times)
    const present = timers.find(({ of }) => of === what)
    if (present !== undefined && at !== undefined && present.due <= at) return
    timers = timers.filter((timer) => timer !== present)
    if (at !== undefined) timers.push({ due: at, of: what, run: () => batch(() => takeDue(what)) })
  }

  /** The timer of back-offs ends them alone; that of deadlines ends all that is due before it starts what waits. */
  function takeDue(what: 'deadlines' | 'retries'): void {
    const isLast = (deadline: Deadline): number => Number(deadline.of === 'wrap-up')
    const due = deadlines
      .filter(({ at, of }) => at <= ledger.now && (what === 'deadlines' || of === 'back-off'))
      .sort((a, b) => isLast(a) - isLast(b) || a.at - b.at)
    deadlines = deadlines.filter((deadline) => !due.includes(deadline))
    for (const { task, of } of due) {
      if (of !== 'back-off') continue
      task.isDelayed = false
      waitForSlots(task)
    }
    startNext()
    const stopped = due.filter(({ task, of }) => (of === 'limit' || of === 'wrap-up') && setOverdue(task))
    for (const { task } of stopped) {
      model.withdrawQuestions(ledger, task)
      const { excess } = of(task)
      const reason = excess === undefined ? 'TimeoutError' : 'BudgetExceededError'
      const why = stopText(task, excess)
      effects.push(() => runAbort(task, reason, why))
    }
    for (const deadline of due) {
      if (deadline.of === 'grace') endStopped(deadline.task)
      if (deadline.of === 'wait' && deadline.task.record.status === 'queued') failWaited(deadline.task)
    }
  }

  /** The run is asked to stop. False when it was before. */
  function setOverdue(task: ModelTask): boolean {
    if (of(task).isOverdue) return false
    of(task).isOverdue = true
    dropDeadlines(task)
    setDeadline(task, 'grace')
    return true
  }

  function failWaited(task: ModelTask): void {
    end(task, { status: 'failed', error: waitedText(settings.queue?.maxWaitMs ?? 0), errorCode: 'QUEUE_TIMEOUT' })
  }

  function setTimer(of: Wait, ms: number, run: () => void): void {
    timers.push({ due: ledger.now + ms, of, run })
  }

  function advance(ms: number): void {
    const target = ledger.now + ms
    for (;;) {
      const due = Math.min(...timers.map((timer) => timer.due))
      const next = timers.find((timer) => timer.due === due)
      if (!next || due > target) break
      timers = timers.filter((timer) => timer !== next)
      ledger.now = due
      next.run()
    }
    ledger.now = target
  }

  /** Timestamps follow the time of day; what is due, or expires, is as far away as before. */
  function jump(ms: number): void {
    ledger.now += ms
    for (const [id, expiry] of ledger.reservations) ledger.reservations.set(id, expiry + ms)
    for (const { since } of [...ledger.tasks, ...ledger.keyed]) {
      Object.assign(since, { launch: since.launch + ms, slots: since.slots + ms })
    }
    timers = timers.map((timer) => ({ ...timer, due: timer.due + ms }))
    deadlines = deadlines.map((deadline) => ({ ...deadline, at: deadline.at + ms }))
  }

  function idOf(target: Target): string {
    if ('id' in target) return target.id
    return nthLast(target.of === 'running' ? model.running(ledger) : ledger.tasks, target.nth)?.record.id ?? 'none'
  }

  function withTask(target: Target, then: (task: ModelTask) => void): model.Status | undefined {
    const task = model.find(ledger, idOf(target))
    if (!task || !model.isActive(task)) return undefined
    batch(() => then(task))
    return task.record.status
  }

  const performers: Performers = {
    register: (action) =>
      batch(
        () => admit(action.fields, action.fields.id, { ...action, isLaunched: false, isForeground: false }).registered,
      ),
    launch: (action) => launch(action),
    // A task that waits has nothing to complete.
    complete: (action) =>
      withTask(action.task, (task) => task.record.status === 'running' && complete(task, action.value)) === 'completed',
    fail: (action) => withTask(action.task, (task) => fail(task, reasons[action.reason]!.text)) === 'failed',
    cancel: (action) => {
      const task = model.find(ledger, idOf(action.task))
      return task !== undefined && cancel(task, action.reason)
    },
    cancelAll: (action) => cancelAll(action.owner, action.reason),
    abort: (action) => abortSignal(controllerOf(action.controller), 'AbortError'),
    reserve: (action) => reserve(action.ttlMs ?? 5000),
    cancelReservation: (action) => {
      const id = nthLast(reservations, action.reservation) ?? 'none'
      // Also a call that changes nothing: what waits, such as an abort, follows it.
      return batch(() => {
        const isCancelled = model.liveReservations(ledger).includes(id) && !isDisposed && ledger.reservations.delete(id)
        if (isCancelled) startNext()
        return isCancelled
      })
    },
    setMax: (action) => change(() => (ledger.max = action.max)),
    notify: (action) => change(() => model.markNotified(ledger, idOf(action.task))),
    markAllNotified: () =>
      model.owed(ledger).forEach(({ record }) => change(() => model.markNotified(ledger, record.id))),
    remind: (action) => remind(model.owed(ledger, action.owner), action.owner),
    lease: (action) => lease(action.owner, action.isExclusive ?? false)?.records,
    leaseReminder: (action) => leaseReminder(action.owner ?? 'main', action.isExclusive ?? false),
    acknowledge: (action) => {
      const taken = nthLast(leases, action.lease)
      if (!taken) return undefined
      const isOut = ledger.leases.get(taken.lease.id) === taken.lease
      change(() =>
        isOut
          ? model.acknowledge(ledger, taken.lease)
          : model.acceptLate(ledger, taken.tasks, taken.lease.id, taken.questions),
      )
    },
    release: (action) => {
      const taken = nthLast(leases, action.lease)?.lease
      if (taken) change(() => ledger.leases.has(taken.id) && model.release(ledger, taken))
    },
    read: (action) =>
      change(() => {
        const task = model.find(ledger, idOf(action.task))
        if (task) task.isUnread = false
      }),
    releaseOwner: (action) => {
      const { owner, to } = action
      const kinds = [activeOf(owner), model.owed(ledger, owner), model.leased(ledger, owner)]
      change(() => {
        model.releaseOwner(ledger, owner, to)
        if (to !== owner) pauses.delete(owner)
      })
      return kinds.flat().length
    },
    transfer: ({ owner, to, tasks }) => {
      // Read before the change, as the caller does.
      const ids = new Set(tasks.map(idOf))
      change(() => model.transfer(ledger, owner, to, ids))
    },
    progress: (action) => progress(idOf(action.task), action.value),
    append: (action) => {
      const task = model.find(ledger, idOf(action.task))
      if (task?.record.status !== 'running') return false
      of(task).text += action.text
      return true
    },
    readOutput: (action) => {
      const task = model.find(ledger, idOf(action.task))
      const text = task && of(task).text
      const rest = text?.slice(action.cursor)
      return text !== undefined && { text: rest, nextCursor: text.length, skippedBytes: 0, remainingBytes: 0 }
    },
    prefix: (action) => byPrefix(action.prefix),
    on: (action) => {
      const made = addSubscription(action.status, action.script, true)
      made.isActive = !isDisposed
      return undefined
    },
    subscribe: (action) => subscribe(action.stream, action.script),
    listen: (action) => listen(controllerOf(action.controller), action.script),
    unsubscribe: (action) => unsubscribe(nthLast(subscriptions.slice(baseSubscriptions.length), action.subscription)),
    begin: (action) => withRun(action.run, begin),
    say: (action) =>
      withRun(action.run, (run) => {
        if (run.hasBegun && isCurrent(run)) of(run.task).text += action.text
      }),
    spend: (action) =>
      withRun(action.run, (run) => {
        if (run.hasBegun && isCurrent(run)) batch(() => spend(run))
      }),
    ask: (action) => withRun(action.run, (run) => run.hasBegun && ask(run)),
    withdraw: (action) => withdraw(nthLast(asked, action.asked)),
    answer: (action) => {
      const task = model.find(ledger, idOf(action.task))
      return answerQuestion(asked.find((one) => one.task === task && one.id === `question-${action.question}`))
    },
    send: (action) => send(idOf(action.task)),
    detach: (action) => batch(() => detach(idOf(action.task))),
    pause: (action) => pause(action.owner),
    resume: (action) => resume(action.owner),
    take: (action) => withRun(action.run, (run) => run.hasBegun && takes.push(take(of(run.task).inbox, run))),
    return: (action) => withRun(action.run, (run) => finish(run, { type: 'returned', index: action.value })),
    reject: (action) => withRun(action.run, (run) => finish(run, { type: 'threw', index: action.reason })),
    abandon: (action) =>
      withRun(action.run, (run) => {
        if (run.isAborted && run.hasBegun && !run.outcome) settleLater(run, { type: 'abandoned' })
      }),
    wait: (action) => wait(action.tasks.map(idOf), action.mode, action.timeoutMs),
    abortWait: (action) => abortWait(nthLast(waits, action.wait)),
    bad: (action) => {
      if (disposal && action.input.startsWith('reserve')) return null
      const expected = badInputs[action.input]
      if (expected !== false) throw new Refusal(expected)
      return false
    },
    dispose: () => dispose(),
    look: () => observeNow(),
    throw: () => undefined,
    advance: (action) => advance(action.ms),
    jump: (action) => jump(action.ms),
  }

  function reserve(ttlMs: number): string | null {
    if (disposal) {
      reservations.push(null)
      return null
    }
    const id = freshId('reservation', (taken) => model.liveReservations(ledger).includes(taken))
    const hadRoom = model.hasRoom(ledger)
    if (hadRoom) ledger.reservations.set(id, ledger.now + ttlMs)
    const reserved = hadRoom && ttlMs > 0 ? id : null
    batch(() => undefined)
    reservations.push(reserved)
    return reserved
  }

  function listen(controller: ModelledSignal, script: Script): void {
    const made = addSubscription('abort', script, false)
    if (controller.isAborted) return
    controller.listeners.push({
      call: (reason) => {
        if (made.isActive) call(made, 'abort-listener', undefined, () => ({ aborted: controller.name, reason }))
      },
    })
  }

  function withRun(n: number, then: (run: Run) => void): void {
    const run = nthLast(runs, n)
    if (run) then(run)
  }

  function progress(id: string, value: number): boolean {
    const task = model.find(ledger, id)
    if (task?.record.status !== 'running') return false
    if (value === 3) {
      report('progress', id)
      return false
    }
    task.record = { ...task.record, progress: { progress: value } }
    const { owner } = task.record
    for (const to of subscriptions.filter((one) => one.to === 'progress' && one.isActive)) {
      if (to.isActive) call(to, 'stream', undefined, () => ({ progress: { progress: value }, taskId: id, owner }))
    }
    return true
  }

  function byPrefix(prefix: string): unknown {
    const exact = model.find(ledger, prefix)
    if (exact) return { task: exact.record.id }
    const matches = ledger.tasks.map(({ record }) => record.id).filter((id) => prefix !== '' && id.startsWith(prefix))
    return matches.length === 0 ? {} : matches.length === 1 ? { task: matches[0] } : { candidates: matches }
  }

  function answerTo(action: TopAction): Answer {
    try {
      return { returned: perform(performers, action) }
    } catch (error) {
      if (error instanceof Refusal) return { threw: error.message }
      throw error
    }
  }

  function observe(): object {
    const disposed = disposal && (disposal.runs.every(({ outcome }) => outcome) ? 'done' : 'begun')
    const answers = asked.map((one) => one.answer ?? (isOpen(one) ? 'open' : 'withdrawn'))
    const begun = runs.filter(({ hasBegun }) => hasBegun)
    const concluding = begun.map(({ task }) => of(task).excess !== undefined)
    return {
      ...observeNow(),
      waits: [...waitResults],
      disposed,
      answers,
      taken: takes.map(({ got }) => got),
      concluding,
    }
  }

  /** What can be seen from inside a callback. */
  function observeNow(): object {
    const ids = (tasks: ModelTask[]): string[] => tasks.map(({ record }) => record.id)
    const owners = [undefined, ...OWNERS]
    const pending = model.owed(ledger)
    const running = model.running(ledger)
    return {
      tasks: ledger.tasks.map(({ record }) => record),
      running: owners.map((owner) => ids(model.running(ledger, owner))),
      queued: owners.map((owner) => ids(model.queued(ledger, owner))),
      places: model.queued(ledger).map(placeOf),
      pending: owners.map((owner) => ids(model.owed(ledger, owner))),
      asking: owners.map((owner) => model.owedQuestions(ledger, owner).map(nameOf)),
      spent: owners.map((owner) => spent.get(owner) ?? 0),
      canLaunch: canLaunch(),
      counts: {
        max: ledger.max,
        running: running.length,
        slots: ledger.slots.length,
        reservations: model.liveReservations(ledger).length,
        owed: pending.length,
        leased: model.leased(ledger).length,
        retained: ledger.tasks.length,
        seq: ledger.seq,
      },
      owed: countsOf(pending),
      runningOf: countsOf(running),
      timers: timers.length,
    }
  }

  /** What needs no slot has no place among those that wait for one. */
  function placeOf(task: ModelTask): number | undefined {
    return task.pool === 'none' ? undefined : placeIn(model.queueOf(ledger, task.pool), task)
  }

  function canLaunch(): object {
    if (disposal) return { allowed: false, reason: 'The task manager was disposed' }
    return model.hasRoom(ledger) ? { allowed: true } : { allowed: false, reason: limitText(ledger.max) }
  }

  for (const action of baseSubscriptions) perform(performers, action)
  return {
    act(action) {
      fuel = SCRIPT_FUEL
      return answerTo(action)
    },
    async drain() {
      for (let job = jobs.shift(); job; job = jobs.shift()) job()
      for (const question of asked) question.isSettled ||= !isOpen(question)
    },
    observe,
    takeLog() {
      const taken = log
      log = []
      return taken
    },
  }
}

function isEnd(item: OutboxItem): item is Extract<OutboxItem, { transition: unknown }> {
  if (!('transition' in item) || item.transition.kind !== 'status') return false
  return item.transition.to !== 'running' && item.transition.to !== 'queued'
}

/** Whether a reminder cuts what it says of a task. */
const isLong = ({ record }: ModelTask): boolean => notificationText(record).length > REMINDER_CHARS

const nameOf = ({ task, id }: ModelQuestion): object => ({ taskId: task.record.id, questionId: id })

/** How many tasks each owner has, in a fixed order. */
function countsOf(tasks: readonly ModelTask[]): Record<string, number> {
  const owners = [...new Set(tasks.map(({ record }) => record.owner))].sort()
  return Object.fromEntries(owners.map((owner) => [owner, tasks.filter(({ record }) => record.owner === owner).length]))
}

/** What waits for other tasks has no place. */
function placeIn(queue: readonly ModelTask[], task: ModelTask): number | undefined {
  return task.isHeld ? undefined : queue.filter(({ isHeld }) => !isHeld).indexOf(task) + 1
}
