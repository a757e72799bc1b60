/** What the page says of its server, in the title and above the parts. */
import { describe, expect, it } from 'vitest'
import { lossText, refusalText } from '../../../src/page/app/shell/connection-words.js'
import { pageTitle } from '../../../src/page/app/shell/page-title.js'

describe('the title', () => {
  const shown = { part: 'tasks', asking: 0, state: 'live', host: '127.0.0.1:3320' } as const

  it('says which part of which server it is, how many tasks ask, and that the server is lost', () => {
    expect(pageTitle(shown)).toBe('Tasks · 127.0.0.1:3320 · agent-tasks')
    expect(pageTitle({ ...shown, part: 'task', task: 'Tidy\u202e' })).toBe(
      'Tidy\\u202e · Task · 127.0.0.1:3320 · agent-tasks',
    )
    expect(pageTitle({ ...shown, asking: 2 })).toMatch(/^\(2\) Tasks/)
    expect(pageTitle({ ...shown, asking: 2, state: 'lost' })).toMatch(/^Lost · Tasks/)
    expect(pageTitle({ ...shown, state: 'refused' })).toMatch(/^No access · Tasks/)
  })
})

describe('a refused page', () => {
  it('says why, and where the link is', () => {
    const texts = [
      refusalText({ hasToken: false, hasSeen: false }),
      refusalText({ hasToken: true, hasSeen: false }),
      refusalText({ hasToken: true, hasSeen: true }),
    ]
    expect(texts[0]).toMatch(/^This address has no token/)
    expect(texts[1]).toMatch(/^This is not the token of this server/)
    expect(texts[2]).toMatch(/^The server was started again/)
    for (const text of texts) expect(text).toMatch(/paste it here.*in its terminal/)
  })
})

describe('a lost server', () => {
  it('may have to be started again; what is shown is old', () => {
    expect(lossText('It does not answer.', true)).toMatch(
      /^It does not answer\. The page still shows the last state that it received\..*start it again/,
    )
    expect(lossText('It does not answer.', false)).not.toMatch(/last state/)
  })
})
