/** A part of the task, with its heading. */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface Props {
  readonly title: string
  readonly isUrgent?: boolean
  readonly children: ComponentChildren
}

export function Section({ title, isUrgent = false, children }: Props) {
  const id = useId()
  return (
    <section class={isUrgent ? 'section urgent' : 'section'} aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {children}
    </section>
  )
}
