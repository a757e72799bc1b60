/** A button that copies a text. If the page may not use the clipboard, it shows the text, so that a person can copy it. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { after } from '../browser-clock.js'
import { visible } from '../text/visible.js'

interface Props {
  /** The text, or a function that loads it when the button is pressed. */
  readonly text: string | (() => Promise<string>)
  readonly label: string
  /** A name for the copied text, if the label does not contain one. */
  readonly what?: string
}

type Outcome =
  | { readonly type: 'none' | 'copied' }
  | { readonly type: 'refused'; readonly text: string }
  | { readonly type: 'failed'; readonly why: string }

export function CopyButton({ text, label, what }: Props) {
  const outcome = useSignal<Outcome>({ type: 'none' })
  const said = outcome.value
  useEffect(
    () => (said.type === 'copied' ? after(2000, () => (outcome.value = { type: 'none' })) : undefined),
    [said, outcome],
  )
  const copy = async (): Promise<void> => {
    try {
      outcome.value = await copied(typeof text === 'string' ? text : await text())
    } catch (error) {
      outcome.value = { type: 'failed', why: error instanceof Error ? error.message : String(error) }
    }
  }
  const name = what === undefined ? label : `${label}: ${visible(what)}`
  return (
    <span class="copy">
      <button type="button" aria-label={name} onClick={() => void copy()}>
        {label}
      </button>
      <span role="status" class="said">
        {said.type === 'copied' && 'Copied'}
      </span>
      {said.type === 'refused' && (
        <textarea class="by-hand" readOnly rows={4} value={said.text} aria-label={`${name}: copy this text`} />
      )}
      {said.type === 'failed' && (
        <span role="alert" class="problem">
          {visible(said.why)}
        </span>
      )}
    </span>
  )
}

async function copied(text: string): Promise<Outcome> {
  try {
    await navigator.clipboard.writeText(text)
    return { type: 'copied' }
  } catch {
    return { type: 'refused', text }
  }
}
