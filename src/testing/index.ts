/** The race kit: what tests of one's own integration need. It needs fast-check, and no particular test runner. */

// Races
export { exploreRaces, replayRace } from './explore-races.js'
export type { RaceSummary, ReplayOptions, ReplaySummary } from './explore-races.js'
export { RaceError } from './race-error.js'
export type { RaceFindings } from './race-error.js'
export type {
  Race,
  RaceActor,
  RaceActors,
  RaceCheck,
  RaceGenerator,
  RaceOptions,
  RaceStep,
  RaceStepFunction,
} from './race-options.js'
export type { RaceEvent, RaceFailure, RaceRun } from './race-run.js'
export type { RaceClock } from './race-clock.js'

// Orders, for a property that schedules by itself
export { raceOrders } from './race-order.js'
export type { Chooser, RaceOrder, ShrinkingFrom } from './race-order.js'
export { createRaceScheduler } from './race-scheduler.js'
export type { RaceScheduler, ScheduledItem } from './race-scheduler.js'

// Time
export { createManualClock } from './manual-clock.js'
export type { ManualClock } from './manual-clock.js'

// Logs of deliveries; `agent-tasks/testing/ledger` has these alone, for production
export { checkDeliveryLedger, deliveryLogEntrySchema, parseDeliveryLog, recordDeliveryLedger } from './ledger.js'
export type {
  DeliveryCheckOptions,
  DeliveryLogEntry,
  DeliveryProblem,
  DeliveryRecorder,
  DeliveryVerdict,
  RecordedTasks,
  RecorderOptions,
} from './ledger.js'

// Waiting without real timers
export { runUntilEvent, runUntilSettled, runUntilState } from './run-until.js'
export type { EventOf, RunUntilOptions } from './run-until.js'

// A model of the manager, and commands that hold a manager against it
export { compareManager, createManagerPair, managerCommand, managerCommands } from './manager-commands.js'
export type { ManagerCommand, ManagerCommandOptions, ManagerModel, ManagerSystem } from './manager-commands.js'
export * as managerModel from './task-model.js'

// What to draw
export { raceScripts, taskEvents, taskInputs, taskOutputs } from './arbitraries.js'
export type { RaceScriptOptions, TaskEvent, TaskInputOptions } from './arbitraries.js'
