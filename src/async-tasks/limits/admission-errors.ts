/** The errors of refused launches and registrations. */
import type { TaskAdmission } from '../../../machines/records.js'
import type { AdmissionRefusal } from '../../../machines/registry-events.js'
import { PausedError, ReservationError, TaskIdInUseError, TaskLimitError, type AgentTasksError } from '../../errors.js'
import { familyError } from '../families/families.js'
import type { TaskRegistry } from '../registry.js'

export function admissionError(
  { pools, families }: TaskRegistry,
  refusal: AdmissionRefusal,
  { id, owner, pool, depth, ticket, parentId = '', isForeground }: TaskAdmission,
  reservationId = '',
): AgentTasksError {
  const waitsIn = isForeground === true && pool === undefined ? pools.foreground : pools.of(pool, depth)
  const { max, queue } = waitsIn
  switch (refusal) {
    case 'id-in-use':
      return new TaskIdInUseError(id)
    case 'no-reservation':
      return new ReservationError(reservationId)
    case 'no-room':
      return new TaskLimitError(pools.of(pool, depth).max, undefined, pool)
    case 'paused':
      return new PausedError(owner)
    case 'no-foreground-room':
      return new TaskLimitError(pools.foreground.max, undefined, 'foreground')
    case 'queue-full': {
      const { size, bytes, limits } = queue
      const full = size >= limits.max ? size : { bytes, asked: ticket?.bytes ?? 0, maxBytes: limits.maxBytes }
      return new TaskLimitError(max, full, waitsIn === pools.foreground ? 'foreground' : pool)
    }
    default:
      return familyError(refusal, parentId, families.limits)
  }
}
