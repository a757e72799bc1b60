/**
 * One owner's deliveries, for as long as its auto-trigger is subscribed: when something is owed and the agent is idle,
 * one message goes out, and the chart looks again after each.
 *
 * D1  At most one delivery is in flight.
 * D2  While something is owed and someone is subscribed, a wake-up is due: a timer, an idle edge or an end of a delivery.
 * D3  After every end of a delivery, good, bad or expired, it looks again.
 * D4  A refused or expired delivery is retried with exponential back-off, which a success or an empty ledger resets.
 * D5  Once detached nothing new starts; a delivery in flight is still seen to its end.
 *
 * The chart has no clock and no host: guards on the host, the delivery and its report are provided.
 */
import {
  assign,
  cancel,
  enqueueActions,
  fromCallback,
  setup,
  type ActorRefFrom,
  type EventObject,
  type SnapshotFrom,
} from 'xstate'

/** All in ms. */
export interface DeliveryTiming {
  /** How long to wait for more to end, after each end; 0 is one tick. */
  readonly coalesceMs: number
  /** The longest such wait. */
  readonly maxWaitMs: number
  /** How often to ask a busy agent again; none for an agent that says when it is idle. */
  readonly pollMs?: number
  /** The back-off after the first refused delivery; each further one doubles it. */
  readonly retryInitialMs: number
  /** The longest back-off. */
  readonly retryMaxMs: number
  /** How long a delivery may take; no limit when absent. */
  readonly timeoutMs?: number
}

interface DeliveryContext {
  readonly timing: DeliveryTiming
  /** Deliveries that failed in a row. */
  readonly failures: number
}

/** What the provided delivery reports. */
export type DeliveryReport =
  | { readonly type: 'delivery.accepted' }
  | { readonly type: 'delivery.refused' }
  /** There was nothing to send; if something is owed all the same, that is a failure. */
  | { readonly type: 'delivery.emptied' }

/** What moves a delivery: reports, wake-ups, and who listens. */
export type DeliveryEvent =
  | DeliveryReport
  | { readonly type: 'delivery.expired' }
  /** Something became owed. */
  | { readonly type: 'delivery.requested' }
  /** Another delivery of the same owner ended. */
  | { readonly type: 'lease.ended' }
  | { readonly type: 'agent.idle' }
  | { readonly type: 'timing.set'; readonly timing: DeliveryTiming }
  | { readonly type: 'trigger.attach' }
  | { readonly type: 'trigger.detach' }
  | { readonly type: 'trigger.close' }

function mustProvide(name: string): never {
  throw new Error(`delivery: the host must provide ${name}`)
}

const EXPIRY = 'expiry'

