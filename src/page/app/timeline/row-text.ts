/** Describes a row of the timeline in words, for screen readers and for the tooltip of the row. */
import type { PageTaskKind } from '../../wire.js'
import { count, counted, duration, timeOfDay } from '../text/format.js'
import { LOOKS, runLengthOf } from '../text/states.js'
import { visible } from '../text/visible.js'
import type { Phase, Row } from './rows.js'

export const PHASE_WORDS: Readonly<Record<Phase, string>> = { running: 'Running', waiting: 'Waiting', ended: 'Ended' }

export const GROUP_WORDS: Readonly<Record<PageTaskKind, string>> = { async: 'owner', command: 'instance' }

export function rowText(row: Row, now: number): string {
  if (row.type === 'phase') return `${PHASE_WORDS[row.phase]}, ${counted(row.count, 'task')}`
  if (row.type === 'group') {
    const { kind, name, count: inPhase, tasks } = row
    const all = counted(tasks.length, 'task')
    return `${visible(name)}, ${GROUP_WORDS[kind]}, ${inPhase < tasks.length ? `${count(inPhase)} of ${all}` : all}`
  }
  const { task } = row
  const { title, state, createdAt, startedAt, endedAt, questions = 0, commandCount = 0 } = task
  const length = duration(runLengthOf(task, now))
  const waitMs = state === 'queued' ? 0 : (startedAt ?? createdAt) - createdAt
  const [running, ended] = waitMs >= 1 ? ['running for', 'ran for'] : ['for', 'took']
  return [
    visible(title),
    LOOKS[state].word,
    `created at ${timeOfDay(createdAt)}`,
    waitMs >= 1 && `queued for ${duration(waitMs)}`,
    endedAt === undefined ? `${running} ${length} so far` : `${ended} ${length}`,
    commandCount > 1 && counted(commandCount, 'command'),
    questions > 0 && counted(questions, 'open question'),
  ]
    .filter(Boolean)
    .join(', ')
}
