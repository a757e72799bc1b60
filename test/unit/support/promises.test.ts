/** The readers of `npm run guarantees`: a misread row or title must not count as kept. */
import { describe, expect, it } from 'vitest'
import { readDefinedInvariants, readRows, readTestTitles } from '../../support/promises.js'

describe('rows of the page', () => {
  const row = '| [A1](#a1) | ends once |'
  const tests = ['### A1', '', '- `test/unit/a.test.ts`', '  - A1: ends once']

  it('reads an invariant with its tests', () => {
    const page = [
      '| | guarantee |',
      '|---|---|',
      row,
      ...tests,
      '- `test/model/b.test.ts`',
      '  - A1: a | b',
      '',
      '## Other',
      '- text',
    ]
    expect(readRows(page.join('\n'))).toEqual([
      {
        invariant: 'A1',
        line: 3,
        tests: [
          { file: 'test/unit/a.test.ts', title: 'A1: ends once' },
          { file: 'test/model/b.test.ts', title: 'A1: a | b' },
        ],
        problems: [],
      },
    ])
  })

  it.each([
    ['names no test', [row]],
    ['names no test', [row, '### A1']],
    ['names no test of test/unit/b', [row, ...tests, '- `test/unit/b.test.ts`']],
    ['neither a file nor a title', [row, ...tests, '`test/a.test.ts` A1']],
    ['neither a file nor a title', [row, '### A1', '  - A1: ends once']],
    ['a second list', [row, ...tests, ...tests]],
    ['not a link', ['| A1 | ends once |', ...tests]],
    ['no row with its promise', tests],
    ['has no promise in words', ['| [A1](#a1) | |', ...tests]],
    ['has 1 cells', ['| [A1](#a1) |', ...tests]],
    ['has 3 cells', ['| [A1](#a1) | one | two |', ...tests]],
  ])('says that a guarantee %s', (problem, page) => {
    expect(readRows(page.join('\n'))[0]?.problems.join()).toContain(problem)
  })
})

describe('titles of a test file', () => {
  it('finds plain, modified, parametrised and property tests', () => {
    const source = `
      describe('group', () => {
        it('plain', f)
        it.concurrent("it's quoted", f)
        test.prop([a, b])('property', f)
        it.each\`x\`(\`backticks\`, f)
      })`
    expect([...readTestTitles(source).running]).toEqual(['group', 'plain', "it's quoted", 'property', 'backticks'])
  })

  it('finds tests that are registered under another name', () => {
    const source = `
      import { it as property } from '@fast-check/vitest'
      const raced = it.extend({ kit })
      property.prop([a])('renamed', f)
      raced('derived', f)`
    expect([...readTestTitles(source).running]).toEqual(['renamed', 'derived'])
  })

  it('does not count comments, other calls, and computed titles', () => {
    const source = "// it('comment', f)\nlog('call')\nexpect.it('no test')\nit(`computed ${x}`, f)"
    expect(readTestTitles(source).running.size).toBe(0)
  })

  it('separates tests that run from tests that do not', () => {
    const source =
      "it.skip('a', f)\ndescribe.skip('b', () => { it('c', f) })\nit.todo('d')\nit.fails('e', f)\nit('f', f)"
    const { running, idle } = readTestTitles(source)
    expect([...running]).toEqual(['f'])
    expect([...idle]).toEqual(['a', 'b', 'c', 'd', 'e'])
  })
})

describe('invariants of a machine', () => {
  it('are the numbered lines of its header only', () => {
    const source =
      '/**\n * One task.\n *\n * T1  ends once\n *  T2: keeps A1\n *      T3 goes on\n */\n/**\n * T9 late\n */'
    expect(readDefinedInvariants(source)).toEqual(['T1', 'T2', 'T3'])
  })
})
