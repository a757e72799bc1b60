/** The images in the results of commands, such as screenshots. A model gets them as images, not as text. */
import type { ContentBlock } from '@modelcontextprotocol/server'
import type { Backend } from './backend.js'

type ImageBlock = Extract<ContentBlock, { type: 'image' }>

/**
 * The maximum number of images in one answer, and the maximum length of their base64 in total, in characters. If there are more images, the last ones
 * are sent, because they show how the commands ended.
 */
const MAX_IMAGES = 8
const MAX_CHARS = 4 * 1024 * 1024

/**
 * Returns the images of the commands that these async tasks submitted, after a text block that introduces them. The list is empty if there are no
 * images. Ended command tasks that are no longer kept add nothing.
 */
export function imagesOf({ commandTasks }: Pick<Backend, 'commandTasks'>, taskIds: readonly string[]): ContentBlock[] {
  const wanted = new Set<unknown>(taskIds)
  const images = commandTasks
    .listTasks()
    .filter(({ metadata }) => wanted.has(metadata?.['asyncTaskId']))
    .reverse()
    .flatMap(({ commands }) => commands.flatMap(({ result }) => imagesIn(result)))
  if (images.length === 0) return []
  const shown = lastThatFit(images)
  const text =
    shown.length === images.length
      ? 'The images of these results, in order:'
      : `The last ${shown.length} of the ${images.length} images of these results (the others do not fit into one answer):`
  return [{ type: 'text', text }, ...shown]
}

function lastThatFit(images: readonly ImageBlock[]): ImageBlock[] {
  const shown: ImageBlock[] = []
  let chars = 0
  for (const image of images.slice(-MAX_IMAGES).reverse()) {
    chars += image.data.length
    if (chars > MAX_CHARS) break
    shown.unshift(image)
  }
  return shown
}

function imagesIn(result: unknown): ImageBlock[] {
  const { content } = Object(result) as { readonly content?: unknown }
  return Array.isArray(content) ? content.flatMap(toImage) : []
}

function toImage(block: unknown): ImageBlock[] {
  const { type, data, mimeType } = Object(block) as Readonly<Record<string, unknown>>
  return type === 'image' && isBase64(data) && typeof mimeType === 'string' ? [{ type, data, mimeType }] : []
}

/** Checks base64 exactly as the SDK does. The SDK rejects a whole answer, results included, if one image is invalid. */
function isBase64(data: unknown): data is string {
  if (typeof data !== 'string') return false
  try {
    atob(data)
    return true
  } catch {
    return false
  }
}
