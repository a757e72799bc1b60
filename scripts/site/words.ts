/** Counts the words of a document that people read. */
import { withoutFences } from './headings.js'

/** Counts the words of prose and tables. Numbers, tags, code blocks, comments, link targets and the marks of Markdown do not count. */
export function wordsOf(markdown: string): number {
  const text = withoutFences(markdown)
    .replace(/^---\n[^]*?\n---\n/, '')
    .replace(/<!--[^]*?-->/g, ' ')
    .replace(/<\/?[a-z][^>]*>/g, ' ')
    .replace(/\]\([^)]*\)/g, ']')
  return text.split(/[\s|]+/).filter((word) => /\p{L}/u.test(word)).length
}
