/** Checks the links in documents. Finds each link that leads to no file or heading. */
import { headingsOf, withoutFences } from './headings.js'
import { targetOf } from './links.js'

/** What was found. */
export interface LinkReport {
  /** How many relative links there are. */
  readonly count: number
  /** A text for each dead link. */
  readonly problems: readonly string[]
}

/** @param texts the text of each document, by its path from the root of the repository */
export function deadLinks(texts: ReadonlyMap<string, string>, exists: (path: string) => boolean): LinkReport {
  const anchors = new Map([...texts].map(([file, text]) => [file, anchorsOf(text)]))
  const problems: string[] = []
  let count = 0
  for (const [file, text] of texts) {
    for (const { href, line } of linksOf(text)) {
      const target = targetOf(file, href)
      if (target === undefined) continue
      count += 1
      const { path, anchor } = target
      const isDead = !exists(path) || (anchor !== '' && anchors.get(path)?.has(anchor.slice(1)) === false)
      if (isDead) problems.push(`${file}:${line}: the link ${href} leads nowhere`)
    }
  }
  return { count, problems }
}

function linksOf(markdown: string): { readonly href: string; readonly line: number }[] {
  return withoutFences(markdown)
    .split('\n')
    .flatMap((text, index) => {
      const source = text.replace(/(`+)(?:(?!\1).)*\1/g, '``')
      const marked = source.matchAll(/\]\(<?([^)\s>]+)>?[^)]*\)/g)
      const html = source.matchAll(/ (?:src|srcset|href)="([^"]+)"/g)
      return [...marked, ...html].map(([, href = '']) => ({ href, line: index + 1 }))
    })
}

function anchorsOf(markdown: string): ReadonlySet<string> {
  const named = [...withoutFences(markdown).matchAll(/<\w+ [^>]*?\b(?:id|name)="([^"]+)"/g)]
  return new Set([...headingsOf(markdown).map(({ anchor }) => anchor), ...named.map(([, name = '']) => name)])
}
