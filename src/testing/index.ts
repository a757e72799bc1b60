/**
 * `agent-tasks/testing`: the race kit, for tests of your own integration. It needs fast-check, and works with any test runner.
 * `agent-tasks/testing/ledger` records and checks delivery logs.
 */

// Races
export { exploreRaces } from './explore-races.js'
export type { RaceSummary } from './explore-races.js'
export { replayRace } from './replay-race.js'
export type { ReplaySummary } from './replay-race.js'
export { RaceError } from './race-error.js'
export type { Race, RaceGenerator, RaceOptions } from './race-options.js'

// Orders, for a property that does its own scheduling
export { RaceOrder, raceOrders } from './race-order.js'
export { createRaceScheduler } from './race-scheduler.js'
export type { RaceScheduler } from './race-scheduler.js'

// Time
export { createManualClock } from './manual-clock.js'
export type { ManualClock } from './manual-clock.js'

// Waiting without real time
export { runUntilEvent, runUntilSettled, runUntilState } from './run-until.js'

// A model of the manager, and commands that compare a manager with it
export { managerCommands } from './manager-commands.js'
export { compareManager, createManagerPair, managerCommand } from './manager-pair.js'
export type { ManagerCommand, ManagerPair } from './manager-pair.js'
export { managerModel } from './manager-model.js'

// Arbitraries
export { raceScripts, taskEvents, taskInputs, taskOutputs } from './arbitraries.js'

// Contracts: test cases for an engine, lane or store of your own
export { engineContract } from './engine-contract.js'
export type { EngineSubject } from './engine-contract.js'
export { laneContract } from './lane-contract.js'
export type { LaneSubject } from './lane-contract.js'
export { storeContract } from './store-contract.js'
export type { StoreSubject } from './store-contract.js'
export type { ContractCase } from './contract-cases.js'
