/** A section of a task's details, with its heading. */
import { createContext, type ComponentChildren } from 'preact'
import { useContext, useId } from 'preact/hooks'

interface Props {
  readonly title: string
  readonly isUrgent?: boolean
  readonly children: ComponentChildren
}

/** The heading level of sections, which is one below that of the task. */
export const SectionLevel = createContext<2 | 3>(3)

export function Section({ title, isUrgent = false, children }: Props) {
  const id = useId()
  const Heading = `h${useContext(SectionLevel)}` as const
  return (
    <section class={isUrgent ? 'section urgent' : 'section'} aria-labelledby={id}>
      <Heading id={id}>{title}</Heading>
      {children}
    </section>
  )
}

export function SubHeading({ children }: { readonly children: ComponentChildren }) {
  const Heading = useContext(SectionLevel) === 2 ? 'h3' : 'h4'
  return <Heading class="sub-heading">{children}</Heading>
}
