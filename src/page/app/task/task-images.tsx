/** The images of a result. Requests for them need the token, so the page loads them with `fetch` instead of an address in `src`. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ResultImage } from '../../wire.js'
import { usePage } from '../page-state.js'
import { byteSize } from '../text/format.js'
import { visible } from '../text/visible.js'
import { pathOf } from './use-task-detail.js'

export function TaskImages({ taskKey, images }: { readonly taskKey: string; readonly images: readonly ResultImage[] }) {
  return (
    <div class="images">
      {images.map((image) => (
        <TaskImage key={image.index} taskKey={taskKey} image={image} />
      ))}
    </div>
  )
}

/** The image types that the page shows. Other types, such as SVG, could run code when a person opens them in a tab. */
const SHOWN = /^image\/(png|jpeg|gif|webp|avif|bmp)$/

function TaskImage({ taskKey, image }: { readonly taskKey: string; readonly image: ResultImage }) {
  const { api } = usePage()
  const { index, mimeType, bytes } = image
  const shown = useSignal<{ url?: string; error?: string }>({})
  const isShown = SHOWN.test(mimeType)
  useEffect(() => {
    if (!isShown) return undefined
    const abort = new AbortController()
    let url: string | undefined
    api
      .blob(`${pathOf(taskKey)}/image/${index}`, abort.signal)
      .then((blob) => {
        url = URL.createObjectURL(blob)
        shown.value = { url }
      })
      .catch((error: unknown) => {
        if (!abort.signal.aborted) shown.value = { error: error instanceof Error ? error.message : String(error) }
      })
    return () => {
      abort.abort()
      if (url !== undefined) URL.revokeObjectURL(url)
    }
  }, [api, taskKey, index, isShown])
  const { url, error } = shown.value
  return (
    <figure>
      {url !== undefined && (
        <img
          src={url}
          alt={`Image ${index + 1} of the result`}
          onError={() => (shown.value = { error: 'The browser cannot show this image.' })}
        />
      )}
      <figcaption class="hint">
        {visible(mimeType)} · {byteSize(bytes)}
        {!isShown && ' · not shown'}
        {error !== undefined && ` · ${visible(error)}`}
      </figcaption>
    </figure>
  )
}
