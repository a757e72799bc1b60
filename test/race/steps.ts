/** What each step of a script does. It is recorded in the ledger before the manager is called. */
import type {
  AsyncTaskAutoTrigger,
  AsyncTaskManager,
  AsyncTaskReminderService,
  Clock,
  TaskHandle,
  TriggerAgentTurn,
} from '../../src/index.js'
import { transferTasks } from '../../src/features/families/transferring.js'
import type { FakeHost } from './host.js'
import type { Ledger, Message, TaskState } from './ledger.js'
import { OWNERS, type HostKind, type Step } from './script.js'
import type { LeasedReminder } from '../../src/parts.js'

/** A trigger, and what the test expects of it. */
export interface RacingTrigger {
  readonly name: string
  readonly owner: string
  readonly timeoutMs: number | undefined
  readonly trigger: AsyncTaskAutoTrigger
  host: FakeHost
  /** The unsubscribe functions of its subscriptions. */
  readonly subscriptions: (() => void)[]
  /** Whether callbacks may be called: from the first `subscribe` until the last unsubscribe has returned. */
  isSubscribed: boolean
  /** How many refused and expired deliveries `onError` has yet to report; negative if it reported more. */
  unreported: number
}

/** A reminder that the host leased. */
export interface Reminded {
  readonly message: Message
  readonly lease: LeasedReminder
}

/** The targets of the steps. */
export interface Stage {
  readonly ledger: Ledger
  readonly clock: Pick<Clock, 'now'>
  readonly manager: AsyncTaskManager
  readonly reminders: AsyncTaskReminderService
  readonly triggers: readonly RacingTrigger[]
  readonly reminded: Reminded[]
  readonly aborters: AbortController[]
  /** The handle of each task. */
  readonly handles: Map<string, TaskHandle>
  /** The tasks whose results were read, with what the handle returned or threw. */
  readonly reads: Map<string, unknown>
  createHandle(id: string): TaskHandle
  isDisposing: boolean
  isDisposed: boolean
  createCallbacks(index: number, kind: HostKind, isBusy: boolean): [FakeHost, TriggerAgentTurn]
  stopListening(): void
}

/** Takes a step at once. */
export function performStep(stage: Stage, step: Step): void {
  const { ledger, manager, triggers, reminded } = stage
  switch (step.do) {
    case 'register':
      register(stage, ownerOf(step.owner))
      break
    case 'complete':
      end(stage, pick(ledger.running(), step.nth), 'completed')
      break
    case 'fail':
      end(stage, pick(ledger.running(), step.nth), 'failed')
      break
    case 'cancel':
      end(stage, pick(ledger.running(), step.nth), 'cancelled')
      break
    case 'end all':
      for (const [index, id] of ledger.running().entries()) end(stage, id, index % 2 === 0 ? 'completed' : 'failed')
      break
    case 'busy':
      pick(triggers, step.host)?.host.set(true)
      break
    case 'idle': {
      const racing = pick(triggers, step.host)
      racing?.host.set(false)
      if (racing?.host.kind === 'notifying') racing.trigger.notifyIdle()
      break
    }
    case 'notify idle':
      pick(triggers, step.host)?.trigger.notifyIdle()
      break
    case 'break':
      pick(triggers, step.host)?.host.break()
      break
    case 'end':
      pick(triggers, step.host)?.host.end()
      break
    case 'subscribe':
      subscribe(pick(triggers, step.trigger))
      break
    case 'unsubscribe':
      unsubscribe(pick(triggers, step.trigger))
      break
    case 'resubscribe':
      unsubscribe(pick(triggers, step.trigger))
      subscribe(pick(triggers, step.trigger))
      break
    case 'update':
      update(stage, step)
      break
    case 'update away':
      unsubscribe(pick(triggers, step.trigger))
      update(stage, step)
      subscribe(pick(triggers, step.trigger))
      break
    case 'remind':
      remind(stage, ownerOf(step.owner), false)
      break
    case 'remind alone':
      remind(stage, ownerOf(step.owner), true)
      break
    case 'accept':
      accept(stage, pick(reminded, step.nth))
      break
    case 'refuse':
      refuse(pick(reminded, step.nth))
      break
    case 'mark notified':
      markNotified(stage, pick([...ledger.tasks.keys()], step.nth))
      break
    case 'wait':
      wait(stage, step)
      break
    case 'abort wait':
      pick(stage.aborters, step.nth)?.abort()
      break
    case 'read result':
      readResult(stage, pick([...ledger.tasks.keys()], step.nth))
      break
    case 'release owner': {
      const heir = step.to === undefined ? undefined : ownerOf(step.to)
      ledger.releaseOwner(ownerOf(step.owner), heir)
      manager.releaseOwner(ownerOf(step.owner), heir === undefined ? {} : { to: heir })
      break
    }
    case 'transfer':
      transfer(stage, pick([...ledger.tasks.keys()], step.nth), ownerOf(step.to))
      break
    case 'stop listening':
      stage.stopListening()
      break
    case 'dispose':
      stage.isDisposing = true
      for (const id of ledger.running()) ledger.end(id, 'cancelled')
      void manager.dispose()
      stage.isDisposed = true
      break
    case 'advance':
      throw new Error('time passes only between the callbacks')
  }
}

