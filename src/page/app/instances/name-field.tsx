/** The field for the optional name of a new command task. */
import { visible } from '../text/visible.js'

interface Props {
  readonly id: string
  readonly name: string
  /** The default name. */
  readonly placeholder: string
  readonly error: string | undefined
  readonly onName: (name: string) => void
}

export function NameField({ id, name, placeholder, error, onName }: Props) {
  return (
    <div class="field">
      <label for={id}>
        Name of the task<span class="hint"> (optional)</span>
      </label>
      <input
        id={id}
        type="text"
        value={name}
        placeholder={visible(placeholder)}
        aria-invalid={error !== undefined}
        aria-describedby={error === undefined ? undefined : `${id}-error`}
        onInput={({ currentTarget }) => onName(currentTarget.value)}
      />
      {error !== undefined && (
        <p id={`${id}-error`} class="problem" role="alert">
          {visible(error)}
        </p>
      )}
    </div>
  )
}
