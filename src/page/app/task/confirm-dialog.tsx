/** Asks for confirmation, and shows an error if the action fails. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { visible } from '../text/visible.js'
import type { Action } from '../use-action.js'

interface Props {
  readonly heading: string
  readonly title: string
  readonly action: Action
  /** The labels of the buttons that confirm and cancel. */
  readonly label: string
  readonly refusal: string
  readonly isDangerous?: boolean
  readonly children?: ComponentChildren
  /** Returns whether the action succeeded. */
  readonly onConfirm: () => Promise<boolean>
  readonly onClose: () => void
}

export function ConfirmDialog(props: Props) {
  const { heading, title, action, label, refusal, isDangerous = false, children, onConfirm, onClose } = props
  const dialog = useRef<HTMLDialogElement>(null)
  const headingId = useId()
  const { isBusy, error } = action.state.value
  useEffect(() => dialog.current?.showModal(), [])
  const confirm = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (await onConfirm()) dialog.current?.close()
  }
  return (
    <dialog ref={dialog} aria-labelledby={headingId} onClose={onClose}>
      <form onSubmit={(event) => void confirm(event)}>
        <h2 id={headingId}>{heading}</h2>
        <p class="task-title">{visible(title)}</p>
        {children}
        {error !== undefined && (
          <p class="problem" role="alert">
            {visible(error)}
          </p>
        )}
        <div class="actions">
          <button type="submit" class={isDangerous ? 'danger' : 'primary'} aria-disabled={isBusy}>
            {label}
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            {refusal}
          </button>
        </div>
      </form>
    </dialog>
  )
}
