/** A field that the launch form has for every subagent, with its label, help and error. */
import type { ComponentChildren } from 'preact'
import { visible } from '../text/visible.js'

interface Shared {
  readonly id: string
  readonly 'aria-invalid': boolean
  readonly 'aria-describedby': string | undefined
}

interface Props {
  readonly id: string
  readonly label: string
  readonly help?: string | undefined
  readonly error?: string | undefined
  /** Renders the input element with the given attributes. */
  readonly children: (shared: Shared) => ComponentChildren
}

export function LaunchField({ id, label, help, error, children }: Props) {
  const described = [help !== undefined && `${id}-help`, error !== undefined && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {help !== undefined && (
        <p id={`${id}-help`} class="hint">
          {visible(help)}
        </p>
      )}
      {children({
        id,
        'aria-invalid': error !== undefined,
        'aria-describedby': described === '' ? undefined : described,
      })}
      {error !== undefined && (
        <p id={`${id}-error`} class="problem" role="alert">
          {visible(error)}
        </p>
      )}
    </div>
  )
}
