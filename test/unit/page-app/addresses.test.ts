/** The addresses of the parts. */
import { describe, expect, it } from 'vitest'
import { addressOf, readAddress, tokenOf, withParameter } from '../../../src/page/app/addresses.js'

describe('the addresses of the parts', () => {
  it('name a part, its subject and what it shows', () => {
    const { part, subject, query } = readAddress('#/task/async%3Aa%2Fb%3Fc?x=1')
    expect([part, subject, query.get('x')]).toEqual(['task', 'async:a/b?c', '1'])
    expect(readAddress('#/tasks?state=failed').query.get('state')).toBe('failed')
    expect(readAddress('#/task/async:abc').subject).toBe('async:abc')
  })

  it('are the timeline when they are unknown', () => {
    for (const fragment of ['', '#', '#/', '#/nowhere', '#token=abc']) {
      expect(readAddress(fragment).part).toBe('timeline')
    }
  })

  it('hold any subject', () => {
    for (const subject of ['a/b?c#d', '%', '<script>', 'ü \u202e']) {
      expect(readAddress(addressOf('task', subject)).subject).toBe(subject)
    }
    expect(readAddress('#/task/%').subject).toBe('%')
    expect(readAddress(addressOf('task', 'half \ud83d')).subject).toBe('half \ufffd')
  })

  it('change one parameter and keep the others', () => {
    const address = readAddress('#/tasks?text=a+b&state=failed')
    expect(withParameter(address, 'state', 'queued')).toBe('#/tasks?text=a+b&state=queued')
    expect(withParameter(address, 'state', '')).toBe('#/tasks?text=a+b')
    expect(withParameter(readAddress('#/tasks'), 'text', undefined)).toBe('#/tasks')
  })

  it('may have the token, alone or beside a part', () => {
    expect(['#token=a%2Bb', '#/task/async:abc?token=a%2Bb', '#/tasks?state=failed&token=a%2Bb'].map(tokenOf)).toEqual([
      ...['a+b', 'a+b', 'a+b'],
    ])
    expect(['', '#/tasks', '#/tasks/token=a', '#/tasks?text=token'].map(tokenOf)).toEqual([
      ...[undefined, undefined, undefined, undefined],
    ])
  })
})
