/**
 * Runs one race: its actors in an order that fast-check draws, and then what must follow. The checks are here; what happens in a race is
 * in world.ts.
 */
import { TaskCancelledError, TaskFailedError } from '../../src/index.js'
import type { RaceScheduler } from '../../src/testing/index.js'
import type { Subject } from '../support/subject.js'
import { describeStep, OWNERS, type RaceScript } from './script.js'
import { UNSETTLED } from './steps.js'
import { RETRY_MAX_MS, World } from './world.js'

/** Runs a script. @throws the first violation, and the schedule */
export async function runRace(subject: Subject, script: RaceScript, scheduler: RaceScheduler): Promise<void> {
  const world: World = new World(subject, script, scheduler, () => checkAtRest(world))
  script.actors.forEach((steps, actor) => {
    scheduler.scheduleSequence(
      steps.map((step) => ({
        label: `actor ${actor}: ${describeStep(step)}`,
        builder: () => world.step(step),
      })),
    )
  })
  const settle = async (): Promise<void> => {
    await scheduler.waitIdle()
    checkAtRest(world)
  }
  try {
    await settle()
    await drain(world, settle)
    await checkShared(world, settle)
    await checkDisposal(world, settle)
  } finally {
    world.ledger.conclude(String(scheduler))
  }
}

/** The checks whenever nothing is going on. */
function checkAtRest({ ledger, clock, manager, triggers, isDisposed, isDisposing }: World): void {
  if (isDisposed) ledger.check(clock.pending === 0, () => `A9: ${clock.pending} timers are left after dispose`)
  if (isDisposing) return
  for (const owner of OWNERS) {
    const owed = ledger.owed(owner).join()
    const pending = manager.getPendingNotifications(owner).map(({ id }) => id)
    ledger.check(pending.join() === owed, () => `A5: ${pending.join()} pending of ${owner}, owed is ${owed}`)
  }
  for (const task of ledger.tasks.values()) {
    const delivery = manager.getTask(task.id)?.delivery
    const expected = ledger.isOwing(task) ? (ledger.isLeased(task.id) ? ['leased'] : ['owed']) : DONE
    const isRight = expected.includes(delivery) && (delivery !== 'delivered' || task.isAccepted)
    ledger.check(isRight, () => `A5: ${task.id} is ${delivery ?? 'pruned'}, should be ${expected.join(' or ')}`)
  }
  for (const { name, host, isSubscribed, unreported } of triggers) {
    ledger.check(unreported <= 0, () => `A6: onError of ${name} misses ${unreported} failures`)
    ledger.check(isSubscribed || host.listeners === 0, () => `A9: ${name} is subscribed to busy$ after unsubscribe`)
  }
  ledger.checkOver(clock.now())
}

/** The deliveries of a task that owes nothing. A message that was taken before may still lease it. */
const DONE: readonly unknown[] = ['none', 'delivered', 'leased', undefined]

/** Removes the obstacles to delivery, one kind at a time, and checks after each that no result lacks a wake-up. */
async function drain(world: World, settle: () => Promise<void>): Promise<void> {
  const { ledger, triggers } = world
  world.isDraining = true
  await passTime(world, settle)
  checkNothingStalls(world, 'with time alone')

  for (const _ of ledger.running()) world.take({ do: 'complete', nth: 0 })
  for (const finish of [...world.hanging]) finish()
  world.reminded.forEach(({ message }, nth) => {
    if (message.isOpen) world.take({ do: 'refuse', nth })
  })
  await passTime(world, settle)
  checkNothingStalls(world, 'after what hung has ended')

  world.aborters.forEach((_, nth) => world.take({ do: 'abort wait', nth }))
  triggers.forEach(({ host, isSubscribed }, trigger) => {
    if (!isSubscribed || !host.looksBusy) return
    if (host.isSilent) world.take({ do: 'update', trigger, kind: 'asked', isBusy: false })
    else world.take({ do: 'idle', host: trigger })
  })
  await passTime(world, settle)
  checkNothingStalls(world, 'once the agents were idle')

  triggers.forEach(({ host, isSubscribed }, trigger) => {
    if (isSubscribed) return
    if (host.isSilent) world.take({ do: 'update', trigger, kind: 'asked', isBusy: false })
    world.take({ do: 'subscribe', trigger })
    world.take({ do: 'idle', host: trigger })
  })
  await passTime(world, settle)
  checkNothingStalls(world, 'once all were subscribed')
}

