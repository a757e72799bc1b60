/** What the person reads about the connection. */
import { expect, it } from 'vitest'
import { ConnectionError, TaskServerError } from '../../../../src/client/client-errors.js'
import { badgeOf } from '../../../../src/client/extension/badge.js'
import { problemOf, readState, STOPPED } from '../../../../src/client/extension/connection-state.js'
import { DEFAULT_SETTINGS } from '../../../../src/client/extension/settings.js'

const settings = { ...DEFAULT_SETTINGS, token: 'secret-token' }

it.each([
  [
    new ConnectionError('CONNECTION_FAILED', 'refused'),
    /^No server answers at http:.*3300/,
    /npx agent-tasks serve/,
    false,
  ],
  [new ConnectionError('REQUEST_TIMEOUT', 'slow'), /^No server answers/, /npx agent-tasks serve/, false],
  [new ConnectionError('CONNECTION_LOST', 'gone'), /was lost/, /connects again/, false],
  [new ConnectionError('BAD_ANSWER', 'html'), /not an agent-tasks server/, /the version of the extension/, true],
  [new TaskServerError('HTTP_404', 'none', 404), /not an agent-tasks server/, /the version of the extension/, true],
  [new TaskServerError('HTTP_502', 'none', 502), /not an agent-tasks server/, /the version of the extension/, false],
  [new TaskServerError('UNAUTHORIZED', 'token', 401), /does not accept this token/, /AUTH_TOKENS/, true],
  [new TaskServerError('FOREIGN_ORIGIN', 'no', 403), /does not allow this extension/, /Update it/, true],
  [new TaskServerError('FOREIGN_HOST', 'no', 403), /the name 127\.0\.0\.1/, /ALLOWED_HOSTS/, true],
  [
    new TaskServerError('INSTANCE_ID_IN_USE', 'used', 409),
    /another instance with the name browser/,
    /another name/,
    false,
  ],
  [new TaskServerError('TAKEN_OVER', 'taken'), /Another program/, /another name/, true],
  [new TaskServerError('INSTANCE_DISCONNECTED', 'gone'), /has disconnected this browser/, /Connect now/, true],
  [new TaskServerError('SHUTTING_DOWN', 'It shuts down', 503), /^It shuts down$/, /tries again/, false],
  [new TypeError('odd'), /^odd$/, /tries again/, false],
  ['text', /^text$/, /tries again/, false],
])('explains %s, and what to do', (error, what, advice, isLasting) => {
  const problem = problemOf(error, settings)
  expect(problem).toMatchObject({
    what: expect.stringMatching(what) as string,
    advice: expect.stringMatching(advice) as string,
    isLasting,
  })
  expect(JSON.stringify(problem)).not.toContain('secret-token')
})

it('asks for a token where none was entered', () => {
  const refused = new TaskServerError('UNAUTHORIZED', 'token', 401)
  expect(problemOf(refused, DEFAULT_SETTINGS).what).toBe('The server asks for a token.')
})

it('reads a stored state, and takes anything else for none', () => {
  const problem = problemOf('text', settings)
  expect(readState({ phase: 'connecting', problem })).toEqual({ phase: 'connecting', problem })
  for (const unreadable of [undefined, null, { phase: 'asleep' }]) expect(readState(unreadable)).toBe(STOPPED)
})

it('shows on the icon whether it is connected, working or stopped', () => {
  const problem = problemOf('It broke.', settings)
  const badges = [
    badgeOf({ phase: 'connected' }, 0),
    badgeOf({ phase: 'connected' }, 2),
    badgeOf({ phase: 'connecting' }, 0),
    badgeOf({ phase: 'connecting', problem }, 1),
    badgeOf(STOPPED, 0),
    badgeOf({ phase: 'stopped', problem }, 0),
  ]
  expect(badges.map(({ text, title }) => `${text}: ${title}`)).toEqual([
    'on: agent-tasks: connected. Click to put this tab under control',
    'busy: agent-tasks: a command is running',
    '...: agent-tasks: not connected',
    '...: agent-tasks: not connected. It broke.',
    'off: agent-tasks: stopped',
    'off: agent-tasks: stopped. It broke.',
  ])
})
