/**
 * Callbacks of a host that throw, reject, never settle or settle late: two owners share a manager, and the callbacks of one answer so for a while. The other
 * owner gets its results at once, the first one when its callbacks answer again, and nothing is left after dispose().
 */
import fc from 'fast-check'
import { AsyncTaskAutoTrigger, AsyncTaskManager, AsyncTaskReminderService } from '../../src/index.js'
import { memoryStore } from '../../src/store/index.js'
import { createPacedClock } from '../support/paced-clock.js'

const behaviours = [
  'answers',
  'throws',
  'throws undefined',
  'rejects',
  'never',
  'late',
  'throwing then',
  'nonsense',
] as const
type Behaviour = (typeof behaviours)[number]

/** How long a late answer takes, in ms: longer than any limit of a callback but that of a turn. */
const LATE_MS = 45_000
/** The limit of a turn, in ms. */
const TURN_MS = 60_000

export interface CallbackScript {
  readonly busy: readonly Behaviour[]
  readonly turns: readonly Behaviour[]
  readonly wasDelivered: Behaviour
  readonly onError: Behaviour
}

const callbackScripts: fc.Arbitrary<CallbackScript> = fc.record({
  busy: fc.array(fc.constantFrom(...behaviours), { maxLength: 4 }),
  turns: fc.array(fc.constantFrom(...behaviours), { maxLength: 4 }),
  wasDelivered: fc.constantFrom(...behaviours),
  onError: fc.constantFrom(...behaviours),
})

/** Which callbacks a planted fault replaces: it gets what the host passes. */
export interface CallbackFault {
  readonly wrapBusy?: (isAgentBusy: () => boolean | PromiseLike<boolean>) => () => boolean | PromiseLike<boolean>
}

/** A6, A9: callbacks that do not answer hold up nobody else, and not for ever. */
export function hostileCallbacksProperty({
  wrapBusy = (source) => source,
}: CallbackFault = {}): fc.IAsyncPropertyWithHooks<[CallbackScript]> {
  return fc.asyncProperty(callbackScripts, async (script) => {
    const clock = createPacedClock()
    /** Timers of the callbacks themselves. */
    let own = 0
    const answer = <Value>(behaviour: Behaviour, value: Value): Value | PromiseLike<Value> => {
      switch (behaviour) {
        case 'answers':
          return value
        case 'throws':
          throw new Error('no')
        case 'throws undefined':
          // eslint-disable-next-line @typescript-eslint/only-throw-error -- a host may throw anything
          throw undefined
        case 'rejects':
          return Promise.reject(new Error('no'))
        case 'never':
          return new Promise<never>(() => undefined)
        case 'late':
          own += 1
          return new Promise((resolve) =>
            clock.setTimeout(() => {
              own -= 1
              resolve(value)
            }, LATE_MS),
          )
        case 'throwing then':
          return { get then(): never { throw new Error('no') } } // prettier-ignore
        case 'nonsense':
          return 'nonsense' as never
      }
    }
    const left = await leftMessage(clock.now())
    const manager = new AsyncTaskManager({
      clock,
      store: left,
      wasDelivered: () => answer(script.wasDelivered, false) as boolean,
      onError: () => answer(script.onError, undefined) as undefined,
    })
    const reminders = new AsyncTaskReminderService(manager)
    const got: Record<'ill' | 'well', string[]> = { ill: [], well: [] }
    const triggerOf = (owner: 'ill' | 'well', busy: Behaviour[], turns: Behaviour[]): AsyncTaskAutoTrigger =>
      new AsyncTaskAutoTrigger(
        ...([manager, reminders] as const),
        wrapBusy(() => answer(busy.shift() ?? 'answers', false)),
        (_text, { taskIds }) => {
          const behaviour = turns.shift() ?? 'answers'
          // What it does not say that it has not accepted, it has.
          if (behaviour === 'answers' || behaviour === 'nonsense' || behaviour === 'late') got[owner].push(...taskIds)
          return answer(behaviour, undefined)
        },
        { owner, deliveryTimeoutMs: TURN_MS },
      )
    const stops = [triggerOf('ill', [...script.busy], [...script.turns]), triggerOf('well', [], [])].map((each) =>
      each.subscribe(),
    )
    const complete = (id: string, owner: string): void => {
      manager.registerTask({ id, subagentName: 's', goalPrompt: 'g', owner })
      manager.completeTask(id, { final_message: id })
    }
    try {
      complete('a', 'ill')
      complete('b', 'well')
      await clock.advance(10)
      if (!got.well.includes('b')) throw new Error('A6: the other owner waits')
      // Each answer has a limit, and what follows is asked again.
      for (let minute = 0; minute < 15; minute += 1) await clock.advance(60_000)
      if (!got.ill.includes('a')) throw new Error('A6: the owner never gets its result')
      complete('c', 'ill')
      for (let minute = 0; minute < 10; minute += 1) await clock.advance(60_000)
      if (!got.ill.includes('c')) throw new Error('A6: the owner gets no later result')
    } finally {
      for (const stop of stops) stop()
      await manager.dispose()
    }
    if (clock.pending > own) throw new Error(`A9: ${clock.pending - own} timers are left`)
  })
}

/** A store with a message of which nobody knows whether it arrived. */
async function leftMessage(at: number) {
  const store = memoryStore()
  store.open()
  const row = {
    id: 'old',
    owner: 'old',
    status: 'completed',
    delivery: 'leased',
    attempt: 1,
    seq: 1,
    launchedAt: at,
  } as const
  const record = { ...row, completedAt: at, subagentName: 's', goalPrompt: 'g', output: {} }
  await store.write([
    { table: 'tasks', put: { ...row, completedAt: at, record } },
    { table: 'deliveries', put: { id: 'message', owner: 'old', at, state: 'sent', taskIds: ['old'] } },
  ])
  store.close()
  return store
}
