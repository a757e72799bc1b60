/** The output of a run. It grows while the run writes. */
import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { PageOutput } from '../../wire.js'
import { ApiError } from '../api.js'
import { after } from '../browser-clock.js'
import { usePage } from '../page-state.js'
import { byteSize } from '../text/format.js'
import { visible, visibleLines } from '../text/visible.js'
import { Section } from './section.js'
import { pathOf } from './use-task-detail.js'

interface Props {
  readonly taskKey: string
  /** The number of the current attempt. Each attempt has its own output. */
  readonly attempt: number | undefined
}

interface Shown {
  readonly text: string
  readonly cursor: number
  readonly dropped: number
  readonly isEnd: boolean
  readonly error?: string
}

const POLL_MS = 400
/** The maximum length of the shown output, in characters. The beginning of a longer output is removed. */
const MOST_CHARS = 200_000
const NOTHING: Shown = { text: '', cursor: 0, dropped: 0, isEnd: false }

export function LiveOutput({ taskKey, attempt }: Props) {
  const { api, connection } = usePage()
  const shown = useSignal<Shown>(NOTHING)
  const isFollowing = useSignal(true)
  const box = useRef<HTMLPreElement>(null)
  const isLive = connection.value.state === 'live'
  useEffect(() => {
    shown.value = NOTHING
  }, [attempt, shown])
  useEffect(() => {
    if (!isLive) return undefined
    const abort = new AbortController()
    let stopTimer = (): void => undefined
    const read = async (): Promise<void> => {
      try {
        const { cursor } = shown.peek()
        const output = await api.get<PageOutput>(`${pathOf(taskKey)}/output?cursor=${cursor}`, abort.signal)
        shown.value = appended(shown.peek(), output)
        if (!output.isEnd) stopTimer = after(output.text === '' ? POLL_MS : POLL_MS / 4, () => void read())
      } catch (error) {
        const hasNone = error instanceof ApiError && error.status === 404
        if (!abort.signal.aborted && !hasNone) shown.value = { ...shown.peek(), error: String(error) }
      }
    }
    void read()
    return () => {
      abort.abort()
      stopTimer()
    }
  }, [api, taskKey, attempt, isLive, shown])
  const { text, dropped, isEnd, error } = shown.value
  useLayoutEffect(() => {
    if (isFollowing.value && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [text, isFollowing.value])
  if (text === '' && dropped === 0 && error === undefined) return null
  return (
    <Section title={isEnd ? 'Output' : 'Live output'}>
      <div class="value">
        {dropped > 0 && <p class="hint">{byteSize(dropped)} of earlier output are no longer kept.</p>}
        <pre
          ref={box}
          class="output"
          tabIndex={0}
          role="group"
          aria-label="Output"
          onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) =>
            (isFollowing.value = scrollTop + clientHeight >= scrollHeight - 8)
          }
        >
          {visibleLines(text)}
        </pre>
        {!isFollowing.value && !isEnd && (
          <button type="button" onClick={() => (isFollowing.value = true)}>
            Follow
          </button>
        )}
        {error !== undefined && <p class="problem">{visible(error)}</p>}
      </div>
    </Section>
  )
}

function appended(before: Shown, { text, cursor, dropped, isEnd }: PageOutput): Shown {
  const joined = before.text + text
  return { text: joined.slice(-MOST_CHARS), cursor, dropped: Math.max(before.dropped, dropped), isEnd }
}
