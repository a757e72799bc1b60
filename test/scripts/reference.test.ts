/** The pages made from the sources: their defaults are those of the code, and every name has a description. */
import { describe, expect, it } from 'vitest'
import { configurationPage } from '../../scripts/reference/configuration-page.js'
import { defaultsIn, literalOf, splitDefault } from '../../scripts/reference/defaults.js'
import { errorsPage } from '../../scripts/reference/errors-page.js'
import { objectsPage } from '../../scripts/reference/objects-page.js'
import { optionsPage } from '../../scripts/reference/options-page.js'
import { wordsOf } from '../../scripts/site/words.js'

describe('the default of an option', () => {
  it.each([
    ['How long, in ms. Default 5000.', { value: '5000', meaning: 'How long, in ms.' }],
    ["The source of time. Default: the platform's.", { value: "the platform's", meaning: 'The source of time.' }],
    ['How much. Default 1.5. More of it.', { value: '1.5', meaning: 'How much. More of it.' }],
    ['How long. -1 (default) for no limit.', { value: '-1', meaning: 'How long. -1 (default) for no limit.' }],
    ['The name.', { value: '', meaning: 'The name.' }],
  ])('is split from %s', (text, parts) => {
    expect(splitDefault(text)).toEqual(parts)
  })

  it.each([
    ['5000', '5000'],
    ['16 MiB', String(16 * 1024 * 1024)],
    ['`main`', 'main'],
    ['1800000 (30 minutes)', '1800000'],
    ['false', 'false'],
    ['1 for each key', undefined],
    ['the working directory', undefined],
  ])('%s is the value %s', (text, value) => {
    expect(literalOf(text)).toBe(value)
  })

  it('is read from patterns, from what follows ??, and through constants', () => {
    const found = defaultsIn([
      'src/client/reconnection.ts',
      'src/client/task-client.ts',
      'src/client/connect-instance.ts',
    ])
    expect(found.get('initialMs')).toEqual(new Set(['250']))
    expect(found.get('maxFrameBytes')).toEqual(new Set([String(1024 * 1024)]))
    expect(found.get('heartbeatMs')).toContain('30000')
  })
})

describe('the pages of options, objects, configuration and errors', () => {
  it.each([
    ['options', optionsPage],
    ['objects', objectsPage],
    ['configuration', configurationPage],
    ['errors', errorsPage],
  ])('have a description of every name, and the defaults of the code: %s', (_, make) => {
    expect(make().problems).toEqual([])
  })

  it('have a table for each group of options of a manager, below the comment of its interface', () => {
    const { page } = optionsPage()
    for (const name of ['outputFiles', 'queue', 'ownerLimits', 'schedules', 'monitors']) {
      expect(page).toMatch(new RegExp(`### \`${name}\`\\n\\n\\S[^\\n]+\\n\\n\\| option \\|`))
    }
    expect(page).toContain('\n\nLimits of schedules. See [schedules](schedules.md).\n\n')
  })

  it('have every environment variable and every code', () => {
    const { page } = configurationPage()
    for (const name of ['`PORT`', '`TASKS_WS_PORT`', '`AUTH_TOKENS`']) expect(page).toContain(name)
    const errors = errorsPage().page
    for (const name of ['TASK_LIMIT', 'STORE_IN_USE', 'CONNECTION_LOST', 'STEP_NESTED', 'QUEUE_FULL', 'TOO_DEEP']) {
      expect(errors).toContain(`\`${name}\``)
    }
  })
})

describe('the page of objects', () => {
  it('has each member as it is called, with its errors', () => {
    const { page } = objectsPage()
    expect(page).toMatch(/\| `send\(text, options\?\)` \| .* \| .*`OWN_TURN`.* \|/)
    expect(page).toMatch(/\| `launch\(name, goal, \.\.\.options\)` \|/)
    expect(page).toMatch(/\| `isBusy` \| Whether a turn runs or waits\. \| {2}\|/)
  })
})

describe('the page of errors', () => {
  it('has one row for each code of a class, with the public class', () => {
    const [, codes = ''] = errorsPage().page.split(/^## .*$/m)
    const rows = codes.split('\n').filter((line) => line.startsWith('| `'))
    const cells = rows.map((row) => row.split(' | '))
    expect(cells.map(([, shown = '']) => shown).filter((shown) => !/^`\w+Error`$/.test(shown))).toEqual([])
    const names = cells.flatMap(([first = '']) => first.match(/\w+/g) ?? [])
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
    expect(rows.find((row) => row.includes('`STORE_IN_USE`'))).toContain('`StoreError`')
  })
})

describe('the words of a document', () => {
  it('are those that are read: not code, comments or the targets of links', () => {
    expect(
      wordsOf('# Two words\n<!-- not this -->\n```ts\nnot this\n```\n[a link](to/a-page.md) | `code` |\n|---|\n'),
    ).toBe(5)
  })
})
