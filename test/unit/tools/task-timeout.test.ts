/** Deadlines: the requested one or the default, within the limit, with a note if it was cut. */
import { describe, expect, it } from 'vitest'
import { InvalidSettingError } from '../../../src/errors.js'
import { timeoutPolicy } from '../../../src/tools/task-timeout.js'

describe('the deadline of a task', () => {
  it.each<[string, Parameters<typeof timeoutPolicy>[0], number | undefined, number, string | undefined]>([
    ['is the default when none is asked for', {}, undefined, 900, undefined],
    ['is what was asked for', {}, 60, 60, undefined],
    ['may be the limit itself', {}, 1800, 1800, undefined],
    ['is cut to the limit', {}, 1801, 1800, 'asked: 1801'],
    ['is the limit when none at all is asked for', {}, -1, 1800, 'asked: none'],
    ['is unbounded without a limit', { maxTimeoutSeconds: -1 }, 99_999, 99_999, undefined],
    ['is none without a limit, if asked for', { maxTimeoutSeconds: -1 }, -1, -1, undefined],
    [
      'is none by default, without a limit',
      { defaultTimeoutSeconds: -1, maxTimeoutSeconds: -1 },
      undefined,
      -1,
      undefined,
    ],
    ['is the limit when the default is longer', { maxTimeoutSeconds: 100 }, undefined, 100, 'default: 900'],
    ['is the limit when the default is none', { defaultTimeoutSeconds: -1 }, undefined, 1800, 'default: none'],
  ])('%s', (_what, settings, asked, seconds, wish) => {
    const timeout = timeoutPolicy(settings)(asked)
    expect(timeout.seconds).toBe(seconds)
    expect(timeout.note).toBe(
      wish === undefined ? undefined : `The timeout was cut to the limit of ${seconds} seconds (${wish}).`,
    )
  })

  it('calls a setting that is a function at every call', () => {
    let limit = 1800
    const timeoutOf = timeoutPolicy({ maxTimeoutSeconds: () => limit })
    expect(timeoutOf(600).seconds).toBe(600)
    limit = 300
    expect(timeoutOf(600).seconds).toBe(300)
    limit = 0
    expect(() => timeoutOf(600)).toThrow(InvalidSettingError)
  })

  it.each([{ defaultTimeoutSeconds: 0 }, { maxTimeoutSeconds: -2 }, { maxTimeoutSeconds: 1.5 }])(
    'refuses the setting %j at once',
    (settings) => {
      expect(() => timeoutPolicy(settings)).toThrow(InvalidSettingError)
    },
  )
})
