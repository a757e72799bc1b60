/** The pages of the documentation site, from which the sidebar is made. A test checks that the list has every document once. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { firstHeading } from './headings.js'

/** If this environment variable is set, the site has no API reference. */
export const WITHOUT_API = 'DOCS_WITHOUT_API'

/** A group of the sidebar. */
export interface SiteSection {
  readonly title: string
  /** Names of documents: `server` is `docs/server.md`. A folder, such as `adr/`, stands for all documents in it. */
  readonly pages: readonly string[]
}

export const siteSections: readonly SiteSection[] = [
  { title: 'Start', pages: ['install', 'first-host', 'first-server', 'first-mcp-client'] },
  {
    title: 'Guides',
    pages: [
      'subagents',
      'agents',
      'adapters',
      'questions',
      'jobs',
      'limits',
      'schedules',
      'monitors',
      'steps',
      'families',
      'server',
      'write-an-instance',
      'extension',
      'extension-tools',
      'mcp',
      'waking',
      'page',
      'inspect',
      'telemetry',
      'testing',
      'coming-from',
      'retention',
      'troubleshooting',
    ],
  },
  { title: 'Concepts', pages: ['terms', 'delivery', 'durability', 'scale'] },
  {
    title: 'Reference',
    pages: ['options', 'objects', 'configuration', 'cli', 'protocol', 'errors', 'tools', 'machines', 'api/'],
  },
  {
    title: 'Project',
    pages: ['architecture', 'guarantees', 'performance', 'tests', 'contributing', 'changelog', 'adr/'],
  },
]

/** Pages that show a file in the root of the repository. The links in such a file start from the root. */
export const includedFiles: Readonly<Record<string, string>> = {
  'contributing.md': 'CONTRIBUTING.md',
  'changelog.md': 'CHANGELOG.md',
}

/** An item of the sidebar, as VitePress takes it. */
export interface SidebarItem {
  readonly text: string
  readonly link?: string
  readonly collapsed?: boolean
  readonly items?: SidebarItem[]
}

const docs = fileURLToPath(new URL('../../docs/', import.meta.url))
const folderTitles: Readonly<Record<string, string>> = { 'api/': 'API', 'adr/': 'Decisions' }

/** Returns the sidebar. The title of a page is its first heading. A folder is closed until one of its pages is open. */
export function sidebar(): SidebarItem[] {
  return siteSections.map(({ title, pages }) => ({ text: title, items: pages.flatMap(itemsOf) }))
}

function itemsOf(page: string): SidebarItem[] {
  if (!page.endsWith('/')) return existsSync(`${docs}${page}.md`) ? [itemOf(`${page}.md`)] : []
  if (!existsSync(docs + page) || (page === 'api/' && WITHOUT_API in process.env)) return []
  const files = readdirSync(docs + page, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'))
  const items = files.sort().map((file) => itemOf(page + file))
  // Without a link, VitePress would make the group a button inside a button.
  return [{ text: folderTitles[page] ?? page, link: items[0]?.link ?? '/', collapsed: true, items }]
}

function itemOf(file: string): SidebarItem {
  const included = includedFiles[file]
  const text = readFileSync(included === undefined ? docs + file : `${docs}../${included}`, 'utf8')
  return { text: firstHeading(text) ?? file, link: `/${file.replace(/\.md$/, '')}` }
}
