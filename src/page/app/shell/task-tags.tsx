/** What is special about a task, in a few words. */
import type { PageTask } from '../../wire.js'
import { counted } from '../text/format.js'
import { progressText } from '../text/progress.js'
import { visible } from '../text/visible.js'

export function TaskTags({ task }: { readonly task: PageTask }) {
  const { attempt, questions, delivery, progress, endedAt, commandCount } = task
  return (
    <>
      {questions !== undefined && questions > 0 && <span class="tag asks">{counted(questions, 'question')}</span>}
      {attempt !== undefined && <span class="tag">Attempt {attempt}</span>}
      {commandCount !== undefined && commandCount > 1 && <span class="tag">{counted(commandCount, 'command')}</span>}
      {(delivery === 'owed' || delivery === 'leased') && <span class="tag">{delivery}</span>}
      {progress && endedAt === undefined && <span class="tag">{visible(progressText(progress))}</span>}
    </>
  )
}
