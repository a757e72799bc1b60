/** The number of tasks that wait for an answer, with a link to them. Every part shows it. */
import { addressOf } from '../addresses.js'
import { usePage } from '../page-state.js'

export function QuestionsBadge() {
  const { many, first } = usePage().asking.value
  if (many === 0) return null
  const target =
    many === 1 ? addressOf('task', first) : addressOf('tasks', undefined, new URLSearchParams({ state: 'asking' }))
  return (
    <a class="asking-badge" href={target}>
      {many === 1 ? '1 question' : `${many} tasks ask`}
    </a>
  )
}
