/** How many tasks wait for an answer of a person: seen in every part, with the way to them. */
import { useComputed } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { PART_NAMES, addressOf, type Part } from '../addresses.js'
import { usePage } from '../page-state.js'

export function QuestionsBadge({ part }: { readonly part: Part }) {
  const { view } = usePage()
  const first = useComputed(() => view.value.tasks.find(({ state }) => state === 'asking')?.key)
  const asking = useComputed(() => view.value.tasks.reduce((sum, { state }) => sum + (state === 'asking' ? 1 : 0), 0))
  const many = asking.value
  useEffect(() => {
    document.title = `${many > 0 ? `(${many}) ` : ''}${PART_NAMES[part]} · agent-tasks`
  }, [part, many])
  if (many === 0) return null
  const target =
    many === 1
      ? addressOf('task', first.value)
      : addressOf('tasks', undefined, new URLSearchParams({ state: 'asking' }))
  return (
    <a class="asking-badge" href={target}>
      {many === 1 ? '1 question' : `${many} tasks ask`}
    </a>
  )
}
