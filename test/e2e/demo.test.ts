/** `npm run demo`, as a newcomer runs it. */
import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

const demo = (...args: readonly string[]) =>
  spawnSync('npm', ['run', '--silent', 'demo', '--', ...args], { encoding: 'utf8', timeout: 55_000 })

/** The texts in the order in which they must be printed. */
function expectInOrder(printed: string, texts: readonly string[]): void {
  let from = 0
  for (const text of texts) {
    const at = printed.indexOf(text, from)
    expect(at, `'${text}' in ${printed.slice(from)}`).toBeGreaterThanOrEqual(0)
    from = at + text.length
  }
}

it('the demo says what it shows, prints a message as the agent reads it, and delivers each result once', () => {
  const { status, stdout } = demo()
  expectInOrder(stdout, [
    'Two tasks fail on purpose ("clumsy" has an error, "sleeper" misses its deadline), and the user cancels one',
    'the agent launches its background tasks',
    'the agent reads this message:',
    `| Output of task clumsy-`,
    'reported (delivery): the model is overloaded',
    'failed        2  (on purpose: clumsy and sleeper)',
    'cancelled     1  (on purpose: stubborn)',
    'Every result was delivered exactly once.',
    'An independent recorder agrees',
  ])
  expect(status).toBe(0)
})

it('the demo with --crash says what it shows, and delivers each result once over both hosts', () => {
  const { status, stdout } = demo('--crash')
  expectInOrder(stdout, [
    'One task fails on purpose ("thinker")',
    'a host is started',
    'the host was killed (SIGKILL), and is started again',
    'failed        1  (on purpose: thinker)',
    'Every result was delivered exactly once.',
  ])
  expect(status).toBe(0)
})
