/** Every entry point has a contract of its types: test/types/<subpath>.test-d.ts, or .test.ts. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { sourceAliases } from '../support/source-aliases.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const { name, exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
  name: string
  exports: Record<string, unknown>
}
const subpaths = Object.keys(exports).filter((subpath) => !subpath.endsWith('.json'))

/** The two ways to import an entry point: by its name, and from its source. */
function specifiersOf(specifier: string): string[] {
  const source = sourceAliases().find(({ find }) => find.test(specifier))?.replacement ?? ''
  return [`'${specifier}'`, `/${source.slice(root.length).replace(/\.ts$/, '.js')}'`]
}

describe('the types of an entry point', () => {
  it.each(subpaths)('have a contract that imports it, misuse included: %s', (subpath) => {
    const path = `${root}test/types/${subpath === '.' ? 'index' : subpath.slice(2)}`
    const contract = [`${path}.test-d.ts`, `${path}.test.ts`].find(existsSync)
    expect(contract, `no ${path}.test-d.ts`).toBeDefined()
    const text = readFileSync(contract ?? '', 'utf8')
    expect(specifiersOf(name + subpath.slice(1)).some((specifier) => text.includes(specifier))).toBe(true)
    expect(text).toContain('@ts-expect-error')
  })
})
