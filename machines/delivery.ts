/**
 * The deliveries to one owner while its auto-trigger is subscribed. When results are owed and the agent is idle, one message is sent. The machine
 * checks again after each message.
 *
 * D1  At most one delivery is in flight.
 * D2  While something is owed and the trigger is subscribed, the machine waits for an event that certainly comes: a timer, an idle agent, or the end
 *     of a delivery.
 * D3  After a delivery ends in any way (accepted, refused or expired), the machine checks again.
 * D4  A refused or expired delivery is repeated after a back-off, which doubles with each failure. The back-off starts anew after a success, and when
 *     nothing is owed any longer.
 * D5  After the trigger is detached no delivery starts. A delivery in flight still ends.
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

/** The durations of the deliveries of a trigger, in ms. */
export interface DeliveryTiming {
  /** How long to wait for further tasks after each end of a task; 0 waits for the next timer tick. */
  readonly coalesceMs: number
  /** The maximum total time to wait for further tasks. */
  readonly maxWaitMs: number
  /** How often a busy agent is asked whether it is idle. Absent if the host reports that with an event. */
  readonly pollMs?: number
  /** The back-off after the first failed delivery. It doubles with each further failure. */
  readonly retryInitialMs: number
  /** The maximum of the back-off. */
  readonly retryMaxMs: number
  /** How long a delivery may take. Absent if there is no limit. */
  readonly timeoutMs?: number
}

interface DeliveryContext extends DeliveryInput {
  /** How many deliveries have failed since the last success. */
  readonly failures: number
}

/** The outcome of a delivery, as the host reports it. */
export type DeliveryReport =
  | { readonly type: 'delivery.accepted' }
  | { readonly type: 'delivery.refused' }
  /** There was nothing to send. This counts as a failure if something is owed. */
  | { readonly type: 'delivery.emptied' }

/** The events of a delivery: reports, wake-ups, and subscriptions. */
export type DeliveryEvent =
  | DeliveryReport
  | { readonly type: 'delivery.expired' }
  /** The turn of the message waits for a person. Until it is resumed, it has no time limit. */
  | { readonly type: 'delivery.suspended' }
  | { readonly type: 'delivery.resumed' }
  /** A result or question has become owed. */
  | { readonly type: 'delivery.requested' }
  /** Another delivery to the same owner has ended. */
  | { readonly type: 'lease.ended' }
  | { readonly type: 'agent.idle' }
  /** The agent has answered a pending question that it is idle. It counts as idle while this event is handled. */
  | { readonly type: 'agent.answered' }
  | { readonly type: 'timing.set'; readonly timing: DeliveryTiming }
  | { readonly type: 'trigger.attach' }
  | { readonly type: 'trigger.detach' }
  | { readonly type: 'trigger.close' }

/** The effects of an owner's deliveries, provided by the host. They are called inside transitions, so they must not throw. */
export interface DeliveryHost {
  /**
   * Starts a delivery, which must report its outcome once.
   * @returns a function that abandons the delivery. It has no effect once the outcome was reported
   */
  deliver(report: (outcome: DeliveryReport) => void): () => void
  /** Whether nothing is owed to the owner. */
  isNothingOwed(): boolean
  /** Whether the owner's agent accepts a message now. */
  isAgentIdle(): boolean
  /** Reports that a delivery took too long. */
  reportExpiry(): void
}

/** The input of a delivery actor. */
export interface DeliveryInput {
  /** The durations, until `timing.set` replaces them. */
  readonly timing: DeliveryTiming
  /** The effects of the deliveries. */
  readonly host: DeliveryHost
}

const EXPIRY = 'expiry'

