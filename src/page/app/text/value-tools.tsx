/** Buttons that copy or download a whole value, even if only a part of it is shown. */
import type { CutValue } from '../../wire.js'
import { saveAs } from '../browser-files.js'
import { usePage } from '../page-state.js'
import { CopyButton } from '../shell/copy-button.js'
import { useAction } from '../use-action.js'
import { visible } from './visible.js'

interface Props {
  readonly value: CutValue
  readonly path: string
  readonly label: string
  readonly fileName: string
}

export function ValueTools({ value, path, label, fileName }: Props) {
  const { api } = usePage()
  const saving = useAction()
  const { isBusy, error } = saving.state.value
  const download = (): Promise<boolean> =>
    saving.run(async () => saveAs(await api.blob(path), `${fileName}.${value.type === 'json' ? 'json' : 'txt'}`))
  return (
    <div class="value-tools">
      <CopyButton text={async () => (await api.blob(path)).text()} label="Copy" what={label} />
      <button
        type="button"
        aria-disabled={isBusy}
        aria-label={`Download: ${visible(label)}`}
        onClick={() => void download()}
      >
        Download
      </button>
      {error !== undefined && (
        <p class="problem" role="alert">
          {visible(error)}
        </p>
      )}
    </div>
  )
}
