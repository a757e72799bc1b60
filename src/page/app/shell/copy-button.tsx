/** A button that copies a text. Where the clipboard is closed, it shows the text to be copied by hand. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { after } from '../browser-clock.js'

interface Props {
  readonly text: string
  readonly label: string
}

export function CopyButton({ text, label }: Props) {
  const outcome = useSignal<'none' | 'copied' | 'refused'>('none')
  const said = outcome.value
  useEffect(() => (said === 'copied' ? after(2000, () => (outcome.value = 'none')) : undefined), [said, outcome])
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      outcome.value = 'copied'
    } catch {
      outcome.value = 'refused'
    }
  }
  return (
    <span class="copy">
      <button type="button" onClick={() => void copy()}>
        {label}
      </button>
      <span role="status" class="said">
        {said === 'copied' && 'Copied'}
      </span>
      {said === 'refused' && (
        <textarea class="by-hand" readOnly rows={4} value={text} aria-label={`${label}: copy this text`} />
      )}
    </span>
  )
}
