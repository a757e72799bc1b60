/** `agent-tasks/testing`: the race kit, for tests of your own integration. It needs fast-check, and works with any test runner. */

// Races
export { exploreRaces } from './explore-races.js'
export type { RaceSummary } from './explore-races.js'
export { replayRace } from './replay-race.js'
export type { ReplayOptions, ReplaySummary } from './replay-race.js'
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
export type { RaceEvent, RaceFailure, RaceReport, RaceRun } from './race-run.js'
export type { RaceClock } from './race-clock.js'

// Orders, for a property that does its own scheduling
export { RaceOrder, raceOrders } from './race-order.js'
export { createRaceScheduler } from './race-scheduler.js'
export type { RaceScheduler, ScheduledItem } from './race-scheduler.js'

// Time
export { createManualClock } from './manual-clock.js'
export type { ManualClock } from './manual-clock.js'

// Waiting without real time
export { runUntilEvent, runUntilSettled, runUntilState } from './run-until.js'
export type { EventOf, RunUntilOptions } from './run-until.js'

// Delivery logs; `agent-tasks/testing/ledger` exports these alone, for production
export { checkDeliveryLog, deliveryLogEntrySchema, parseDeliveryLog, recordDeliveryLog } from './ledger.js'
export type {
  DeliveryCheckOptions,
  DeliveryLogEntry,
  DeliveryProblem,
  DeliveryRecorder,
  DeliveryRecorderOptions,
  DeliverySource,
  DeliveryVerdict,
} from './ledger.js'

// A model of the manager, and commands that compare a manager with it
export { managerCommands } from './manager-commands.js'
export { compareManager, createManagerPair, managerCommand } from './manager-pair.js'
export type { ManagerCommand, ManagerModel, ManagerPairOptions, ManagerSystem } from './manager-pair.js'
export * as managerModel from './task-model.js'

// Arbitraries
export { raceScripts, taskEvents, taskInputs, taskOutputs } from './arbitraries.js'
export type { RaceScriptOptions, TaskEvent, TaskInputOptions } from './arbitraries.js'

// What runs tasks
export { engineContract } from './engine-contract.js'
export type { EngineCase, EngineSubject } from './engine-contract.js'
export { laneContract } from './lane-contract.js'
export type { LaneCall, LaneEnd, LaneInstance, LaneSubject } from './lane-contract.js'
export type { ContractCase } from './contract-cases.js'

// Stores
export { storeContract } from './store-contract.js'
export type { StoreCase, StoreSubject } from './store-contract.js'