/** The state machine that delivers the owed results of one owner to its agent, one message at a time. The `DeliveryHost` of its input does the work. */
export const deliveryMachine = setup({
  types: {
    context: {} as DeliveryContext,
    events: {} as DeliveryEvent,
    input: {} as DeliveryInput,
  },
  actors: {
    deliver: fromCallback<EventObject, DeliveryHost>(({ input, sendBack }) => input.deliver(sendBack)),
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
    isNothingOwed: ({ context }) => context.host.isNothingOwed(),
    isAgentIdle: ({ context }) => context.host.isAgentIdle(),
    canPoll: ({ context }) => context.timing.pollMs !== undefined,
  },
  actions: {
    startExpiry: enqueueActions(({ context, enqueue }) => {
      if (context.timing.timeoutMs !== undefined) {
        enqueue.raise({ type: 'delivery.expired' }, { id: EXPIRY, delay: 'expiry' })
      }
    }),
    stopExpiry: cancel(EXPIRY),
    reportExpiry: ({ context }) => context.host.reportExpiry(),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    resetFailures: assign({ failures: 0 }),
    setTiming: assign({
      timing: ({ context, event }) => (event.type === 'timing.set' ? event.timing : context.timing),
    }),
  },
}).createMachine({
  id: 'delivery',
  description: "Delivers what is owed to one owner's agent, one message at a time.",
  context: ({ input }) => ({ ...input, failures: 0 }),
  initial: 'holding',
  on: {
    'trigger.close': { target: '.detached', description: 'The registry was disposed.' },
    'timing.set': { actions: 'setTiming', description: 'The new durations apply from the next wait.' },
  },
  states: {
    dormant: {
      description: 'Nothing is owed.',
      entry: 'resetFailures',
      on: {
        'delivery.requested': { target: 'holding', description: 'Something became owed.' },
        'trigger.detach': { target: 'detached', description: 'The last subscriber left.' },
      },
    },
    holding: {
      description: 'Something may be owed, and no message is in flight.',
      initial: 'gathering',
      on: { 'trigger.detach': { target: 'detached', description: 'The last subscriber left. No message is sent.' } },
      states: {
        gathering: {
          description: 'Tasks that end together share a message: each end restarts the wait, up to a maximum.',
          initial: 'quiet',
          after: { maxWait: { target: 'looking', description: 'The maximum wait has passed.' } },
          states: {
            quiet: {
              description: 'No task has ended for a moment.',
              after: {
                coalesce: { target: '#delivery.holding.looking', description: 'No further task has ended.' },
              },
              on: {
                'delivery.requested': {
                  target: 'quiet',
                  reenter: true,
                  description: 'Another result is owed and will share the message.',
                },
              },
            },
          },
        },
        looking: {
          description: 'Decides whether to deliver, to wait for the agent, or to rest.',
          always: [
            { guard: 'isNothingOwed', target: '#delivery.dormant', description: 'Nothing is owed.' },
            { guard: 'isAgentIdle', target: '#delivery.delivering', description: 'The agent is idle.' },
            { guard: 'canPoll', target: 'polling', description: 'The agent is busy and has to be polled.' },
            { target: 'waiting', description: 'The agent is busy and emits an event when it is idle.' },
          ],
        },
        polling: {
          description: 'The agent is busy, or another delivery to this owner is in flight. The agent is polled later.',
          after: { poll: { target: 'looking', description: 'The polling interval has passed.' } },
          on: {
            'delivery.requested': {
              target: 'gathering',
              description: 'Another result is owed. The agent is polled at once.',
            },
            'agent.idle': { target: 'gathering', description: 'The agent has become idle.' },
            'agent.answered': { target: 'looking', description: 'The agent has reported that it is idle.' },
            'lease.ended': { target: 'gathering', description: 'Another delivery to this owner has ended.' },
          },
        },
        waiting: {
          description: 'Like polling, but the agent emits an event when it is idle.',
          on: {
            'agent.idle': { target: 'gathering', description: 'The agent has become idle.' },
            'lease.ended': { target: 'gathering', description: 'Another delivery to this owner has ended.' },
          },
        },
      },
    },
    delivering: {
      description: 'One message is in flight.',
      entry: 'startExpiry',
      exit: 'stopExpiry',
      invoke: { id: 'deliver', src: 'deliver', input: ({ context }) => context.host },
      initial: 'attended',
      on: {
        'delivery.suspended': {
          actions: 'stopExpiry',
          description: 'Its turn waits for a person, without a time limit.',
        },
        'delivery.resumed': { actions: 'startExpiry', description: 'Its turn goes on. The time limit starts anew.' },
      },
      states: {
        attended: {
          description: 'The trigger is subscribed. The outcome decides the next state.',
          on: {
            'delivery.accepted': {
              target: '#delivery.holding',
              actions: 'resetFailures',
              description: 'The agent accepted the message. Another task may have ended meanwhile.',
            },
            'delivery.emptied': [
              {
                guard: 'isNothingOwed',
                target: '#delivery.dormant',
                description: 'Another message has delivered the results.',
              },
              {
                target: '#delivery.backingOff',
                actions: 'countFailure',
                description: 'Something is owed, but there was no message. This counts as a failure.',
              },
            ],
            'delivery.refused': {
              target: '#delivery.backingOff',
              actions: 'countFailure',
              description: 'The agent refused the message. Its results are owed again.',
            },
            'delivery.expired': {
              target: '#delivery.backingOff',
              actions: ['countFailure', 'reportExpiry'],
              description: 'The agent took too long. The delivery is abandoned, and its results are owed again.',
            },
            'trigger.detach': { target: 'unattended', description: 'The last subscriber left.' },
          },
        },
        unattended: {
          description: 'The trigger has no subscriber. Only the outcome is awaited.',
          on: {
            'delivery.accepted': { target: '#delivery.detached', description: 'The message was accepted.' },
            'delivery.emptied': { target: '#delivery.detached', description: 'There was nothing to send.' },
            'delivery.refused': {
              target: '#delivery.detached',
              description: 'The message was refused and is not retried.',
            },
            'delivery.expired': {
              target: '#delivery.detached',
              description: 'The delivery took too long and is abandoned.',
            },
            'trigger.attach': { target: 'attended', description: 'The trigger was subscribed again.' },
          },
        },
      },
    },
    backingOff: {
      description:
        'The last delivery failed. Results that become owed now join the retry. It starts early if the agent becomes idle.',
      after: { backOff: { target: 'holding', description: 'The back-off has passed.' } },
      on: {
        'agent.idle': { target: 'holding', description: 'The agent has become idle. The retry starts at once.' },
        'trigger.detach': { target: 'detached', description: 'The last subscriber left. There is no retry.' },
      },
    },
    detached: {
      type: 'final',
      description: 'The subscription has ended.',
    },
  },
})

/** The type of `deliveryMachine`. */
export type DeliveryMachine = typeof deliveryMachine
/** An actor that runs `deliveryMachine`. */
export type DeliveryRef = ActorRefFrom<DeliveryMachine>
/** A snapshot of such an actor. */
export type DeliverySnapshot = SnapshotFrom<DeliveryMachine>
