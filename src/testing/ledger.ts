/** The part of the kit that production may use: it records and judges deliveries, and needs no test library. */
export { deliveryLogEntrySchema, parseDeliveryLog } from './delivery-log.js'
export type { DeliveryLogEntry } from './delivery-log.js'
export { checkDeliveryLedger } from './delivery-verdict.js'
export type { DeliveryCheckOptions, DeliveryProblem, DeliveryVerdict } from './delivery-verdict.js'
export { recordDeliveryLedger } from './delivery-recorder.js'
export type { DeliveryRecorder, RecordedTasks, RecorderOptions } from './delivery-recorder.js'
