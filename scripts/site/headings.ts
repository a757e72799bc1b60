/** The headings of a Markdown document, and the anchors that GitHub and the site give them. */

/** A heading, as plain text. */
export interface Heading {
  readonly level: number
  readonly text: string
  /** The anchor, without `#`. If an anchor occurs again, it gets a number. */
  readonly anchor: string
}

/** Returns every heading outside of fenced code blocks. */
export function headingsOf(markdown: string): Heading[] {
  const used = new Map<string, number>()
  return withoutFences(markdown)
    .split('\n')
    .flatMap((line) => {
      const [, marks, source] = /^(#{1,6}) +(.+?)(?: +#+)? *$/.exec(line) ?? []
      if (marks === undefined || source === undefined) return []
      const text = plainText(source)
      const slug = slugOf(text)
      const count = used.get(slug) ?? 0
      used.set(slug, count + 1)
      return [{ level: marks.length, text, anchor: count === 0 ? slug : `${slug}-${count}` }]
    })
}

export const firstHeading = (markdown: string): string | undefined => headingsOf(markdown)[0]?.text

/** Returns the anchor of a heading as GitHub makes it: the letters, digits, `-` and `_` of the text in lower case, and `-` for each space. */
export function slugOf(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')
}

/** Removes the fenced code blocks from a document. The line numbers stay the same. */
export function withoutFences(markdown: string): string {
  let fence: string | undefined
  return markdown
    .split('\n')
    .map((line) => {
      const mark = /^ *(`{3,}|~{3,})/.exec(line)?.[1]
      if (fence === undefined) {
        fence = mark
        return mark === undefined ? line : ''
      }
      if (line.trim() === fence) fence = undefined
      return ''
    })
    .join('\n')
}

/** Removes the marks of code, emphasis and links. */
function plainText(source: string): string {
  return source
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/`([^`]*)`/g, '$1')
    .replace(/\*\*?([^*]+)\*\*?/g, '$1')
    .replace(/\\([\\<>_*[\]])/g, '$1')
}
