/** The images that the commands of ended tasks returned, such as screenshots: a model reads them as images. */
import type { ContentBlock } from '@modelcontextprotocol/server'
import type { Backend } from './backend.js'

type ImageBlock = Extract<ContentBlock, { type: 'image' }>

/** The most images in one answer, and the most characters of their base64. Of more, the last are the ones that show how it ended. */
const MAX_IMAGES = 8
const MAX_CHARS = 4 * 1024 * 1024

/** The images of async tasks that followed command tasks, as long as those are kept, with a text before them; none if there are none. */
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

/** As the SDK checks it: it refuses an answer with another image as a whole, results included. */
function isBase64(data: unknown): data is string {
  if (typeof data !== 'string') return false
  try {
    atob(data)
    return true
  } catch {
    return false
  }
}
