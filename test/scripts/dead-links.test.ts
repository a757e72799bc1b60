/** Links between documents lead to files and headings that exist. */
import { describe, expect, it } from 'vitest'
import { deadLinks } from '../../scripts/site/dead-links.js'

const check = (texts: Record<string, string>, files: string[] = []) =>
  deadLinks(new Map(Object.entries(texts)), (path) => path in texts || files.includes(path)).problems

describe('links of documents', () => {
  it('may lead to a file, to a folder, to a heading and to elsewhere', () => {
    const text =
      '# One\n## `run()` and more\n[a](../src/a.ts) [b](../src) [c](#run-and-more) [d](https://a.example/x#y)\n'
    expect(check({ 'docs/one.md': text }, ['src/a.ts', 'src'])).toEqual([])
  })

  it('are dead when there is no such file', () => {
    expect(check({ 'docs/one.md': '# One\n\n[a](two.md)\n' })).toEqual(['docs/one.md:3: the link two.md leads nowhere'])
  })

  it('are dead when the document has no such heading', () => {
    const texts = { 'docs/one.md': '[a](two.md#second) [b](two.md#first)', 'docs/two.md': '# Two\n## First\n' }
    expect(check(texts)).toEqual(['docs/one.md:1: the link two.md#second leads nowhere'])
  })

  it('are numbered like the headings when headings repeat', () => {
    expect(check({ 'docs/one.md': '## Same\n## Same\n[a](#same-1) [b](#same-2)' })).toEqual([
      'docs/one.md:3: the link #same-2 leads nowhere',
    ])
  })

  it('are looked for in HTML, and not in code', () => {
    const text = '<img src="pictures/a.png">\n`[a](b.md)`\n```md\n[c](d.md)\n# Four\n```\n[e](#four)\n'
    expect(check({ 'docs/one.md': text })).toEqual([
      'docs/one.md:1: the link pictures/a.png leads nowhere',
      'docs/one.md:7: the link #four leads nowhere',
    ])
  })
})
