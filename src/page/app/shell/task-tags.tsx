/** The special properties of a task, as short labels. */
import type { PageTask } from '../../wire.js'
import { DELIVERY_MEANINGS } from '../text/deliveries.js'
import { counted, stoppingText } from '../text/format.js'
import { progressOf } from '../text/progress.js'
import { visible } from '../text/visible.js'

export function TaskTags({ task }: { readonly task: PageTask }) {
  const { attempt, questions, delivery, endedAt, stopsWithinMs, commandCount = 0 } = task
  const hasMany = commandCount > 1
  const progress = endedAt === undefined ? progressOf(task) : undefined
  return (
    <>
      {questions !== undefined && questions > 0 && <span class="tag asks">{counted(questions, 'question')}</span>}
      {stopsWithinMs !== undefined && (
        <span class="tag" title={stoppingText(stopsWithinMs)}>
          stopping
        </span>
      )}
      {attempt !== undefined && <span class="tag">Attempt {attempt}</span>}
      {hasMany && !progress && <span class="tag">{counted(commandCount, 'command')}</span>}
      {(delivery === 'owed' || delivery === 'leased') && (
        <span class="tag" title={DELIVERY_MEANINGS[delivery]}>
          {delivery}
        </span>
      )}
      {progress && <span class="tag">{visible(progress.text)}</span>}
    </>
  )
}
