/** The closed questions of a task, with their answers. */
import type { PageTaskDetail } from '../../wire.js'
import { duration, timeOfDay } from '../text/format.js'
import { JsonTree } from '../text/json-tree.js'
import { beginningOfJson } from '../text/json-beginning.js'
import { visibleLines } from '../text/visible.js'
import { closingText } from './closing-text.js'

type Closed = NonNullable<PageTaskDetail['answers']>[number]

export function TaskAnswers({ answers }: { readonly answers: readonly Closed[] }) {
  return (
    <ol class="answers">
      {answers.map((closed) => (
        <li key={closed.id} class="question">
          <p class="question-text">{visibleLines(closed.message)}</p>
          <p>
            {closingText(closed)}{' '}
            <span class="hint number">
              at {timeOfDay(closed.closedAt)}, after {duration(closed.closedAt - closed.askedAt)}
            </span>
          </p>
          <Content content={closed.content} />
        </li>
      ))}
    </ol>
  )
}

function Content({ content }: { readonly content: Closed['content'] | undefined }) {
  if (!content || content.text === '{}') return null
  return (
    <div class="value">
      <JsonTree value={beginningOfJson(content.text)?.value} label="Answer" isOpen />
      {content.isCut && <p class="hint">This is the beginning of the answer. The rest was not kept.</p>}
    </div>
  )
}
