/**
 * When deliveries start, to the millisecond. Tasks that end together share a message; a refused or expired message is retried with
 * exponential back-off; an idle edge starts the retry; a success or an empty ledger resets it. A busy agent is asked again at a poll,
 * an idle edge or the next end (A6; D2 to D4 of the machine).
 */
import fc from 'fast-check'
import { BehaviorSubject } from 'rxjs'
import type { TriggerAgentTurn } from '../../src/index.js'
import { createRaceScheduler, type RaceOrder, raceOrders } from '../../src/testing/index.js'
import type { SubjectProperty } from '../support/planted-faults.js'
import type { Subject } from '../support/subject.js'
import { createPacedClock } from '../support/paced-clock.js'
import { TimingModel, type Timing } from './timing-model.js'

type Verb = 'end' | 'idle edge' | 'mark all' | 'be busy' | 'be idle'
type Step = { readonly do: Verb } | { readonly do: 'advance'; readonly ms: number }
type TurnEnd = 'accept' | 'refuse' | 'throw' | 'hang'

interface TimingScript {
  readonly timing: Timing
  /** Whether the host has an Observable, or a function and `notifyIdle`. */
  readonly isObservable: boolean
  readonly actors: readonly (readonly Step[])[]
  /** How the turns end. Later turns are accepted. */
  readonly turns: readonly TurnEnd[]
}

const event = (...verbs: Verb[]): fc.Arbitrary<Step> => fc.record({ do: fc.constantFrom(...verbs) })

const timingScript: fc.Arbitrary<TimingScript> = fc.record({
  timing: fc.record({
    coalesceMs: fc.constantFrom(0, 0, 20, 300),
    maxWaitMs: fc.constantFrom(50, 1000, 5000),
    retryInitialMs: fc.constantFrom(100, 1000),
    retryMaxMs: fc.constantFrom(1000, 4000, 60_000),
    timeoutMs: fc.constantFrom(undefined, 700),
    pollMs: fc.constantFrom(200, 3000),
  }),
  isObservable: fc.boolean(),
  actors: fc
    .tuple(
      fc.array(event('end'), { minLength: 1, maxLength: 8 }),
      fc.array(event('idle edge', 'idle edge', 'mark all', 'be busy', 'be idle'), { maxLength: 5 }),
      fc.array(fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(0, 10, 50, 300, 1000, 5000) }), {
        minLength: 2,
        maxLength: 10,
      }),
    )
    .map((actors): (readonly Step[])[] => actors),
  turns: fc.array(fc.constantFrom<TurnEnd[]>('accept', 'refuse', 'refuse', 'throw', 'hang'), { maxLength: 6 }),
})

export const deliveryTiming: SubjectProperty = {
  name: 'delivery-timing',
  create: (subject) => fc.asyncProperty(raceOrders(), timingScript, (order, script) => run(subject, script, order)),
}

async function run(subject: Subject, script: TimingScript, order: RaceOrder): Promise<void> {
  const scheduler = createRaceScheduler(order)
  const clock = createPacedClock()
  const manager = subject.createManager({ maxAsyncTasks: -1, clock, onError: () => undefined })
  const reminders = subject.createReminders(manager)
  const model = new TimingModel(script.timing, () => manager.getPendingNotifications().length)
  const busy$ = new BehaviorSubject(false)
  const turns = [...script.turns]
  let isOver = false
  let tasks = 0

  const finish = async (end: TurnEnd, signal: AbortSignal): Promise<void> => {
    const settle = async (): Promise<void> => {
      if (!signal.aborted) model.end(clock.now(), end === 'accept')
    }
    if (end === 'hang') await new Promise(() => undefined)
    else if (isOver) await settle()
    else await scheduler.scheduleSequence([{ label: `turn ends: ${end}`, builder: settle }]).task
    if (end === 'refuse') throw new Error('refused')
  }
  const turn: TriggerAgentTurn = (_text, { signal, taskIds, isRepeat = false }) => {
    model.start(clock.now(), taskIds.length, isRepeat)
    signal.addEventListener('abort', () => model.expire(clock.now()))
    const next = isOver ? 'accept' : (turns.shift() ?? 'accept')
    const end = next === 'hang' && script.timing.timeoutMs === undefined ? 'accept' : next
    if (end !== 'throw') return finish(end, signal)
    model.end(clock.now(), false)
    throw new Error('thrown')
  }
  const { coalesceMs, maxWaitMs, retryInitialMs, retryMaxMs, timeoutMs, pollMs } = script.timing
  const isAgentBusy = script.isObservable ? busy$ : () => model.isBusy
  const trigger = subject.createTrigger(manager, reminders, isAgentBusy, turn, {
    coalesceMs,
    maxWaitMs,
    pollMs,
    retry: { initialMs: retryInitialMs, maxMs: retryMaxMs },
    ...(timeoutMs !== undefined && { deliveryTimeoutMs: timeoutMs }),
    onError: () => undefined,
  })
  const perform = async (step: Step): Promise<void> => {
    switch (step.do) {
      case 'end':
        tasks += 1
        manager.registerTask({ id: `task-${tasks}`, subagentName: 'runner', goalPrompt: 'run' })
        manager.completeTask(`task-${tasks}`, {})
        model.request(clock.now())
        return
      case 'idle edge':
        model.becomeIdle(clock.now())
        if (!script.isObservable) trigger.notifyIdle()
        else for (const isBusy of [true, false]) busy$.next(isBusy)
        return
      case 'mark all':
        reminders.markAllNotified()
        return
      case 'be busy':
      case 'be idle':
        // A host with a function says nothing when it changes: a poll or the next end finds it out.
        if (!script.isObservable) model.isBusy = step.do === 'be busy'
        return
      case 'advance':
        await clock.advance(step.ms)
        model.look(clock.now())
        return
    }
  }

  model.subscribe(clock.now())
  trigger.subscribe()
  for (const steps of script.actors) {
    scheduler.scheduleSequence(
      steps.map((step) => ({
        label: step.do === 'advance' ? `advance ${step.ms}` : step.do,
        builder: () => perform(step),
      })),
    )
  }
  await scheduler.waitIdle()
  isOver = true
  model.isBusy = false
  await clock.advance(200_000)
  model.look(clock.now())
  const left = manager.getPendingNotifications().length
  await manager.dispose()
  model.conclude(String(scheduler))
  if (left > 0) throw new Error(`A6: ${left} are still owed\n${String(scheduler)}`)
}
