/** The readers of `npm run docs:run`: the code blocks of a document, and the programs they make up. */
import { describe, expect, it } from 'vitest'
import { readBlocks, readPrograms } from '../../scripts/doc-blocks.js'

const document = (...lines: string[]): string => lines.join('\n')

describe('the blocks of a document', () => {
  it('have a line, a language and flags', () => {
    expect(readBlocks('a.md', document('Text', '```ts continue', 'one()', '```', '```', 'plain', '```'))).toEqual([
      { file: 'a.md', line: 2, language: 'ts', flags: ['continue'], text: 'one()' },
      { file: 'a.md', line: 5, language: '', flags: [], text: 'plain' },
    ])
  })

  it('may contain fences that are shorter than their own', () => {
    expect(readBlocks('a.md', document('````md', '```ts', '```', '````'))).toMatchObject([{ text: '```ts\n```' }])
  })

  it('must end', () => {
    expect(() => readBlocks('a.md', document('', '```ts', 'one()'))).toThrow('a.md:2: this block has no end')
  })
})

describe('the programs of a document', () => {
  const programs = (...lines: string[]) => readPrograms(readBlocks('a.md', document(...lines)))

  it('are its ts blocks, each on its own unless it continues the one before', () => {
    const text = document("import b from 'b'", "import a from 'a'", 'a()', 'b()')
    expect(
      programs(
        ...['```ts', "import a from 'a'", 'a()', '```', '```sh', 'ls', '```'],
        ...['```ts continue', "import b from 'b'", 'b()', '```', '```ts', 'alone()', '```'],
      ),
    ).toEqual([
      { file: 'a.md', line: 1, text },
      { file: 'a.md', line: 12, text: 'alone()' },
    ])
  })

  it('cannot continue a block that does not exist', () => {
    expect(() => programs('```ts continue', '```')).toThrow('a.md:1')
  })
})
