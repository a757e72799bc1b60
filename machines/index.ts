/** The charts, each of which opens in Stately as it stands, and the types they share. */
export { asyncTaskMachine, timeoutMessage } from './async-task.js'
export type {
  AsyncTaskActorInput,
  AsyncTaskContext,
  AsyncTaskEvent,
  AsyncTaskMachine,
  AsyncTaskRef,
  AsyncTaskSnapshot,
} from './async-task.js'
export { taskRegistryMachine } from './task-registry.js'
export type {
  TaskRegister,
  TaskRegistryEvent,
  TaskRegistryInput,
  TaskRegistryMachine,
  TaskRegistryRef,
  TaskRegistrySnapshot,
} from './task-registry.js'
export type { Lease, LeaseRequest, TaskEntry } from './task-table.js'
export { deliveryMachine } from './delivery.js'
export type {
  DeliveryEvent,
  DeliveryMachine,
  DeliveryRef,
  DeliveryReport,
  DeliverySnapshot,
  DeliveryTiming,
} from './delivery.js'
export { commandTaskMachine } from './command-task.js'
export type {
  CommandFailure,
  CommandTaskEnd,
  CommandTaskEvent,
  CommandTaskMachine,
  CommandTaskRef,
  CommandTaskSnapshot,
} from './command-task.js'
export { laneMachine } from './lane.js'
export type { LaneEvent, LaneHost, LaneInput, LaneMachine, LaneRef, LaneSnapshot } from './lane.js'
export { instanceMachine } from './instance.js'
export type {
  InstanceEvent,
  InstanceHost,
  InstanceInput,
  InstanceMachine,
  InstanceRef,
  InstanceSnapshot,
  InstanceTiming,
} from './instance.js'
export type * from './records.js'
