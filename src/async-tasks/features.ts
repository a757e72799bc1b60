/** The features of every manager, in the order of their hooks. */
import { abortLinks } from './abort-link.js'
import { deliveryStandings } from './delivery-standings.js'
import type { Feature, FeatureMaker } from './feature.js'
import { messaging } from './inbox.js'
import { listedIds } from './listed-ids.js'
import { questionWithdrawal } from './open-questions.js'
import { prunedTasks } from './pruned-tasks.js'
import { pushSubscribers } from './push-subscribers.js'
import type { TaskRegistry } from './registry.js'
import { runFiles } from './run-files.js'
import { runs } from './run-plan.js'
import { spentByOwner } from './spent-by-owner.js'
import { taskEvents } from './task-events.js'
import { taskWatchers } from './task-watchers.js'
import { wrappingUp } from './wrap-up.js'

/** Waits end first; then the questions of a task are withdrawn, before the host's handlers of its end run. */
export const features: readonly FeatureMaker<TaskRegistry, Feature>[] = [
  taskWatchers,
  questionWithdrawal,
  taskEvents,
  abortLinks,
  messaging,
  runFiles,
  runs,
  wrappingUp,
  spentByOwner,
  listedIds,
  prunedTasks,
  pushSubscribers,
  deliveryStandings,
]
