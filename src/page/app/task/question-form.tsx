/** A question of a run, with a form for the answer. */
import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { ActionDone, AnswerRequest, PageTaskDetail } from '../../wire.js'
import { fieldsOf } from '../forms/form-fields.js'
import { SchemaForm } from '../forms/schema-form.js'
import { usePage } from '../page-state.js'
import { timeOfDay } from '../text/format.js'
import { visibleLines } from '../text/visible.js'
import { useAction } from '../use-action.js'
import { pathOf } from './use-task-detail.js'

interface Props {
  readonly taskKey: string
  readonly question: NonNullable<PageTaskDetail['questions']>[number]
}

export function QuestionForm({ taskKey, question }: Props) {
  const { api } = usePage()
  const { id, message, schema, askedAt } = question
  const fields = useMemo(() => fieldsOf(schema), [schema])
  const answering = useAction()
  const sent = useSignal<AnswerRequest['answer']['action'] | undefined>(undefined)
  const answer = (answer: AnswerRequest['answer']): Promise<boolean> =>
    answering.run(async () => {
      const request: AnswerRequest = { questionId: id, answer }
      await api.post<ActionDone>(`${pathOf(taskKey)}/answer`, request)
      sent.value = answer.action
    })
  return (
    <div class="question" role="group" aria-label="Question of the task">
      <p class="question-text">{visibleLines(message)}</p>
      <p class="hint">Asked at {timeOfDay(askedAt)}</p>
      {sent.value === undefined ? (
        <SchemaForm
          fields={fields}
          action={answering}
          errorPrefix="content."
          submitLabel="Answer"
          onSubmit={(content) => void answer({ action: 'accept', content })}
        >
          <button type="button" onClick={() => void answer({ action: 'decline' })}>
            Decline
          </button>
        </SchemaForm>
      ) : (
        <p role="status">{sent.value === 'accept' ? 'Answered.' : 'Declined.'}</p>
      )}
    </div>
  )
}
