/**
 * The real manager with a host around it that takes actions and logs the calls of its callbacks, as `modelled-host.ts` does.
 *
 * It is longer than most files because it has one entry for each kind of action.
 */
import { isDeepStrictEqual } from 'node:util'
import { refOf } from '../../machines/owed-questions.js'
import type { AsyncTaskInfo, OutputObject } from '../../machines/records.js'
import type { TaskTransition } from '../../machines/transitions.js'
import type { TaskLease } from '../../src/features/delivery/leases.js'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { AgentTasksError, FamilyError } from '../../src/errors.js'
import { transferTasks } from '../../src/features/families/transferring.js'
import type { LeasedReminder } from '../../src/features/delivery/reminder-service.js'
import type { RunContext, RunFunction, Runner } from '../../src/engine/runner.js'
import { createControllableEngine } from '../support/controllable-engine.js'
import { createJumpingClock } from '../support/jumping-clock.js'
import type { Subject } from '../support/subject.js'
import {
  outputs,
  OWNERS,
  reasons,
  type Action,
  type BadInput,
  type RegistrySettings,
  type Script,
  type StreamName,
  type Target,
  type LaunchFields,
  type TopAction,
} from './actions.js'
import {
  baseSubscriptions,
  perform,
  REMINDER_CHARS,
  SCRIPT_FUEL,
  SCRIPT_USES,
  type Host,
  type Performers,
  KEY_LIMITS,
} from './host.js'
import { nthLast, type Answer } from './drawing.js'
import { QUESTION } from './expected-texts.js'

interface Callback {
  readonly n: number
  readonly script: Script
  readonly mayThrow: boolean
  uses: number
}

