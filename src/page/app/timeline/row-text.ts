/** A row of the timeline in words, for those who do not see the bars. */
import { count, counted, duration, timeOfDay } from '../text/format.js'
import { LOOKS, lengthOf } from '../text/states.js'
import { visible } from '../text/visible.js'
import type { Row } from './rows.js'

export function rowText(row: Row, now: number): string {
  if (row.type === 'group') {
    const { kind, name, tasks, live } = row
    const what = kind === 'async' ? 'owner' : 'instance'
    const all = counted(tasks.length, 'task')
    return `${visible(name)}, ${live > 0 ? `${count(live)} of ${all} live` : all}, ${what}`
  }
  const { task } = row
  const { title, state, createdAt, startedAt, endedAt, questions = 0, commandCount = 0 } = task
  const length = duration(lengthOf(task, now))
  return [
    visible(title),
    LOOKS[state].word,
    `created at ${timeOfDay(createdAt)}`,
    startedAt !== undefined && startedAt - createdAt >= 1 && `queued for ${duration(startedAt - createdAt)}`,
    endedAt === undefined ? `for ${length} so far` : `took ${length}`,
    commandCount > 1 && counted(commandCount, 'command'),
    questions > 0 && counted(questions, 'open question'),
  ]
    .filter(Boolean)
    .join(', ')
}
