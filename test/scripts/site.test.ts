/** The documentation site: its sidebar has every document, and links lead to pages where there is one. */
import { existsSync, readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { siteLink } from '../../scripts/site/links.js'
import { sidebar, siteSections, type SidebarItem } from '../../scripts/site/pages.js'

const names = siteSections.flatMap(({ pages }) => pages)

describe('the sidebar', () => {
  it('has every document in exactly one place', () => {
    const documents = readdirSync('docs')
      .filter((file) => file.endsWith('.md') && file !== 'index.md')
      .map((file) => file.slice(0, -'.md'.length))
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
    expect(documents.filter((name) => !names.includes(name))).toEqual([])
    expect(names.filter((name) => !name.endsWith('/') && !documents.includes(name))).toEqual([])
  })

  it('has a title for every page, and links to all decisions', () => {
    const items = (list: readonly SidebarItem[]): SidebarItem[] =>
      list.flatMap((one) => [one, ...items(one.items ?? [])])
    const all = items(sidebar())
    expect(all.filter(({ text }) => text === '')).toEqual([])
    const decisions = readdirSync('docs/adr').map((file) => `/adr/${file.replace('.md', '')}`)
    expect(all.map(({ link }) => link)).toEqual(expect.arrayContaining(decisions))
  })
})

describe('links on the site', () => {
  const page = (path: string) => (path === 'docs/server.md' ? '/server.md' : undefined)
  const link = (file: string, href: string) => siteLink(file, href, page, existsSync)

  it('lead to the page of a document, with the anchor', () => {
    expect(link('docs/adr/0001-x.md', '../server.md#ports')).toBe('/server.md#ports')
    expect(link('CONTRIBUTING.md', 'docs/server.md')).toBe('/server.md')
  })

  it('lead to the repository for any other file', () => {
    expect(link('docs/page.md', '../src/system/clock.ts')).toBe(
      'https://github.com/agent-tasks/agent-tasks/blob/main/src/system/clock.ts',
    )
  })

  it('stay as they are when they lead to elsewhere, to the same page or nowhere', () => {
    for (const href of ['https://a.example/', 'mailto:a@b.example', '#ports', 'no-such-page.md']) {
      expect(link('docs/page.md', href)).toBe(href)
    }
  })
})
