/** Previews of long results: JSON that has only the beginning and the end of each long text. */
import { cutText } from '../../data/cut-text.js'
import { toJsonText } from '../../data/json-text.js'

/** The maximum size of a preview with its notice, in bytes of UTF-8. */
export const PREVIEW_BYTES = 2048

/** The factor by which the texts in a preview are shortened as long as the preview is too large. */
const STEP = 0.8

/**
 * Returns the JSON text of as much of a value as fits into a preview.
 * @param frame adds the notice to the JSON text
 */
export function previewJson(value: object, frame: (text: string) => string): string {
  const room = PREVIEW_BYTES - bytesOf(frame(''))
  // Escapes, names of fields and marks of cuts take space too, so the size is checked and the texts are shortened again.
  for (let maxChars = room; maxChars > 1; maxChars = Math.floor(maxChars * STEP)) {
    const text = toJsonText(value, { indent: 2, maxChars: 2 * maxChars, isPreview: true })
    if (bytesOf(text) <= room) return frame(text)
  }
  // Even the shortest preview was too large, so the JSON text itself is cut. A UTF-16 unit takes at most three bytes.
  return frame(cutText(toJsonText(value, { maxChars: PREVIEW_BYTES }), Math.max(0, Math.floor(room / 3))))
}

const bytesOf = (text: string): number => new TextEncoder().encode(text).length