export function createRealHost(subject: Subject, settings: RegistrySettings, start: number): Host {
  let log: unknown[] = []
  const clock = createJumpingClock(start)
  const engine = createControllableEngine((event) => {
    activity += 1
    if ('started' in event) log.push({ run: event.run, started: event.started.id })
    else log.push({ run: event.run, aborted: nameOf(event.aborted) })
  })
  const idCounters = new Map<string, number>()
  const manager = subject.createManager({
    ...settings,
    clock,
    engine,
    limits: KEY_LIMITS,
    createId: (prefix) => {
      const count = (idCounters.get(prefix) ?? 0) + 1
      idCounters.set(prefix, count)
      return `${prefix}-${count}`
    },
    onError: (error, { source, taskId }) => {
      if (!(error instanceof Error)) throw new TypeError('expected an Error to be reported')
      log.push({ reported: source, ...(taskId !== undefined && { taskId }) })
    },
  })
  const reminders = subject.createReminders(manager, { maxMessageChars: REMINDER_CHARS })
  const controllers = new Map<string, AbortController>()
  const controllerNames = new Map<AbortController, string>()
  const reservations: (string | null)[] = []
  const leases: (TaskLease | LeasedReminder)[] = []
  const subscriptions: (() => void)[] = []
  const contexts = new Map<number, RunContext>()
  const messages = new Map<number, AsyncIterator<string>>()
  const wrapUps = new Map<number, AbortSignal>()
  const withdrawals: AbortController[] = []
  const answers: unknown[] = []
  const taken: string[] = []
  let sent = 0
  const waits: AbortController[] = []
  const waitResults: unknown[] = []
  let disposed: 'begun' | 'done' | undefined
  let fuel = SCRIPT_FUEL
  /** Grows whenever something happens, so that `drain` knows when nothing more does. */
  let activity = 0

  // Records as the model shows them

  function picture(info: AsyncTaskInfo): object {
    assertFrozen(info, `the record of ${info.id}`)
    const { abortController, ...rest } = info
    return abortController === undefined
      ? rest
      : { ...rest, abortController: controllerNames.get(abortController) ?? 'own' }
  }

  const pictures = (infos: readonly AsyncTaskInfo[]): object[] => infos.map(picture)

  function pictureOfTransition(transition: TaskTransition): object {
    assertFrozen(transition, 'a transition')
    return { ...transition, record: picture(transition.record) }
  }

  // Callbacks of the host

  function call(callback: Callback, what: object): void {
    activity += 1
    log.push({ called: callback.n, ...what })
    if (callback.uses === 0) return
    callback.uses -= 1
    for (const action of callback.script) {
      if (fuel === 0) return
      fuel -= 1
      if (action.do !== 'throw') log.push({ by: callback.n, did: action.do, answer: answerTo(action) })
      else if (callback.mayThrow) throw new Error(`callback ${callback.n} throws`)
    }
  }

  function makeCallback(script: Script, mayThrow = true): Callback {
    const callback = { n: subscriptions.length, script, mayThrow, uses: SCRIPT_USES }
    subscriptions.push(() => undefined)
    return callback
  }

  function on(status: 'completed' | 'failed' | 'cancelled', script: Script): void {
    const callback = makeCallback(script)
    const handler = (record: AsyncTaskInfo): void => {
      const found = manager.getTask(record.id)
      call(callback, { record: picture(record), found: found && picture(found) })
    }
    const ons = {
      completed: () => manager.onTaskCompleted(handler),
      failed: () => manager.onTaskFailed(handler),
      cancelled: () => manager.onTaskCancelled(handler),
    }
    subscriptions[callback.n] = ons[status]()
  }

  function subscribe(stream: StreamName, script: Script): void {
    const callback = makeCallback(script)
    // A callback that is called during `subscribe` has no subscription yet to end.
    const wish = { isHeld: true }
    const complete = (): void => {
      if (wish.isHeld) log.push({ called: callback.n, isOver: true })
    }
    const counts = {
      next: (value: ReadonlyMap<string, number>) => {
        if (wish.isHeld) call(callback, { counts: inOrder(value) })
      },
      complete,
    }
    let lastSeq = ledgerCounts(manager)['seq']
    const subscribing = {
      transitions: () =>
        manager.transitions$.subscribe({
          next: (transition) => call(callback, { transition: pictureOfTransition(transition) }),
          complete,
        }),
      settled: () =>
        manager.settled$.subscribe({ next: (record) => call(callback, { settled: picture(record) }), complete }),
      owed: () => manager.owed$.subscribe(counts),
      running: () => manager.running$.subscribe(counts),
      progress: () =>
        manager.progress$.subscribe({
          next: ({ taskId, owner, progress }) => call(callback, { progress, taskId, owner }),
          complete,
        }),
      actor: () =>
        manager.actor.subscribe({
          next: (snapshot) => {
            const { seq } = snapshot
            // Snapshots may change without a change of a task; the model has only changes of tasks.
            if (seq === lastSeq) return
            lastSeq = seq
            call(callback, { actor: seq })
          },
          complete,
        }),
    }
    subscriptions[callback.n] = () => (wish.isHeld = false)
    const subscription = subscribing[stream]()
    if (!wish.isHeld) subscription.unsubscribe()
    subscriptions[callback.n] = () => subscription.unsubscribe()
  }

  function listen(name: string, script: Script): void {
    const callback = makeCallback(script, false)
    const { signal } = controllerOf(name)
    const listener = (): void => call(callback, { aborted: name, reason: nameOf(signal.reason) })
    // Versions of Node differ in whether they call a listener that is added during the abort.
    if (!signal.aborted) signal.addEventListener('abort', listener)
    subscriptions[callback.n] = () => signal.removeEventListener('abort', listener)
  }

  function controllerOf(name: string): AbortController {
    const controller = controllers.get(name) ?? new AbortController()
    controllers.set(name, controller)
    controllerNames.set(controller, name)
    return controller
  }

  // Actions

  const input = ({ controller, parent, after, ...fields }: LaunchFields): object => ({
    subagentName: 'agent',
    goalPrompt: 'goal',
    ...fields,
    ...(parent && { parentId: idOf(parent) }),
    ...(after && { after: after.map(idOf) }),
    ...(controller !== undefined && { abortController: controllerOf(controller) }),
  })

  function idOf(target: Target): string {
    if ('id' in target) return target.id
    return (
      nthLast(target.of === 'running' ? manager.getRunningTasks() : manager.getAllTasks(), target.nth)?.id ?? 'none'
    )
  }

  const reservationOf = (nth: number | undefined): [] | [string] =>
    nth === undefined || reservations.length === 0 ? [] : [nthLast(reservations, nth) ?? 'none']

  function launch(action: Action & { do: 'launch' }): object {
    if (action.isRefused === true) engine.refuseNext(reasons[0]!.given)
    const run: RunFunction = (_input, context) => {
      const at = engine.runs.findIndex(({ signal }) => signal === context.signal)
      log.push({ run: at, began: context.taskId, owner: context.owner })
      contexts.set(at, context)
      messages.set(at, context.messages[Symbol.asyncIterator]())
      wrapUps.set(at, context.wrapUp)
      return {}
    }
    const runner: Runner = action.takesMessages === true ? { run, takesMessages: true } : run
    const fields = { ...input(action.fields), ...(action.isForeground === true && { isForeground: true }) }
    try {
      return manager.launch(
        fields as Parameters<AsyncTaskManager['launch']>[0],
        runner,
        ...reservationOf(action.reservation),
      )
    } finally {
      engine.accept()
    }
  }

  function wait(action: Action & { do: 'wait' }): void {
    const n = waits.length
    const controller = new AbortController()
    waits.push(controller)
    waitResults.push('pending')
    const { mode, timeoutMs } = action
    const options = { mode, signal: controller.signal, ...(timeoutMs !== undefined && { timeoutMs }) }
    manager.waitFor(action.tasks.map(idOf), options).then(
      ({ settled, pending, unknown }) => {
        waitResults[n] = { settled: pictures(settled), pending: pictures(pending), unknown }
        activity += 1
      },
      () => {
        waitResults[n] = 'aborted'
        activity += 1
      },
    )
  }

  function ask(context: RunContext): void {
    const n = answers.length
    const withdrawal = new AbortController()
    withdrawals.push(withdrawal)
    answers.push('open')
    const settle = (answer: unknown): void => {
      answers[n] = answer
      activity += 1
    }
    context.ask(QUESTION, { signal: withdrawal.signal }).then(settle, () => settle('withdrawn'))
  }

  function take(iterator: AsyncIterator<string>): void {
    const n = taken.length
    taken.push('nothing yet')
    void iterator.next().then(({ done, value }) => {
      taken[n] = done === true ? 'over' : value
      activity += 1
    })
  }

  /** The last run, or one before it, if it has begun. */
  function withRun<T>(of: ReadonlyMap<number, T>, nth: number, then: (it: T) => void): void {
    const it = of.get(nthLast([...engine.runs.keys()], nth) ?? -1)
    if (it !== undefined) then(it)
  }

  function dispose(): void {
    disposed ??= 'begun'
    void manager.dispose().then(() => {
      disposed = 'done'
      activity += 1
    })
  }

  function leaseReminder(action: Action & { do: 'leaseReminder' }): object | undefined {
    const lease = reminders.leaseReminder(leaseRequest(action))
    if (lease === undefined) return undefined
    leases.push(lease)
    return { taskIds: lease.taskIds, text: shortened(lease.text), questions: lease.questions ?? [] }
  }

  function lease(action: Action & { do: 'lease' }): object | undefined {
    const taken = manager.lease(leaseRequest(action))
    if (taken === undefined) return undefined
    leases.push(taken)
    return pictures(taken.tasks)
  }

  const performers: Performers = {
    register: (action) => {
      const fields = input(action.fields) as Parameters<AsyncTaskManager['registerTask']>[0]
      const record = manager.registerTask(fields, ...reservationOf(action.reservation))
      return picture(record)
    },
    launch: (action) => picture(launch(action) as AsyncTaskInfo),
    complete: (action) => manager.completeTask(idOf(action.task), outputs[action.value]!.given as OutputObject),
    fail: (action) => manager.failTask(idOf(action.task), reasons[action.reason]!.given as string),
    cancel: (action) => manager.cancelTask(idOf(action.task), { reason: action.reason }),
    cancelAll: ({ owner, reason }) => manager.cancelAll({ ...(owner !== undefined && { owner }), reason }),
    abort: (action) => controllerOf(action.controller).abort(),
    reserve: (action) => {
      const reserved = manager.tryReserveAsyncSlot(action.ttlMs === undefined ? undefined : { ttlMs: action.ttlMs })
      reservations.push(reserved)
      return reserved
    },
    cancelReservation: (action) => manager.cancelReservation(nthLast(reservations, action.reservation) ?? 'none'),
    setMax: (action) => manager.setMaxAsyncTasks(action.max),
    notify: (action) => manager.markNotified(idOf(action.task)),
    markAllNotified: () => reminders.markAllNotified(),
    remind: (action) => shortened(reminders.generateReminder(action.owner)),
    lease: (action) => lease(action),
    leaseReminder: (action) => leaseReminder(action),
    acknowledge: (action) => nthLast(leases, action.lease)?.acknowledge(),
    release: (action) => nthLast(leases, action.lease)?.release(),
    read: (action) => manager.registry.send({ type: 'text.read', taskId: idOf(action.task) }),
    releaseOwner: (action) =>
      manager.releaseOwner(action.owner, action.to === undefined ? undefined : { to: action.to }),
    transfer: ({ owner, to, tasks }) => transferTasks(manager, { from: owner, to, ids: new Set(tasks.map(idOf)) }),
    progress: (action) =>
      manager.reportProgress(idOf(action.task), action.value === 3 ? ('odd' as never) : action.value),
    append: (action) => manager.appendOutput(idOf(action.task), action.text),
    readOutput: (action) =>
      manager.readOutput(idOf(action.task), action.cursor === undefined ? undefined : { cursor: action.cursor }) ??
      false,
    prefix: (action) => {
      const { task, candidates } = manager.getTaskByPrefix(action.prefix)
      return { ...(task && { task: task.id }), ...(candidates && { candidates: candidates.map(({ id }) => id) }) }
    },
    on: (action) => on(action.status, action.script),
    subscribe: (action) => subscribe(action.stream, action.script),
    listen: (action) => listen(action.controller, action.script),
    unsubscribe: (action) => {
      nthLast(subscriptions.slice(baseSubscriptions.length), action.subscription)?.()
    },
    begin: (action) => nthLast(engine.runs, action.run)?.begin(),
    say: (action) => withRun(contexts, action.run, (context) => context.append(action.text)),
    spend: (action) => withRun(contexts, action.run, (context) => context.spend({ steps: 1 })),
    ask: (action) => withRun(contexts, action.run, ask),
    withdraw: (action) => nthLast(withdrawals, action.asked)?.abort(),
    answer: (action) =>
      manager.answerTask(idOf(action.task), `question-${action.question}`, {
        action: 'accept',
        content: { answer: 'yes' },
      }),
    detach: (action) => manager.detachTask(idOf(action.task)),
    pause: (action) => ({ ...manager.pause(action.owner) }),
    resume: (action) => manager.resume(action.owner),
    send: (action) => {
      sent += 1
      return manager.sendToTask(idOf(action.task), `message ${sent}`)
    },
    take: (action) => withRun(messages, action.run, take),
    return: (action) =>
      nthLast(engine.runs, action.run)?.finish({ type: 'returned', value: outputs[action.value]!.given }),
    reject: (action) =>
      nthLast(engine.runs, action.run)?.finish({ type: 'threw', reason: reasons[action.reason]!.given }),
    abandon: (action) => nthLast(engine.runs, action.run)?.abandon(),
    wait: (action) => wait(action),
    abortWait: (action) => nthLast(waits, action.wait)?.abort(),
    bad: (action) => giveBadInput(manager, action.input),
    dispose: () => dispose(),
    look: () => observeNow(),
    throw: () => undefined,
    advance: (action) => clock.advance(action.ms),
    jump: (action) => clock.jump(action.ms),
  }

  function answerTo(action: TopAction): Answer {
    activity += 1
    try {
      return { returned: perform(performers, action) }
    } catch (error) {
      if (!(error instanceof Error)) throw error
      if (error instanceof FamilyError) return { threw: 'a family' }
      if (!(error instanceof AgentTasksError)) return { threw: error.name }
      return { threw: error.code === 'TASK_LIMIT' ? `${error.code}: ${error.message}` : error.code }
    }
  }

  function observe(): object {
    const concluding = [...wrapUps].sort(([a], [b]) => a - b).map(([, { aborted }]) => aborted)
    return {
      ...observeNow(),
      waits: [...waitResults],
      disposed,
      answers: [...answers],
      taken: [...taken],
      concluding,
    }
  }

  function observeNow(): object {
    const owners = [undefined, ...OWNERS]
    const ids = (infos: AsyncTaskInfo[]): string[] => infos.splice(0).map(({ id }) => id)
    const pending = owners.map((owner) => ids(manager.getPendingNotifications(owner)))
    if (
      !isDeepStrictEqual(
        owners.map((owner) => reminders.hasPendingNotifications(owner)),
        pending.map((of) => of.length > 0),
      )
    ) {
      throw new Error('hasPendingNotifications disagrees with getPendingNotifications')
    }
    return {
      tasks: pictures(manager.getAllTasks()),
      running: owners.map((owner) => ids(manager.getRunningTasks(owner))),
      queued: owners.map((owner) => ids(manager.getQueuedTasks(owner))),
      places: manager.getQueuedTasks().map(({ id }) => manager.queuePosition(id)),
      pending,
      asking: owners.map((owner) => manager.registry.ledger.questions.owed(owner).map(refOf)),
      spent: owners.map((owner) => manager.spent(owner).steps ?? 0),
      canLaunch: manager.canLaunchAsync(),
      counts: ledgerCounts(manager),
      owed: first(manager.owed$),
      runningOf: first(manager.running$),
      timers: clock.pending,
    }
  }

  for (const action of baseSubscriptions) perform(performers, action)
  return {
    act(action) {
      fuel = SCRIPT_FUEL
      return answerTo(action)
    },
    async drain() {
      for (let quiet = 0; quiet < 8; quiet += 1) {
        const before = activity + log.length
        await Promise.resolve()
        if (activity + log.length !== before) quiet = 0
      }
    },
    observe,
    takeLog() {
      const taken = log
      log = []
      return taken
    },
  }
}

