/** The documentation site. `npm run docs:site` builds it; CONTRIBUTING.md has its parts. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig, type MarkdownRenderer } from 'vitepress'
import * as machines from '../../machines/index.js'
import { layOut } from '../../scripts/chart-layout.js'
import { isMachine } from '../../scripts/charts.js'
import { chartSvg } from '../../scripts/site/chart-svg.js'
import { slugOf } from '../../scripts/site/headings.js'
import { siteLink } from '../../scripts/site/links.js'
import { WITHOUT_API, includedFiles, sidebar } from '../../scripts/site/pages.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const icon = readFileSync(`${root}src/page/app/icon.svg`, 'utf8')
const exists = (path: string): boolean => existsSync(root + path)
const includedAs = new Map(Object.entries(includedFiles).map(([page, file]) => [file, page]))

/** The pictures of the machines, by their ids. */
const charts = new Map(
  await Promise.all(
    Object.values(machines)
      .filter(isMachine)
      .map(async (machine) => [machine.id, chartSvg(await layOut(machine))] as const),
  ),
)

export default defineConfig({
  title: 'agent-tasks',
  description: 'Background tasks for AI agents: every result is delivered exactly once.',
  lang: 'en',
  srcExclude: ['examples/**', 'pictures/**', ...(WITHOUT_API in process.env ? ['api/**'] : [])],
  outDir: '../reports/site',
  cacheDir: '../reports/site-cache',
  metaChunk: true,
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  markdown: {
    // GitHub's colours for high contrast: the others are too pale for small text.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    // The anchors of GitHub, so that a link leads to the same heading on both.
    anchor: { slugify: slugOf },
    config: (markdown) => {
      linkToPages(markdown)
      drawMachines(markdown)
      unmarkEmptyHeaders(markdown)
    },
  },
  themeConfig: {
    sidebar: sidebar(),
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        // Guides and concepts come before the API, decisions and changes. The browser gets the text of this function.
        miniSearch: {
          searchOptions: { boostDocument: (id: string) => (/\/(api|adr|changelog|guarantees)\b/.test(id) ? 0.2 : 1) },
        },
        // A name of the API is one entry, with its parameters: their headings are left out.
        _render: (source, env, markdown) => {
          const html = markdown.render(source, env)
          return env.relativePath.startsWith('api/') ? html.replace(/<h([4-6])\b[^]*?<\/h\1>/g, '') : html
        },
      },
    },
    socialLinks: [{ icon: 'github', link: 'https://github.com/agent-tasks/agent-tasks' }],
  },
})

/** Links between documents lead to pages, and links to other files to the repository. */
function linkToPages(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('repository-links', ({ tokens, env }) => {
    const { relativePath = '' } = env as { relativePath?: string }
    const file = includedFiles[relativePath] ?? `docs/${relativePath}`
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null
      if (href !== null) token.attrSet('href', siteLink(file, href, pageOf, exists))
    }
    // Vite takes `pictures/x.png` in HTML for a package.
    for (const token of tokens.filter(({ type }) => type === 'html_block')) {
      token.content = token.content.replace(/ (src|srcset)="(?=pictures\/)/g, ' $1="./')
    }
  })
}

function pageOf(path: string): string | undefined {
  if (path === 'README.md') return '/'
  const page = includedAs.get(path) ?? (/^docs\/.+\.md$/.test(path) ? path.slice('docs/'.length) : undefined)
  return page === undefined ? undefined : `/${page}`
}

/** A diagram of a machine is drawn here, since mermaid would need a script of a megabyte in the browser. */
function drawMachines(markdown: MarkdownRenderer): void {
  const { fence } = markdown.renderer.rules
  markdown.renderer.rules.fence = (tokens, index, ...rest) => {
    if (tokens[index]?.info.trim() !== 'mermaid') return fence?.(tokens, index, ...rest) ?? ''
    const heading = tokens.slice(0, index).findLastIndex(({ type }) => type === 'heading_open')
    const id = tokens[heading + 1]?.content ?? ''
    const svg = charts.get(id)
    if (svg === undefined) throw new Error(`A mermaid block needs the heading of a machine, not '${id}'.`)
    return `<div v-pre>${svg}</div>`
  }
}

/** Markdown has no table without a head. A header cell without text is read to nobody, so it becomes an ordinary cell. */
function unmarkEmptyHeaders(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('empty-headers', ({ tokens }) => {
    for (const [index, token] of tokens.entries()) {
      const [content, end] = tokens.slice(index + 1, index + 3)
      if (token.type !== 'th_open' || content?.content !== '' || end === undefined) continue
      token.tag = 'td'
      end.tag = 'td'
    }
  })
}
