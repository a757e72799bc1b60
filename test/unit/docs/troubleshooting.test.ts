/** docs/troubleshooting.md quotes messages of errors: they are those of the source. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const sources = ['src', 'machines'].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => readFileSync(join(folder, path), 'utf8')),
)
const messages = Array.from(
  readFileSync('docs/troubleshooting.md', 'utf8').matchAll(/^Message: `(.+)`$/gm),
  ([, message]) => message!,
)
/** What stands between the values, which are `…` on the page. Shorter parts are in too many texts to mean anything. */
const partsOf = (message: string): string[] => message.split('…').filter((part) => part.trim().length >= 6)

it('quotes messages', () => {
  expect(messages.length).toBeGreaterThan(8)
})

it.each(messages)('quotes a message of the source: %s', (message) => {
  const parts = partsOf(message)
  expect(parts).not.toEqual([])
  for (const part of parts) {
    expect(
      sources.some((source) => source.includes(part.trim())),
      part,
    ).toBe(true)
  }
})