function leaseRequest({ owner, isExclusive }: { owner?: string; isExclusive?: boolean }): object {
  return { ...(owner !== undefined && { owner }), ...(isExclusive !== undefined && { exclusive: isExclusive }) }
}

function ledgerCounts(manager: AsyncTaskManager): Record<string, number> {
  const { max, running, slots, owed, leased, retained, seq } = manager.actor.getSnapshot()
  return { max, running, slots, reservations: manager.registry.pools.task.reserved, owed, leased, retained, seq }
}

function first(counts$: AsyncTaskManager['owed$']): object {
  let counts = {}
  counts$.subscribe((value) => (counts = inOrder(value))).unsubscribe()
  return counts
}

function inOrder(counts: ReadonlyMap<string, number>): object {
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
}

const shortened = (text: string): string => (text.includes('\n[Cut ') ? 'cut' : text)

const nameOf = (reason: unknown): string => (reason instanceof Error ? reason.name : String(reason))

/** A8: records handed out are frozen. */
function assertFrozen(value: unknown, what: string): void {
  if (typeof value !== 'object' || value === null || value instanceof AbortController) return
  if (!Object.isFrozen(value)) throw new Error(`A8: ${what} is not frozen`)
  for (const [key, inner] of Object.entries(value)) assertFrozen(inner, `${what}, field ${key}`)
}

