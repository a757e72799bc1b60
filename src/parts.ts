/** `agent-tasks/parts`: the parts of a host, for programs that wire one themselves. `createAgentTasks` has all of them. */

// One turn at a time
export { createTurns } from './host/turn-queue.js'
export type { AgentTurns, Respond } from './host/turn-queue.js'

// What a message has leased
export type { LeasedReminder } from './features/delivery/reminder-service.js'
export type { TaskLease } from './features/delivery/leases.js'

// Commands for people
export { createTaskCommands } from './host/commands/task-commands.js'

// What starts runs
export { createInProcessEngine } from './engine/in-process.js'
export type { Engine } from './engine/engine.js'
export { ownerOfRun } from '../machines/run-owner.js'

// Settings
export { parseSetting, settingDefinitions } from './async-tasks/settings.js'
