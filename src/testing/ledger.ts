/** `agent-tasks/testing/ledger`: records and checks delivery logs. It needs no test library, so it can be used in production. */
export { deliveryLogEntrySchema, parseDeliveryLog } from './delivery-log.js'
export type { DeliveryLogEntry } from './delivery-log.js'
export { checkDeliveryLog } from './delivery-verdict.js'
export type { DeliveryVerdict } from './delivery-accounts.js'
export { recordDeliveryLog } from './delivery-recorder.js'
export type { DeliveryRecorder } from './delivery-recorder.js'
