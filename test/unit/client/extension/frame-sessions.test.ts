/** Which sessions of a tab may be used, as the browser reports its frames. */
import { expect, it } from 'vitest'
import type { DebuggeeEvent } from '../../../../src/client/extension/debuggee.js'
import { createFrameSessions } from '../../../../src/client/extension/frame-sessions.js'
import { refusalOf } from '../../../../src/client/extension/page-access.js'

const VIEWER = 'chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html'

function setUp() {
  const sessions = createFrameSessions(refusalOf)
  const take = (method: string, params: object, sessionId?: string): void =>
    sessions.take({ method, params, sessionId } as DebuggeeEvent)
  return {
    sessions,
    attach: (sessionId: string, url: string, parent?: string) =>
      take('Target.attachedToTarget', { sessionId, targetInfo: { targetId: `frame of ${sessionId}`, url } }, parent),
    detach: (sessionId: string) => take('Target.detachedFromTarget', { sessionId }),
    navigate: (sessionId: string, url: string, rest = {}) =>
      take('Page.frameNavigated', { frame: { id: `frame of ${sessionId}`, url, ...rest } }, sessionId),
  }
}

it('E1: refuses the session of a frame by what it shows, and those of the frames in it', () => {
  const { sessions, attach, detach } = setUp()
  attach('web', 'https://example.org/')
  attach('viewer', VIEWER, 'web')
  attach('inner', 'about:blank', 'viewer')
  expect(sessions.allowed).toEqual([undefined, 'web'])
  expect(sessions.refused.map(({ frameId, parentSessionId }) => [frameId, parentSessionId])).toEqual([
    ['frame of viewer', 'web'],
    ['frame of inner', 'viewer'],
  ])
  expect(sessions.refusalIn('viewer')).toMatchObject({ code: 'PAGE_NOT_ALLOWED' })
  expect(sessions.refusalIn('inner')).toMatchObject({ code: 'PAGE_NOT_ALLOWED' })
  expect(sessions.refusalIn('unknown')).toMatchObject({ code: 'REF_GONE' })
  detach('inner')
  detach('viewer')
  expect(sessions.refused).toEqual([])
})

it('E1: follows a frame to another page, and to an error page, which is one of the browser', () => {
  const { sessions, attach, navigate } = setUp()
  attach('frame', 'https://example.org/')
  navigate('frame', 'chrome-error://chromewebdata/', { unreachableUrl: 'https://gone.example/' })
  expect(sessions.allowed).not.toContain('frame')
  navigate('frame', VIEWER)
  expect(sessions.allowed).not.toContain('frame')
  navigate('frame', 'https://example.org/')
  expect(sessions.allowed).toContain('frame')
})

it('has one session for a frame that was attached again', () => {
  const { sessions, attach } = setUp()
  attach('viewer', VIEWER)
  sessions.take({
    method: 'Target.attachedToTarget',
    sessionId: undefined,
    params: { sessionId: 'again', targetInfo: { targetId: 'frame of viewer', url: 'https://example.org/' } },
  } as never)
  expect(sessions.allowed).toEqual([undefined, 'again'])
  expect(sessions.refused).toEqual([])
})
