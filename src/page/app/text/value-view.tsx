/** A value as a foldable JSON tree or as text. Of a long value, the beginning is shown, and a button loads the rest. */
import { useSignal } from '@preact/signals'
import type { CutValue, ValuePiece } from '../../wire.js'
import { usePage } from '../page-state.js'
import { useAction } from '../use-action.js'
import { byteSize } from './format.js'
import { beginningOfJson } from './json-beginning.js'
import { JsonTree } from './json-tree.js'
import { ValueTools } from './value-tools.js'
import { visible, visibleLines } from './visible.js'

interface Props {
  readonly value: CutValue
  /** The path of the requests that load the rest. */
  readonly path: string
  readonly label: string
  /** The name of the downloaded file, without extension. Without it, there is no download button. */
  readonly fileName?: string
}

/** JSON up to this length is open at first, in characters. */
const SHORT_CHARS = 400
/** The maximum length of the shown text, in characters. Browsers become slow with more text. */
const MOST_CHARS = 2_000_000
const NO_REST = { of: '', text: '', isEnd: false, bytes: 0, hasMore: false }

export function ValueView({ value, path, label, fileName }: Props) {
  const { api } = usePage()
  const more = useSignal(NO_REST)
  const reading = useAction()
  // The loaded rest stays valid while the value has the same beginning.
  const rest = keptRest(value.text, more.value)
  const text = value.text + rest.text
  const { bytes, hasMore } = rest.text === '' ? value : rest
  const isWhole = !value.isCut || rest.isEnd
  const json = value.type === 'json' ? beginningOfJson(text) : undefined
  const readMore = (): Promise<boolean> =>
    reading.run(async () => {
      const offset = new TextEncoder().encode(text).length
      const piece = await api.get<ValuePiece>(`${path}?offset=${offset}`)
      const { isEnd, bytes, hasMore = false } = piece
      more.value = { of: value.text, text: rest.text + piece.text, isEnd, bytes, hasMore }
    })
  const { isBusy, error } = reading.state.value
  return (
    <div class="value">
      {json ? (
        <JsonTree value={json.value} label={label} isOpen={text.length <= SHORT_CHARS} />
      ) : (
        <pre tabIndex={0} role="group" aria-label={label}>
          {visibleLines(text)}
        </pre>
      )}
      {!isWhole && (
        <p class="hint">
          The first {byteSize(new Blob([text]).size)} of {hasMore && 'more than '}
          {byteSize(bytes)}.{' '}
          {text.length < MOST_CHARS ? (
            <button type="button" aria-disabled={isBusy} onClick={() => void readMore()}>
              Show more
            </button>
          ) : (
            'Download the value to read the rest.'
          )}
        </p>
      )}
      {error !== undefined && (
        <p class="problem" role="alert">
          {visible(error)}
        </p>
      )}
      {fileName !== undefined && <ValueTools value={value} path={path} label={label} fileName={fileName} />}
    </div>
  )
}

type Rest = typeof NO_REST

function keptRest(text: string, rest: Rest): Rest {
  if (rest.of === text) return rest
  const before = rest.of + rest.text
  const isSame = rest.of !== '' && (before.startsWith(text) || text.startsWith(before))
  return isSame
    ? { ...rest, of: text, text: before.slice(text.length), isEnd: rest.isEnd && text.length <= before.length }
    : NO_REST
}
