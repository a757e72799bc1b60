/** The entry `agent-tasks/machines`: the state machines. For types, use those of XState, such as `SnapshotFrom<typeof asyncTaskMachine>`. */
export { asyncTaskMachine } from './async-task.js'
export { deliveryMachine } from './delivery.js'
export { commandTaskMachine } from './command-task.js'
export { laneMachine } from './lane.js'
export { instanceMachine } from './instance.js'
