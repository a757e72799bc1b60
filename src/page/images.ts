/** Finds the images in the results of tasks: MCP content blocks of the type `image`. */
import { keysOf } from '../data/json-pieces.js'
import type { ResultImage } from './wire.js'

/** The image types that the page shows. SVG is left out, because a browser may run the scripts in an SVG image. */
const TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp'])

/** The maximum number of images of a task, and of values that are searched for images. */
const MAX_IMAGES = 100
const MAX_VALUES = 10_000

export interface FoundImage {
  readonly mimeType: string
  /** Base64. */
  readonly data: string
}

/** The images in values, in order. */
export function findImages(values: readonly unknown[]): FoundImage[] {
  const images: FoundImage[] = []
  const open: unknown[] = [...values].reverse()
  for (let seen = 0; seen < MAX_VALUES && open.length > 0 && images.length < MAX_IMAGES; seen += 1) {
    const value = open.pop()
    if (typeof value !== 'object' || value === null) continue
    const { type, data, mimeType } = value as Readonly<Record<string, unknown>>
    if (type === 'image' && typeof data === 'string' && typeof mimeType === 'string' && TYPES.has(mimeType)) {
      images.push({ mimeType, data })
      continue
    }
    const keys = Array.isArray(value) ? undefined : keysOf(value)
    const inner = value as Readonly<Record<string | number, unknown>>
    for (let at = Math.min((keys ?? (value as readonly unknown[])).length, MAX_VALUES) - 1; at >= 0; at -= 1) {
      open.push(inner[keys?.[at] ?? at])
    }
  }
  return images
}

export const describeImage = ({ mimeType, data }: FoundImage, index: number): ResultImage => ({
  index,
  mimeType,
  bytes: Math.floor((data.length * 3) / 4) - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0),
})
