/** Links of the documents: where they lead in the repository, and where they lead on the site. */
import { posix } from 'node:path'

/** A link to a file of the repository. */
export interface RepositoryLink {
  /** The path of the file or folder, from the root of the repository. */
  readonly path: string
  /** The anchor with its `#`, or nothing. */
  readonly anchor: string
}

/** What a relative link in a document leads to; undefined for a link to elsewhere. */
export function targetOf(file: string, href: string): RepositoryLink | undefined {
  if (/^([a-z][a-z0-9+.-]*:|\/)/i.test(href)) return undefined
  const [, path = '', anchor = ''] = /^([^#?]*)(#.*)?/.exec(href) ?? []
  const target = path === '' ? file : posix.join(posix.dirname(file), decodeURI(path))
  return { path: target.replace(/\/$/, ''), anchor }
}

const SOURCES = 'https://github.com/agent-tasks/agent-tasks/blob/main/'

/**
 * The link on the site for a link in a document: to the page of a document, and to the repository for any other file. Dead links stay, and fail the build.
 * @param pageOf the address of a document's page; undefined when it has none
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
