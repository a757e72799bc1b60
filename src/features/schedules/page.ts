/** Schedules on the page. */
import { nothingSchema } from '../../page/answers.js'
import { MAX_ROWS, onRow, type PageFeature } from '../../page/page-feature.js'
import { scheduleLines } from './schedule-lines.js'

export const schedulePage: PageFeature = {
  rows: (manager) =>
    manager
      .schedules()
      .slice(0, MAX_ROWS)
      .map((schedule) => {
        const { id, owner, next: at } = schedule
        return { kind: 'schedules', id, owner, at, detail: scheduleLines([schedule]) }
      }),
  rowActions: { 'schedules/cancel': onRow(nothingSchema, (manager, id) => manager.cancelSchedule(id)) },
}