function giveBadInput(manager: AsyncTaskManager, bad: BadInput): unknown {
  const good = { id: 'x', subagentName: 'agent', goalPrompt: 'goal' }
  // The types forbid these calls; callers in JavaScript can make them.
  const register = (input: unknown): unknown => manager.registerTask(input as typeof good)
  const calls: Record<BadInput, () => unknown> = {
    'register nothing': () => register(undefined),
    'register without a name': () => register({ id: 'x', goalPrompt: 'goal' }),
    'register an empty id': () => register({ ...good, id: '' }),
    'register a number as id': () => register({ ...good, id: 42 }),
    'register a negative deadline': () => register({ ...good, timeoutMs: -1 }),
    'register an endless deadline': () => register({ ...good, timeoutMs: Infinity }),
    'register a controller that is none': () => register({ ...good, abortController: { abort: true } }),
    'register for an empty owner': () => register({ ...good, owner: '' }),
    'launch nothing': () => manager.launch(null as never, () => ({})),
    'launch without a runner': () => manager.launch(good, undefined as never),
    'reserve for a negative time': () => manager.tryReserveAsyncSlot({ ttlMs: -1 }),
    'reserve for a word': () => manager.tryReserveAsyncSlot({ ttlMs: 'long' as never }),
    'release an owner that is none': () => manager.releaseOwner(undefined as never),
    'release an owner to a number': () => manager.releaseOwner('main', { to: 42 as never }),
    'lease for a number': () => manager.lease({ owner: 42 as never }),
    'read from a cursor that is none': () => manager.readOutput('a', { cursor: NaN }),
    'call what is no function': () => manager.onTaskCompleted('handler' as never),
    'limit of a half': () => manager.setMaxAsyncTasks(1.5),
    'limit of minus two': () => manager.setMaxAsyncTasks(-2),
    'limit that is no number': () => manager.setMaxAsyncTasks(NaN),
    'limit that is text': () => manager.setMaxAsyncTasks('3' as never),
    'limit that is endless': () => manager.setMaxAsyncTasks(Infinity),
    'complete a number': () => manager.completeTask(42 as never, {}),
    'fail nothing': () => manager.failTask(undefined as never, 'x'),
    'cancel nothing': () => manager.cancelTask(null as never),
    'cancel a reservation that is none': () => manager.cancelReservation(undefined as never),
  }
  return calls[bad]()
}