/** The chart of one owner's deliveries. The actor `deliver`, two guards and `reportExpiry` must be provided. */
export const deliveryMachine = setup({
  types: {
    context: {} as DeliveryContext,
    events: {} as DeliveryEvent,
    input: {} as DeliveryTiming,
  },
  actors: {
    deliver: fromCallback<EventObject>(() => mustProvide('the actor deliver')),
  },
  delays: {
    coalesce: ({ context }) => context.timing.coalesceMs,
    maxWait: ({ context }) => context.timing.maxWaitMs,
    poll: ({ context }) => context.timing.pollMs ?? 0,
    expiry: ({ context }) => context.timing.timeoutMs ?? 0,
    backOff: ({ context: { timing, failures } }) =>
      Math.min(timing.retryMaxMs, timing.retryInitialMs * 2 ** Math.max(0, failures - 1)),
  },
  guards: {
    isNothingOwed: () => mustProvide('the guard isNothingOwed'),
    isAgentIdle: () => mustProvide('the guard isAgentIdle'),
    canPoll: ({ context }) => context.timing.pollMs !== undefined,
  },
  actions: {
    startExpiry: enqueueActions(({ context, enqueue }) => {
      if (context.timing.timeoutMs !== undefined) {
        enqueue.raise({ type: 'delivery.expired' }, { id: EXPIRY, delay: 'expiry' })
      }
    }),
    stopExpiry: cancel(EXPIRY),
    reportExpiry: () => mustProvide('the action reportExpiry'),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    forgetFailures: assign({ failures: 0 }),
    setTiming: assign({
      timing: ({ context, event }) => (event.type === 'timing.set' ? event.timing : context.timing),
    }),
  },
}).createMachine({
  id: 'delivery',
  description: "Brings what is owed to one owner's agent, a message at a time.",
  context: ({ input }) => ({ timing: input, failures: 0 }),
  initial: 'holding',
  on: {
    'trigger.close': { target: '.detached', description: 'The registry was disposed.' },
    'timing.set': { actions: 'setTiming', description: 'Other durations hold from the next wait on.' },
  },
  states: {
    dormant: {
      description: 'Nothing is owed.',
      entry: 'forgetFailures',
      on: {
        'delivery.requested': { target: 'holding', description: 'Something became owed.' },
        'trigger.detach': { target: 'detached', description: 'The last subscriber left.' },
      },
    },
    holding: {
      description: 'Something may be owed; it is not yet on its way.',
      initial: 'gathering',
      on: { 'trigger.detach': { target: 'detached', description: 'The last subscriber left: nothing is sent.' } },
      states: {
        gathering: {
          description: 'What ends together shares a message: each end restarts the wait, up to a longest one.',
          initial: 'quiet',
          after: { maxWait: { target: 'looking', description: 'The longest wait is over, whatever else ends.' } },
          states: {
            quiet: {
              description: 'Nothing has ended for a moment.',
              after: {
                coalesce: { target: '#delivery.holding.looking', description: 'Nothing more ended in the meantime.' },
              },
              on: {
                'delivery.requested': {
                  target: 'quiet',
                  reenter: true,
                  description: 'Something else became owed: it shares the message.',
                },
              },
            },
          },
        },
        looking: {
          description: 'Decides at once: nothing to say, nobody to say it to, or go.',
          always: [
            { guard: 'isNothingOwed', target: '#delivery.dormant', description: 'There is nothing to say.' },
            { guard: 'isAgentIdle', target: '#delivery.delivering', description: 'The agent can be told.' },
            { guard: 'canPoll', target: 'polling', description: 'The agent is busy and has to be asked again.' },
            { target: 'waiting', description: 'The agent is busy and says itself when it is idle.' },
          ],
        },
        polling: {
          description: 'The agent is busy, or another delivery of this owner is in flight; ask again in a while.',
          after: { poll: { target: 'looking', description: 'It is time to ask again.' } },
          on: {
            'agent.idle': { target: 'gathering', description: 'The agent says that it has become idle.' },
            'lease.ended': { target: 'gathering', description: 'Another delivery of this owner has ended.' },
          },
        },
        waiting: {
          description: 'As polling, but the agent says itself when it is idle.',
          on: {
            'agent.idle': { target: 'gathering', description: 'The agent has become idle.' },
            'lease.ended': { target: 'gathering', description: 'Another delivery of this owner has ended.' },
          },
        },
      },
    },
    delivering: {
      description: 'One message is in flight.',
      entry: 'startExpiry',
      exit: 'stopExpiry',
      invoke: { id: 'deliver', src: 'deliver' },
      initial: 'attended',
      states: {
        attended: {
          description: 'Someone is subscribed: its outcome decides what comes next.',
          on: {
            'delivery.accepted': {
              target: '#delivery.holding',
              actions: 'forgetFailures',
              description: 'The agent took the message; something may have ended meanwhile.',
            },
            'delivery.emptied': [
              {
                guard: 'isNothingOwed',
                target: '#delivery.dormant',
                description: 'Someone else had told the agent by then.',
              },
              {
                target: '#delivery.backingOff',
                actions: 'countFailure',
                description: 'Something is owed, and there was no message all the same: a failure.',
              },
            ],
            'delivery.refused': {
              target: '#delivery.backingOff',
              actions: 'countFailure',
              description: 'The agent did not take the message: what it carried is owed again.',
            },
            'delivery.expired': {
              target: '#delivery.backingOff',
              actions: ['countFailure', 'reportExpiry'],
              description: 'The agent took too long: the message is given up, and what it carried is owed again.',
            },
            'trigger.detach': { target: 'unattended', description: 'The last subscriber left.' },
          },
        },
        unattended: {
          description: 'Nobody is subscribed any more; only the outcome is awaited.',
          on: {
            'delivery.accepted': { target: '#delivery.detached', description: 'The message was taken.' },
            'delivery.emptied': { target: '#delivery.detached', description: 'There was nothing to send.' },
            'delivery.refused': { target: '#delivery.detached', description: 'It was not taken, and is not retried.' },
            'delivery.expired': { target: '#delivery.detached', description: 'It took too long, and is given up.' },
            'trigger.attach': { target: 'attended', description: 'Someone subscribed again.' },
          },
        },
      },
    },
    backingOff: {
      description: 'The last delivery failed. What ends now joins the retry; an idle edge fires it.',
      after: { backOff: { target: 'holding', description: 'It is time for the retry.' } },
      on: {
        'agent.idle': { target: 'holding', description: 'The agent has become idle: the retry comes at once.' },
        'trigger.detach': { target: 'detached', description: 'The last subscriber left: no retry.' },
      },
    },
    detached: {
      type: 'final',
      description: 'The subscription is over.',
    },
  },
})

/** The type of `deliveryMachine`. */
export type DeliveryMachine = typeof deliveryMachine
/** An actor that runs `deliveryMachine`. */
export type DeliveryRef = ActorRefFrom<DeliveryMachine>
/** A snapshot of such an actor. */
export type DeliverySnapshot = SnapshotFrom<DeliveryMachine>