function register(stage: Stage, owner: string): void {
  const { ledger, manager, handles } = stage
  const id = `task-${ledger.tasks.size + 1}`
  ledger.register(id, owner)
  manager.registerTask({ id, owner, subagentName: 'racer', goalPrompt: 'race' })
  handles.set(id, stage.createHandle(id))
}

/** Another session takes a task over. */
function transfer({ ledger, manager }: Stage, id: string | undefined, heir: string): void {
  const from = id === undefined ? undefined : ledger.tasks.get(id)?.owner
  if (id === undefined || from === undefined) return
  ledger.transfer(id, heir)
  transferTasks(manager, { from, to: heir, ids: new Set([id]) })
}

/** Stands in `reads` until the result has settled. */
export const UNSETTLED = Symbol('unsettled')

/** The first read before the end is a wait without an end, and after it takes what is owed and in no message. */
function readResult({ ledger, handles, reads }: Stage, id: string | undefined): void {
  const handle = id === undefined ? undefined : handles.get(id)
  if (id === undefined || handle === undefined || reads.has(id)) return
  reads.set(id, UNSETTLED)
  const isRunning = ledger.running().includes(id)
  const wait = isRunning ? ledger.wait([id], 'all', undefined) : undefined
  if (!isRunning && ledger.isOwed(id)) ledger.acceptTasks([id])
  const settle = (outcome: unknown): void => {
    reads.set(id, outcome)
    if (wait !== undefined) ledger.endWait(wait, [id])
  }
  handle.result.then(settle, settle)
}

/** Two fit into a message, three do not. */
const LONG_RESULT = 'x'.repeat(9_000)

function end({ ledger, manager }: Stage, id: string | undefined, state: Exclude<TaskState, 'running'>): void {
  if (id === undefined) return
  const isGranted = ledger.end(id, state)
  const isDone =
    state === 'completed'
      ? manager.completeTask(id, { final_message: ledger.isLong ? LONG_RESULT : 'done' })
      : state === 'failed'
        ? manager.failTask(id, 'no luck')
        : manager.cancelTask(id)
  ledger.check(isDone === isGranted, () => `A1: ${id} ${isDone ? 'could' : 'could not'} be ${state}`)
}

function subscribe(racing: RacingTrigger | undefined): void {
  if (racing === undefined) return
  racing.isSubscribed = true
  racing.subscriptions.push(racing.trigger.subscribe())
}

function unsubscribe(racing: RacingTrigger | undefined): void {
  const unsubscribe = racing?.subscriptions.shift()
  if (racing === undefined || unsubscribe === undefined) return
  unsubscribe()
  racing.isSubscribed = racing.subscriptions.length > 0
  if (!racing.isSubscribed) racing.unreported = 0
}

function update(stage: Stage, step: { trigger: number; kind: HostKind; isBusy: boolean }): void {
  const index = step.trigger % stage.triggers.length
  const racing = stage.triggers[index]
  if (racing === undefined) return
  const [host, turn] = stage.createCallbacks(index, step.kind, step.isBusy)
  racing.host = host
  racing.trigger.updateCallbacks(host.source, turn)
}

function remind({ ledger, reminders, reminded }: Stage, owner: string, isExclusive: boolean): void {
  const expected = isExclusive && ledger.exclusives(owner).length > 0 ? [] : ledger.owed(owner)
  const lease = reminders.leaseReminder({ owner, exclusive: isExclusive })
  if (lease === undefined) {
    ledger.check(expected.length === 0, () => `A5: a reminder of ${owner} lacks ${expected.join()}`)
    return
  }
  const { deliveryId, taskIds, isRepeat = false } = lease
  const opened = { name: `reminder ${reminded.length + 1}`, isExclusive, owner, taskIds, deliveryId, isRepeat }
  reminded.push({ lease, message: ledger.open(opened, lease.text) })
}

function accept({ ledger }: Stage, one: Reminded | undefined): void {
  if (one === undefined) return
  ledger.accept(one.message)
  one.lease.acknowledge()
}

function refuse(one: Reminded | undefined): void {
  if (one === undefined) return
  one.message.isOpen = false
  one.lease.release()
}

function markNotified({ ledger, reminders }: Stage, id: string | undefined): void {
  if (id === undefined) return
  ledger.acceptTasks([id])
  reminders.markNotified([id])
}

function wait({ ledger, manager, clock, aborters }: Stage, step: Extract<Step, { do: 'wait' }>): void {
  const { nth, mode, ms } = step
  const known = [...ledger.tasks.keys()].filter((id) => manager.getTask(id) !== undefined)
  const ids = known.slice(-1 - nth)
  const aborter = new AbortController()
  aborters.push(aborter)
  const recorded = ledger.wait(ids, mode, ms === undefined ? undefined : clock.now() + ms)
  const options = { mode, signal: aborter.signal, ...(ms !== undefined && { timeoutMs: ms }) }
  manager.waitFor(ids, options).then(
    ({ settled }) => ledger.endWait(recorded, idsOf(settled)),
    () => ledger.endWait(recorded, []),
  )
}

const idsOf = (tasks: readonly { id: string }[]): string[] => tasks.map(({ id }) => id)

const ownerOf = (number: number): string => OWNERS[number] ?? 'main'

/** The nth item, counted from the first and around. */
function pick<T>(items: readonly T[], nth: number): T | undefined {
  return items[nth % items.length]
}
