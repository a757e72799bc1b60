/** Saves files with the browser. */
import { after } from './browser-clock.js'

/** How long the content stays available, in ms. The browser may first ask the person where to save the file. */
const SAVING_MS = 60_000

export function saveAs(content: Blob, name: string): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  after(SAVING_MS, () => URL.revokeObjectURL(url))
}
