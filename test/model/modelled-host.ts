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
  LONG_OUTPUT,
  outputs,
  OWNERS,
  reasons,
  type Action,
  type RegistrySettings,
  type Script,
  type StreamName,
  type Target,
  type TaskFields,
  type TopAction,
} from './actions.js'
import { baseSubscriptions, perform, SCRIPT_FUEL, SCRIPT_USES, type Host, type Performers } from './host.js'
import { nthLast, type Answer } from './drawing.js'
import { failureText, limitText, reminderText, timeoutText, type ModelOutcome } from './expected-texts.js'
import { abortSignal, makeSignal, stopListening, type ModelledSignal } from './modelled-signal.js'
import * as model from '../../src/testing/task-model.js'
import type { ModelLease, ModelRecord, ModelTask, OutboxItem } from '../../src/testing/task-model.js'

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
}

/** A deadline, or the end of the grace period after it. One timer serves all of them. */
interface Deadline {
  readonly at: number
  readonly task: ModelTask
  readonly run: () => void
}

interface Timer {
  readonly due: number
  readonly of: 'deadlines' | Wait
  readonly run: () => void
}

/** What only the host knows of a task. */
interface Attached {
  readonly controller: ModelledSignal | undefined
  run: Run | undefined
  /** How long it may run on after an abort, in ms. */
  readonly graceMs: number
  isOverdue: boolean
  /** Its output is longer than a reminder may be. */
  isLong: boolean
  /** What it appended. */
  text: string
}

/** An error of the model: only its message is compared. */
class Refusal extends Error {}