/** A6: nothing is owed to an owner whose agent is idle and subscribed, unless an exclusive message is open. */
function checkNothingStalls({ ledger, triggers, isDisposing }: World, when: string): void {
  if (isDisposing) return
  for (const owner of OWNERS) {
    const isReady = triggers.some((one) => one.owner === owner && one.isSubscribed && !one.host.looksBusy)
    const owed = ledger.owed(owner)
    const isRight = !isReady || owed.length === 0 || ledger.exclusives(owner).length > 0
    ledger.check(isRight, () => `A6: ${owed.join(', ')} of ${owner} had no wake-up ${when}`)
  }
}

/** A6: tasks that end in one tick share a message. A5: every result owed to a subscribed owner has arrived by now. */
async function checkShared(world: World, settle: () => Promise<void>): Promise<void> {
  const { ledger, triggers } = world
  if (world.isDisposing) return
  for (const [index, owner] of OWNERS.entries()) {
    if (!triggers.some((trigger) => trigger.owner === owner)) continue
    const before = ledger.messages.length
    for (let count = 0; count < 3; count += 1) world.take({ do: 'register', owner: index })
    world.take({ do: 'end all' })
    await passTime(world, settle)
    const sizes = ledger.messages.slice(before).map(({ taskIds }) => taskIds.length)
    ledger.check(sizes.join() === '3', () => `A6: three ends in one tick made messages of ${sizes.join()}`)
    const lost = [...ledger.tasks.values()].filter((task) => task.owner === owner && ledger.isOwing(task))
    ledger.check(lost.length === 0, () => `A5: ${lost.map(({ id }) => id).join(', ')} never arrived`)
  }
}

/** A9: after `dispose` no callback is called, no timer is set and nothing is subscribed. */
async function checkDisposal(world: World, settle: () => Promise<void>): Promise<void> {
  const { ledger, triggers, clock } = world
  world.take({ do: 'dispose' })
  ledger.check(clock.pending === 0, () => `A9: ${clock.pending} timers are left after dispose`)
  ledger.check(world.areStreamsOver, () => 'A9: the streams are not complete after dispose')
  const listeners = triggers.reduce((sum, { host }) => sum + host.listeners, 0)
  ledger.check(listeners === 0, () => `A9: ${listeners} are subscribed to busy$ after dispose`)
  for (const { trigger, host } of triggers) {
    trigger.notifyIdle()
    if (!host.isSilent) for (const isBusy of [true, false]) host.set(isBusy)
    trigger.subscribe()
  }
  for (const finish of [...world.hanging]) finish()
  await settle()
  await clock.advance(RETRY_MAX_MS)
  await settle()
  checkReads(world)
}

/** H1: every result that was read has settled, as its task has ended. */
function checkReads({ ledger, reads }: World): void {
  for (const [id, outcome] of reads) {
    const state = ledger.tasks.get(id)?.state
    const isRight = outcome !== UNSETTLED && outcomeOf(outcome) === state
    ledger.check(isRight, () => `H1: the handle of ${id}, which has ${state ?? ''}, gave ${String(outcome)}`)
  }
}

const outcomeOf = (outcome: unknown): string =>
  outcome instanceof TaskFailedError
    ? 'failed'
    : outcome instanceof TaskCancelledError
      ? 'cancelled'
      : (outcome as { readonly final_message?: string }).final_message === undefined
        ? 'nothing'
        : 'completed'

/** Long enough for a few attempts, one after the other. */
async function passTime({ clock }: World, settle: () => Promise<void>): Promise<void> {
  for (let round = 0; round < 5; round += 1) {
    await clock.advance(RETRY_MAX_MS)
    await settle()
  }
}
