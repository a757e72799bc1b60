/** Files that the browser saves. */
import { after } from './browser-clock.js'

/** How long the browser may take to begin saving, in ms. */
const SAVING_MS = 60_000

export function saveAs(content: Blob, name: string): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  after(SAVING_MS, () => URL.revokeObjectURL(url))
}
