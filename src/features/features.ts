/** The features of every manager, in the order of their hooks. */
import { abortLinks } from './families/abort-link.js'
import { dependencies } from './dependencies/dependencies.js'
import { deliveryStates } from './delivery/delivery-states.js'
import type { Feature, FeatureMaker } from '../async-tasks/feature.js'
import type { ManagerSettings } from '../async-tasks/manager-options.js'
import { messaging } from './questions/inbox.js'
import { runWaits } from './named-slots/run-waits.js'
import { steps } from './steps/steps.js'
import { storedRates } from './named-slots/stored-rates.js'
import { hookDeliveries } from './hooks/hook-deliveries.js'
import { keptTurns } from './kept-turns/kept-turns.js'
import { turnLaunches } from './kept-turns/turn-launches.js'
import { idleLimits } from './idle-limits/idle-limits.js'
import { listedIds } from './task-ids/listed-ids.js'
import { misnamedFields } from '../async-tasks/misnamed-fields.js'
import { monitors } from './monitors/monitors.js'
import { questionWithdrawal } from './questions/open-questions.js'
import { notes } from './notes/notes.js'
import { pendingLaunches } from '../async-tasks/pending-launches.js'
import { prunedTasks } from './history/pruned-tasks.js'
import { pushSubscribers } from './delivery/push-subscribers.js'
import { taskHistory } from './history/past-tasks.js'
import { pausing } from './pausing/pausing.js'
import type { TaskRegistry } from '../async-tasks/registry.js'
import { schedules } from './schedules/schedules.js'
import { outputFiles } from './output-files/output-files.js'
import { runFiles } from './output/run-files.js'
import { runs } from '../async-tasks/run-plan.js'
import { spentByOwner } from './limits/spent-by-owner.js'
import { taskEvents } from '../async-tasks/task-events.js'
import { taskWatchers } from '../async-tasks/task-watchers.js'
import { stopping } from './stopping/stopping.js'
import { wrappingUp } from './limits/wrap-up.js'

type Features = readonly FeatureMaker<TaskRegistry, Feature>[]

/** Waits for a task end first, and its questions are withdrawn before handlers of the host run. */
const beforeHandlers: Features = [taskWatchers, questionWithdrawal]

const afterHandlers: Features = [
  abortLinks,
  messaging,
  runFiles,
  outputFiles,
  // A task that waits for other tasks names them, whatever else holds it: the first reason counts.
  dependencies,
  notes,
  pausing,
  schedules,
  runWaits,
  storedRates,
  steps,
  runs,
  stopping,
  wrappingUp,
  idleLimits,
  misnamedFields,
  spentByOwner,
  listedIds,
  prunedTasks,
  taskHistory,
  pushSubscribers,
  pendingLaunches,
  deliveryStates,
  monitors,
  keptTurns,
  turnLaunches,
  hookDeliveries,
]

export const features: Features = [...beforeHandlers, taskEvents, ...afterHandlers]

/**
 * Passes options of the manager to their features, before the tasks of the store are restored.
 * @throws INVALID_INPUT if a feature cannot use its option
 */
export function setFeatureOptions(registry: TaskRegistry, options: ManagerSettings): void {
  registry.use(monitors).setLimits(options.monitors)
  if (options.outputFiles !== undefined) registry.use(outputFiles).connect(options.outputFiles)
}
