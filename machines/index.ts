/** The machines, each of which opens in Stately as it stands, and the types that they share. */
export { asyncTaskMachine } from './async-task.js'
export type {
  AsyncTaskContext,
  AsyncTaskEvent,
  AsyncTaskHost,
  AsyncTaskInput,
  AsyncTaskMachine,
  AsyncTaskRef,
  AsyncTaskSnapshot,
} from './async-task.js'
export type { RegistryPhase, RegistrySnapshot } from './registry-snapshot.js'
export { deliveryMachine } from './delivery.js'
export type {
  DeliveryEvent,
  DeliveryHost,
  DeliveryInput,
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
  CommandTaskInput,
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
