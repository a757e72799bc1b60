/** The machine of a task, with the path that the task took. */
import { useSignal } from '@preact/signals'
import { useContext, useMemo } from 'preact/hooks'
import type { PageTask, TaskEvent } from '../../wire.js'
import { Charts } from '../charts.js'
import { pathText, taskPath } from '../task-path.js'
import { Section, SectionLevel } from './section.js'

interface Props {
  readonly task: PageTask
  readonly events: readonly TaskEvent[]
  readonly isOpen: boolean
}

export function TaskMachine({ task, events, isOpen }: Props) {
  const level = useContext(SectionLevel) === 2 ? 3 : 4
  const isDrawn = useSignal(isOpen)
  const { kind, state } = task
  const path = useMemo(() => taskPath({ kind, state }, events), [kind, state, events])
  return (
    <Section title="Machine">
      <details open={isDrawn.value} onToggle={({ currentTarget }) => (isDrawn.value = currentTarget.open)}>
        <summary>{pathText(path)}</summary>
        {isDrawn.value && <Charts path={path} level={level} />}
      </details>
    </Section>
  )
}