export function createModelledHost(settings: RegistrySettings, start: number): Host {
  const ledger = model.emptyLedger(settings.maxAsyncTasks, settings.notifyCancelled, start)
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
  const aborts: { readonly task: ModelTask; readonly reason: string; readonly why: string | undefined }[] = []
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
      for (let next = aborts.shift(); next; next = aborts.shift()) runAbort(next)
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
      }
    } while (ledger.outbox.length > 0)
    isEmitting = false
  }

  function emit(item: OutboxItem): void {
    for (const subscriber of [...subscribed]) {
      if (!('found' in subscriber) && subscriber.isActive && !isDisposed) emitToStream(subscriber, item)
    }
    if (!isEnd(item)) return
    for (const wait of [...subscribed]) {
      if ('found' in wait && wait.isActive && wait.found.includes(item.task) && wait.isOver()) endWait(wait)
    }
    const { transition, task } = item
    for (const handler of subscriptions.filter(({ to }) => to === transition.to)) {
      if (!handler.isActive || handler.since >= transition.seq) continue
      call(handler, 'handler', transition.taskId, () => ({
        record: transition.record,
        found: model.find(ledger, transition.taskId)?.record,
      }))
    }
    unlink(task)
    task.isHandled = true
    if (!isDisposed) model.prune(ledger)
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
    fields: TaskFields,
    id: string,
    how: { isLaunched: boolean; isForeground: boolean; reservation?: number },
  ) {
    if (disposal) throw new Refusal('DisposedError')
    if (model.find(ledger, id)) throw new Refusal('TaskIdInUseError')
    const reservationId = reservationOf(how.reservation)
    if (reservationId !== undefined && !model.liveReservations(ledger).includes(reservationId)) {
      throw new Refusal('ReservationError')
    }
    const parent = parentOf(fields.parent)
    const isLimited = how.isLaunched && !how.isForeground && reservationId === undefined && !parent
    if (isLimited && !model.hasRoom(ledger)) {
      throw new Refusal(`TaskLimitError: ${limitText(ledger.max)}`)
    }
    if (parent && !mayLaunch(parent)) throw new Refusal('FamilyError')
    const { timeoutMs } = fields
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
        ...(parent && { parentId: parent.record.id, depth: (parent.record.depth ?? 0) + 1 }),
        ...(name !== undefined && { abortController: name }),
      },
      how,
    )
    model.admit(ledger, task, how.isForeground, reservationId)
    const registered = task.record
    const graceMs = fields.graceMs ?? settings.graceMs
    attached.set(task, { controller, run: undefined, graceMs, isOverdue: false, isLong: false, text: '' })
    if (timeoutMs !== undefined) setDeadline(task, timeoutMs, () => expire(task))
    if (controller) link(task, controller)
    return { task, registered }
  }

  const parentOf = (target: Target | undefined): ModelTask | undefined => target && model.find(ledger, idOf(target))

  /** Three generations below the first, and at most twenty tasks of one run. */
  function mayLaunch(parent: ModelTask): boolean {
    const { id, status, depth = 0 } = parent.record
    if (status !== 'running' || of(parent).isOverdue || depth >= 3) return false
    const owner = model.ownerOfRun(id)
    return (
      model.childrenOf(ledger, parent).length + model.owed(ledger, owner).length + model.leased(ledger, owner).length <
      20
    )
  }

  function reservationOf(nth: number | undefined): string | undefined {
    return nth === undefined || reservations.length === 0 ? undefined : (nthLast(reservations, nth) ?? 'none')
  }

  function launch(action: Action & { do: 'launch' }): ModelRecord {
    const { fields, isForeground = false, isRefused = false } = action
    if (fields.parent && !parentOf(fields.parent)) throw new Refusal('InvalidInputError')
    return batch(() => {
      const id = fields.id ?? freshId('agent', (taken) => model.find(ledger, taken) !== undefined)
      const { task, registered } = admit(fields, id, { ...action, isLaunched: true, isForeground })
      if (isRefused) settleRun(task, { type: 'threw', index: 0 })
      else {
        const run: Run = { n: runs.length, task, hasBegun: false, isAborted: false, outcome: undefined }
        runs.push(run)
        log.push({ run: run.n, started: id })
        of(task).run = run
        if (task.record.status !== 'running') abortRun(run, 'AbortError')
      }
      return registered
    })
  }

  function end(task: ModelTask, how: Parameters<typeof model.settle>[2]): void {
    const { text, isOverdue } = of(task)
    const tail = text.trimEnd()
    const isKept = (how.status === 'cancelled' || isOverdue) && tail !== '' && how.error?.endsWith(tail) !== true
    model.settle(ledger, task, { ...how, ...(isKept && { outputTail: tail }) })
    deadlines = deadlines.filter((deadline) => deadline.task !== task)
  }

  function complete(task: ModelTask, index: number): void {
    const { kept } = outputs[index]!
    if (!of(task).isOverdue) end(task, { status: 'completed', output: kept })
    else if (Object.keys(kept).length === 0) {
      end(task, { status: 'failed', error: timeoutText(task), errorCode: 'TASK_TIMEOUT' })
    } else {
      const error = `${timeoutText(task)} It then returned a result, too late.`
      end(task, { status: 'failed', error, errorCode: 'TASK_TIMEOUT', lateOutput: kept })
    }
    of(task).isLong = index === LONG_OUTPUT
  }

  function fail(task: ModelTask, error: string): void {
    const name = reasons.find(({ text }) => text === error)?.name
    const failure = of(task).isOverdue
      ? { error: timeoutText(task, error), errorCode: 'TASK_TIMEOUT' }
      : { error, ...(name !== undefined && { errorName: name }) }
    end(task, { status: 'failed', ...failure })
  }

  function cancel(task: ModelTask, reason?: string): boolean {
    return batch(() => cancelFamily(task, reason)).length > 0
  }

  function cancelFamily(task: ModelTask, reason: string | undefined): ModelTask[] {
    if (task.record.status !== 'running') return []
    const children = model.childrenOf(ledger, task)
    end(task, { status: 'cancelled', ...(reason !== undefined && { cancelReason: reason }) })
    aborts.push({ task, reason: 'AbortError', why: reason })
    const inherited = `its parent ${task.record.id} was cancelled`
    return [task, ...children.flatMap((child) => cancelFamily(child, inherited))]
  }

  function cancelAll(owner: string | undefined, reason: string | undefined): string[] {
    const cancelled = batch(() => model.running(ledger, owner).flatMap((task) => cancelFamily(task, reason)))
    return cancelled.map(({ record }) => record.id)
  }

  function expire(task: ModelTask): void {
    of(task).isOverdue = true
    setDeadline(task, of(task).graceMs, () =>
      end(task, { status: 'failed', error: timeoutText(task), errorCode: 'TASK_TIMEOUT' }),
    )
    aborts.push({ task, reason: 'TimeoutError', why: timeoutText(task) })
  }

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

  function runAbort({ task, reason, why }: (typeof aborts)[number]): void {
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

  function settleRun(task: ModelTask, outcome: ModelOutcome): void {
    batch(() => {
      if (task.record.status !== 'running') reportLate(task, outcome)
      else if (outcome.type === 'returned') complete(task, outcome.index)
      else fail(task, failureText(outcome))
      if (!isDisposed) model.releaseSlot(ledger, task)
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
    const hasEnded = ({ record }: ModelTask): boolean => record.status !== 'running'
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
      const settled = found.filter(({ record }) => record.status !== 'running')
      const pending = found.filter(({ record }) => record.status === 'running').map(({ record }) => record)
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
    })
  }

  function lease(owner: string | undefined, isExclusive: boolean): Lease | undefined {
    const id = freshId('delivery', (taken) => ledger.leases.has(taken))
    const taken = batch(() => {
      const made = isDisposed ? undefined : model.takeLease(ledger, id, owner, isExclusive)
      return made && { lease: made, tasks: [...made.tasks], records: made.tasks.map(({ record }) => record) }
    })
    if (taken) leases.push(taken)
    return taken
  }

  function remind(tasks: readonly ModelTask[], owner: string | undefined, isLeased = false): string {
    const isCut = tasks.some((task) => of(task).isLong)
    return isCut ? 'cut' : reminderText(tasks, model.running(ledger, owner).length, isLeased)
  }

  function leaseReminder(owner: string, isExclusive: boolean): unknown {
    const tasks = lease(owner, isExclusive)?.tasks
    if (!tasks) return undefined
    const text = remind(tasks, owner, true)
    const cut = tasks.filter((task) => of(task).isLong)
    if (cut.length > 0) {
      change(() => {
        for (const task of cut) if (ledger.tasks.includes(task)) task.isUnread = true
      })
    }
    return { taskIds: tasks.map(({ record }) => record.id), text }
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
      for (const task of model.running(ledger)) cancel(task)
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

  function setDeadline(task: ModelTask, ms: number, run: () => void): void {
    deadlines.push({ at: ledger.now + ms, task, run })
  }

  /** A timer that is too early stays: it looks for the next deadline when it fires. */
  function setDeadlineTimer(): void {
    const at = isDisposed || deadlines.length === 0 ? undefined : Math.min(...deadlines.map((deadline) => deadline.at))
    const present = timers.find(({ of }) => of === 'deadlines')
    if (present !== undefined && at !== undefined && present.due <= at) return
    timers = timers.filter((timer) => timer !== present)
    if (at !== undefined) timers.push({ due: at, of: 'deadlines', run: () => batch(takeDue) })
  }

  function takeDue(): void {
    const due = deadlines.filter(({ at }) => at <= ledger.now).sort((a, b) => a.at - b.at)
    deadlines = deadlines.filter((deadline) => !due.includes(deadline))
    for (const { run } of due) run()
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
    timers = timers.map((timer) => ({ ...timer, due: timer.due + ms }))
    deadlines = deadlines.map((deadline) => ({ ...deadline, at: deadline.at + ms }))
  }

  function idOf(target: Target): string {
    if ('id' in target) return target.id
    return nthLast(target.of === 'running' ? model.running(ledger) : ledger.tasks, target.nth)?.record.id ?? 'none'
  }

  function withTask(target: Target, then: (task: ModelTask) => void): model.Status | undefined {
    const task = model.find(ledger, idOf(target))
    if (task?.record.status !== 'running') return undefined
    batch(() => then(task))
    return task.record.status
  }

  const performers: Performers = {
    register: (action) =>
      batch(
        () => admit(action.fields, action.fields.id, { ...action, isLaunched: false, isForeground: false }).registered,
      ),
    launch: (action) => launch(action),
    complete: (action) => withTask(action.task, (task) => complete(task, action.value)) === 'completed',
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
      return model.liveReservations(ledger).includes(id) && !isDisposed && ledger.reservations.delete(id)
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
        isOut ? model.acknowledge(ledger, taken.lease) : model.acceptLate(ledger, taken.tasks, taken.lease.id),
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
      const kinds = [model.running(ledger, owner), model.owed(ledger, owner), model.leased(ledger, owner)]
      change(() => model.releaseOwner(ledger, owner, to))
      return kinds.flat().length
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
      withRun(action.run, ({ hasBegun, task }) => {
        if (hasBegun && task.record.status === 'running') of(task).text += action.text
      }),
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
    return { ...observeNow(), waits: [...waitResults], disposed }
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
      pending: owners.map((owner) => ids(model.owed(ledger, owner))),
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
    },
    observe,
    takeLog() {
      const taken = log
      log = []
      return taken
    },
  }
}

function isEnd(item: OutboxItem): item is Exclude<OutboxItem, { leaseEndedOf: string }> {
  return 'transition' in item && item.transition.kind === 'status' && item.transition.to !== 'running'
}

/** How many tasks each owner has, in a fixed order. */
function countsOf(tasks: readonly ModelTask[]): Record<string, number> {
  const owners = [...new Set(tasks.map(({ record }) => record.owner))].sort()
  return Object.fromEntries(owners.map((owner) => [owner, tasks.filter(({ record }) => record.owner === owner).length]))
}
