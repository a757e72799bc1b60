/** The machine of a task, with the way that the task took. */
import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { PageTask, TaskEvent } from '../../wire.js'
import { Charts } from '../charts.js'
import { taskPath } from '../task-path.js'
import { Section } from './section.js'

interface Props {
  readonly task: PageTask
  readonly events: readonly TaskEvent[]
  /** Whether it is drawn at first: it takes room. */
  readonly isOpen: boolean
}

export function TaskMachine({ task, events, isOpen }: Props) {
  const isDrawn = useSignal(isOpen)
  const { kind, state } = task
  const path = useMemo(() => taskPath({ kind, state }, events), [kind, state, events])
  return (
    <Section title="Machine">
      <details open={isDrawn.value} onToggle={({ currentTarget }) => (isDrawn.value = currentTarget.open)}>
        <summary>{path.visited.join(' → ')}</summary>
        {isDrawn.value && <Charts path={path} level={4} />}
      </details>
    </Section>
  )
}
