/** The types of `agent-tasks/testing/ledger`: compiled by `npm run types`, never run. */
import { expectTypeOf } from 'vitest'
import { AsyncTaskManager, type TerminalStatus } from 'agent-tasks'
import {
  checkDeliveryLog,
  parseDeliveryLog,
  recordDeliveryLog,
  type DeliveryLogEntry,
  type DeliveryVerdict,
} from 'agent-tasks/testing/ledger'

declare const entry: DeliveryLogEntry

export function anEntryIsNarrowedByItsType(): void {
  if (entry.type === 'settled') expectTypeOf(entry.status).toEqualTypeOf<TerminalStatus>()
  if (entry.type === 'leased') expectTypeOf(entry.taskIds).toEqualTypeOf<readonly string[]>()
  // @ts-expect-error a registration carries no list
  if (entry.type === 'registered') expectTypeOf(entry.taskIds)
}

export function aLogIsReadAndJudged(): void {
  const log = parseDeliveryLog('')
  expectTypeOf(log).toEqualTypeOf<DeliveryLogEntry[]>()
  expectTypeOf(checkDeliveryLog(log)).toEqualTypeOf<DeliveryVerdict>()
  recordDeliveryLog(new AsyncTaskManager())
  // @ts-expect-error without a log there is nothing to judge
  checkDeliveryLog()
}
