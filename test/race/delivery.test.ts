/** Races of delivery (A5, A6, A9). Counterexamples that were found are named tests. */
import { describe, it } from 'vitest'
import { createRaceScheduler, RaceOrder } from '../../src/testing/index.js'
import { checkProperty } from '../support/property.js'
import { createSubject } from '../support/subject.js'
import { delivery } from './delivery.property.js'
import { runRace } from './race.js'
import type { RaceScript, TriggerScript } from './script.js'

describe('any race', () => {
  it('A5, A6, A9, H1: in any race every result arrives exactly once, and nothing happens after the end', async () => {
    await checkProperty(delivery.name, delivery.create(createSubject()))
  })
})

describe('races that once failed', () => {
  it('A6: the first value of a new Observable is an idle edge, even if it is the last value of the old one', async () => {
    await race({
      triggers: [{ kind: 'replaying' }],
      steps: [
        { do: 'update', trigger: 0, kind: 'live', isBusy: true },
        { do: 'complete', nth: 0 },
        { do: 'advance', ms: 0 },
        { do: 'idle', host: 0 },
      ],
    })
  })

  it('A6: an Observable that has completed keeps its last value for a later subscription', async () => {
    await race({
      triggers: [{ kind: 'replaying' }],
      steps: [
        { do: 'end', host: 0 },
        { do: 'resubscribe', trigger: 0 },
        { do: 'complete', nth: 0 },
      ],
    })
  })

  it('A6: a host that unsubscribes and subscribes inside isAgentBusy still gets its results', async () => {
    await race({
      triggers: [{ isBusy: true }],
      steps: [
        { do: 'complete', nth: 0 },
        { do: 'advance', ms: 0 },
      ],
      hooks: { busy: [{ do: 'resubscribe', trigger: 0 }] },
    })
  })

  it('A6: a function that replaces an Observable during a delivery is called again after it', async () => {
    await race({
      triggers: [{ kind: 'replaying' }],
      steps: [
        { do: 'complete', nth: 0 },
        { do: 'advance', ms: 0 },
      ],
      turns: [
        {
          atOnce: [{ do: 'update away', trigger: 0, kind: 'asked', isBusy: true }],
          meanwhile: [],
          outcome: 'refuse',
        },
      ],
    })
  })

  it('A9: a host that unsubscribes inside isAgentBusy gets no message', async () => {
    await race({
      steps: [
        { do: 'complete', nth: 0 },
        { do: 'advance', ms: 0 },
      ],
      hooks: { busy: [{ do: 'unsubscribe', trigger: 0 }] },
    })
  })

  it('A9: a delivery in flight of an unsubscribed trigger leaves no timer after dispose', async () => {
    await race({
      triggers: [{ timeoutMs: 3000 }],
      steps: [
        { do: 'complete', nth: 0 },
        { do: 'advance', ms: 0 },
        { do: 'unsubscribe', trigger: 0 },
        { do: 'dispose' },
      ],
      turns: [{ atOnce: [], meanwhile: [], outcome: 'hang' }],
    })
  })

  it('A5: a result that a wait returned is not owed again when a message that carries it is refused', async () => {
    await race({
      steps: [
        { do: 'complete', nth: 0 },
        { do: 'remind', owner: 0 },
        { do: 'wait', mode: 'all', nth: 0, ms: undefined },
        { do: 'refuse', nth: 0 },
      ],
    })
  })
})

interface Example extends Partial<Omit<RaceScript, 'triggers' | 'hooks' | 'actors'>> {
  readonly triggers?: readonly Partial<TriggerScript>[]
  readonly hooks?: Partial<RaceScript['hooks']>
  readonly steps: RaceScript['actors'][number]
}

/** Runs a race, by default with one actor, one task, and an idle agent with a function `isAgentBusy`. */
async function race({ triggers = [{}], hooks, steps, ...rest }: Example): Promise<void> {
  const script: RaceScript = {
    notifyCancelled: false,
    isLong: false,
    tasks: [0],
    turns: [],
    ...rest,
    hooks: { busy: [], error: [], abort: [], handler: [], ...hooks },
    actors: [steps],
    triggers: triggers.map((trigger) => ({
      owner: 0,
      kind: 'asked',
      isBusy: false,
      isSubscribed: true,
      coalesceMs: 0,
      timeoutMs: undefined,
      ...trigger,
    })),
  }
  await runRace(createSubject(), script, createRaceScheduler(new RaceOrder(0)))
}
