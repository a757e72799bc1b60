/** Every entry point has a contract of its types: test/types/<subpath>.test-d.ts. */
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const root = new URL('../../', import.meta.url)
const { name, exports } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
  name: string
  exports: Record<string, unknown>
}
const subpaths = Object.keys(exports).filter((subpath) => subpath !== './package.json')

describe('the types of an entry point', () => {
  it.each(subpaths)('have a contract that imports it: %s', (subpath) => {
    const contract = new URL(`${subpath === '.' ? 'index' : subpath.slice(2)}.test-d.ts`, import.meta.url)
    expect(existsSync(contract)).toBe(true)
    const text = readFileSync(contract, 'utf8')
    expect(text).toContain(`from '${name}${subpath.slice(1)}'`)
    // Misuse is part of it.
    expect(text).toContain('@ts-expect-error')
  })
})
