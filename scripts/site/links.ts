/** Links of the documents: where they lead in the repository, and where they lead on the site. */
import { posix } from 'node:path'

/** A link to a file of the repository. */
export interface RepositoryLink {
  /** The path of the file or folder, from the root of the repository. */
  readonly path: string
  /** The anchor with its `#`; empty if there is none. */
  readonly anchor: string
}

/** Returns the file that a relative link in a document leads to; undefined for a link to another site. */
export function targetOf(file: string, href: string): RepositoryLink | undefined {
  if (/^([a-z][a-z0-9+.-]*:|\/)/i.test(href)) return undefined
  const [, path = '', anchor = ''] = /^([^#?]*)(#.*)?/.exec(href) ?? []
  const target = path === '' ? file : posix.join(posix.dirname(file), decodeURI(path))
  return { path: target.replace(/\/$/, ''), anchor }
}

const SOURCES = 'https://github.com/agent-tasks/agent-tasks/blob/main/'

/**
 * Returns the link on the site for a link in a document. It leads to the page of a document, and to the repository for any other file. A dead link stays
 * unchanged, so that it fails the build.
 * @param pageOf returns the address of a document's page; undefined if it has no page
 */
export function siteLink(
  file: string,
  href: string,
  pageOf: (path: string) => string | undefined,
  exists: (path: string) => boolean,
): string {
  const target = targetOf(file, href)
  if (target === undefined || target.path === file) return href
  const page = pageOf(target.path)
  if (page !== undefined) return page + target.anchor
  return exists(target.path) ? SOURCES + target.path + target.anchor : href
}
