/** `agent-tasks/machines`: the state machines. Their types are those of XState, such as `SnapshotFrom<typeof asyncTaskMachine>`. */
export { asyncTaskMachine } from './async-task.js'
export { deliveryMachine } from './delivery.js'
export { commandTaskMachine } from './command-task.js'
export { laneMachine } from './lane.js'
export { instanceMachine } from './instance.js'
