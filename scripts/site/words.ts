/** The length of a document for its readers. */
import { withoutFences } from './headings.js'

/** How many words of prose and tables a document has: without numbers, tags, code blocks, comments, the targets of links and the marks of Markdown. */
export function wordsOf(markdown: string): number {
  const text = withoutFences(markdown)
    .replace(/^---\n[^]*?\n---\n/, '')
    .replace(/<!--[^]*?-->/g, ' ')
    .replace(/<\/?[a-z][^>]*>/g, ' ')
    .replace(/\]\([^)]*\)/g, ']')
  return text.split(/[\s|]+/).filter((word) => /\p{L}/u.test(word)).length
}
