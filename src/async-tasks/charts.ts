/**
 * The charts that registries and their triggers run. A chart that is given its implementations is read anew, which takes longer than the
 * lives of ten tasks; so it is given them once, and an action finds whom it acts for: by the system of its actor, or by what is in its
 * context.
 */
import { fromCallback } from 'xstate'
import { asyncTaskMachine, type AsyncTaskMachine } from '../../machines/async-task.js'
import {
  deliveryMachine,
  type DeliveryEvent,
  type DeliveryMachine,
  type DeliveryRef,
  type DeliveryTiming,
} from '../../machines/delivery.js'
import type { TaskQuestion } from '../../machines/records.js'
import { taskRegistryMachine, type TaskRegistryMachine } from '../../machines/task-registry.js'
import { runDirectly } from '../engine/direct-chart.js'

/** The charts that the host may bring. */
export interface RegistryCharts {
  readonly registry?: TaskRegistryMachine
  readonly task?: AsyncTaskMachine
}

/** What a registry does for its tasks, inside their transitions. */
interface TaskHost {
  requestAbort(taskId: string, timeoutMs: number): void
  noteQuestions(taskId: string, questions: readonly TaskQuestion[]): void
}

/** By the system of the registry's actor. */
const hosts = new WeakMap<object, TaskHost>()
const hosted = new WeakMap<AsyncTaskMachine, AsyncTaskMachine>()

/** Says who acts for the tasks of a registry. */
export function noteHost(system: object, host: TaskHost): void {
  hosts.set(system, host)
}

/**
 * The charts for a registry and its tasks.
 * @param given those that the host brings; they may use all of XState, and run as XState runs them
 * @param isInspected an inspector is to see all that XState shows
 */
export function chartsFor(given: RegistryCharts, isInspected: boolean): Required<RegistryCharts> {
  const { registry = taskRegistryMachine, task = asyncTaskMachine } = given
  let own = hosted.get(task)
  if (own === undefined) {
    own = task.provide({
      actions: {
        requestAbort: ({ context, system }) =>
          hosts.get(system as object)?.requestAbort(context.id, context.timeoutMs ?? 0),
        noteQuestions: ({ context, system }) =>
          hosts.get(system as object)?.noteQuestions(context.id, context.questions),
      },
    })
    hosted.set(task, own)
  }
  return {
    registry: runDirectly(registry, !isInspected && given.registry === undefined),
    task: runDirectly(own, !isInspected && given.task === undefined),
  }
}

/** What an auto-trigger does for the chart of its deliveries. */
export interface Carrier {
  /** Starts a delivery. Returns what ends it early. */
  deliver(sendBack: (event: DeliveryEvent) => void): () => void
  isNothingOwed(): boolean
  isAgentIdle(): boolean
  reportExpiry(): void
}

/** By the durations that a delivery was given: each trigger makes its own. */
const carriers = new WeakMap<DeliveryTiming, Carrier>()
let shared: DeliveryMachine | undefined

/** Says whose durations these are. */
export function noteCarrier(timing: DeliveryTiming, carrier: Carrier): void {
  carriers.set(timing, carrier)
}

/** The chart of a trigger's deliveries. @param given one that the host brings; it may keep its durations as it likes */
export function deliveryChartFor(given: DeliveryMachine | undefined, carrier: Carrier): DeliveryMachine {
  if (given !== undefined) return provideDelivery(given, () => carrier)
  shared ??= provideDelivery(deliveryMachine, carrierOf)
  return shared
}

function carrierOf(timing: DeliveryTiming): Carrier {
  const carrier = carriers.get(timing)
  if (carrier === undefined) throw new Error("delivery: these durations are no trigger's")
  return carrier
}

function provideDelivery(machine: DeliveryMachine, find: (timing: DeliveryTiming) => Carrier): DeliveryMachine {
  return machine.provide({
    actors: {
      // What is invoked knows whose it is only by its parent: the chart is text, and gives it no input.
      deliver: fromCallback(({ self, sendBack }) => {
        const { context } = (self._parent as DeliveryRef).getSnapshot()
        return find(context.timing).deliver(sendBack)
      }),
    },
    guards: {
      isNothingOwed: ({ context }) => find(context.timing).isNothingOwed(),
      isAgentIdle: ({ context }) => find(context.timing).isAgentIdle(),
    },
    actions: { reportExpiry: ({ context }) => find(context.timing).reportExpiry() },
  })
}
