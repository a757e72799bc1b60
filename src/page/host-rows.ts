/** The pauses, schedules and monitors of a manager, as rows. */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { scheduleLines } from '../async-tasks/schedules/schedule-lines.js'
import { sentText } from './texts.js'
import type { HostRow } from './wire.js'

/** The maximum number of listed schedules, and of listed monitors. */
const MAX_ROWS = 1000

export function hostRows(manager: AsyncTaskManager): HostRow[] {
  const pauses = manager.pauses().map(({ owner = '', deliveries, since: at, by = 'code of the host' }): HostRow => {
    const detail = `by ${by}; results are ${deliveries === 'hold' ? 'held' : 'sent'}`
    return { kind: 'pauses', id: owner === '' ? 'all' : `owner:${owner}`, owner, at, detail }
  })
  const schedules = manager.schedules().slice(0, MAX_ROWS)
  const monitors = manager.monitors().slice(0, MAX_ROWS)
  return [
    ...pauses,
    ...schedules.map((schedule): HostRow => {
      const { id, owner, next: at } = schedule
      return { kind: 'schedules', id, owner, at, detail: scheduleLines([schedule]) }
    }),
    ...monitors.map(({ id, owner, endsAt: at, taskId, file, match, events, description }): HostRow => {
      const what = typeof match === 'string' || !('regex' in match) ? match : `/${match.regex}/${match.flags ?? ''}`
      const label = description === undefined ? '' : `${description}: `
      const source = file === undefined ? `task ${taskId}` : `file ${file}`
      const detail = `${id} (${source}), ${events} event(s) - ${label}${sentText(JSON.stringify(what))}`
      return { kind: 'monitors', id, owner, at, detail }
    }),
  ]
}
