/** The check of `npm run words`: it finds each refused word wherever people read it, and leaves code alone. */
import { describe, expect, it } from 'vitest'
import { ALLOWED, describeFound, findWords, REFUSED } from '../../scripts/word-list.js'

/** The words found, with their lines. */
const found = (file: string, ...lines: string[]) =>
  findWords(file, lines.join('\n')).map(({ line, word }) => `${line} ${word}`)

it('refuses these words', () => {
  const words = [
    'told',
    'tell',
    'tells',
    'telling',
    'whoever',
    'none of',
    'of which',
    'so long',
    'nothing else',
    'as it is',
  ]
  expect(REFUSED.map(({ word }) => word)).toEqual(words)
})

describe.each(REFUSED)('"$word"', ({ word, write }) => {
  it('is found in comments, TSDoc, strings and templates of source files', () => {
    expect(
      found(
        'src/a.ts',
        `/** One ${word} two. */`,
        `const a = 'one ${word} two' // One ${word} two.`,
        `const b = \`one ${word} \${a} two ${word} \${a} three ${word} four\``,
        `const c = f({ /* one ${word} two */ a: \`one ${word} two\` })`,
        `// One ${word} two.`,
      ),
    ).toEqual([1, 2, 2, 3, 3, 3, 4, 4, 5].map((line) => `${line} ${word}`))
  })

  it('is found in the text, the attributes and the comments of JSX', () => {
    expect(
      found(
        'src/a.tsx',
        `const a = <p title="one ${word} two">`,
        `  one ${word} two {b} three ${word} four`,
        `  {/* one ${word} two */}`,
        '</p>',
      ),
    ).toEqual([1, 2, 2, 3].map((line) => `${line} ${word}`))
  })

  it('is found in prose, whatever its case', () => {
    expect(found('a.md', `One ${word.toUpperCase()} two.`, '', `- **${word}**`)).toEqual([
      `1 ${word.toUpperCase()}`,
      `3 ${word}`,
    ])
  })

  it('is reported with its place and a better word', () => {
    expect(findWords('a.md', `\n${word}`).map(describeFound)).toEqual([`a.md:2: "${word}" (write: ${write})`])
  })

  it('may be in code, in fenced code, in inline code, and a part of another word', () => {
    const joined = word.replaceAll(' ', '')
    expect(
      found('a.md', 'One', '```ts', `// ${word}`, '```', `two \`${word}\` three`, `un${joined} ${joined}ing-x`),
    ).toEqual([])
    expect(found('src/a.ts', `const ${joined} = x.${joined} // calls \`${joined}\``, `f('un${joined}')`)).toEqual([])
  })
})

it('fenced code ends where its fence does', () => {
  expect(found('a.md', '```ts', '// told', '```', 'told', 'One')).toEqual(['4 told'])
})

describe('a phrase', () => {
  it('is found when it goes on in the next line, and is reported in its first', () => {
    expect(found('a.md', 'One', 'two none', 'of three')).toEqual(['2 none of'])
    expect(found('src/a.ts', '/**', ' * One none', ' * of two.', ' */', '// three as it', '// is four')).toEqual([
      '2 none of',
      '5 as it is',
    ])
  })
})

describe('an allowed text', () => {
  it('is exact', () => {
    const allowed = ['Whoever calls.']
    expect(findWords('a.md', 'Whoever calls. Whoever waits.', allowed)).toMatchObject([{ line: 1, word: 'Whoever' }])
    expect(findWords('src/a.ts', "f('Whoever calls.')", allowed)).toEqual([])
    expect(findWords('src/a.ts', "f('whoever calls.')", allowed)).toHaveLength(1)
  })

  it('contains a refused word, or it would not be needed', () => {
    for (const text of ALLOWED) expect(findWords('a.md', text, []), text).not.toEqual([])
  })
})
