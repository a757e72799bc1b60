/** The errors of refused launches and registrations. */
import type { TaskAdmission } from '../../../machines/task-admission.js'
import type { AdmissionRefusal } from '../../../machines/registry-events.js'
import { PausedError, ReservationError, TaskIdInUseError, TaskLimitError, type AgentTasksError } from '../../errors.js'
import { familyError } from '../families/families.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

export function admissionError(
  { pools, families }: TaskRegistry,
  refusal: AdmissionRefusal,
  { id, owner, pool, depth, ticket, parentId = '', isForeground }: TaskAdmission,
  reservationId = '',
): AgentTasksError {
  const waitsIn = isForeground === true && pool === undefined ? pools.foreground : pools.of(pool, depth)
  const { max, queue } = waitsIn
  const limited = waitsIn === pools.foreground ? 'foreground' : pool
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
    case 'no-owner-room':
      return new TaskLimitError(waitsIn.maxOfOwner, undefined, pool, undefined, {
        owner,
        running: waitsIn.heldBy(owner),
      })
    case 'owner-queue-full': {
      const { queued = 0, queuedBytes: maxBytes = 0 } = queue.owners ?? {}
      const { size, bytes } = queue.useOf(owner)
      const full = size >= queued ? size : { bytes, asked: ticket?.bytes ?? 0, maxBytes }
      return new TaskLimitError(queued, full, limited, undefined, { owner, running: waitsIn.heldBy(owner) })
    }
    case 'queue-full': {
      const { size, bytes, limits } = queue
      const full = size >= limits.max ? size : { bytes, asked: ticket?.bytes ?? 0, maxBytes: limits.maxBytes }
      return new TaskLimitError(max, full, limited)
    }
    default:
      return familyError(refusal, parentId, families.limits)
  }
}
