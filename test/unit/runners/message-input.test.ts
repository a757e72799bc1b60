/** What the stdin of a program that takes messages is left as, when the messages end and when the program closes it. */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { writeMessages } from '../../../src/runners/message-input.js'

describe('the stdin of a program that takes messages', () => {
  it('F7: ends after the last message, when the messages end', async () => {
    const stdin = new PassThrough()
    async function* messages() {
      yield 'one'
      yield 'two\n'
      await Promise.resolve()
    }
    writeMessages(stdin, messages())
    expect(await text(stdin)).toBe('one\ntwo\n')
  })

  it('F7: takes no more messages when the program closes it', async () => {
    const stdin = new PassThrough()

    let returned = 0
    const messages: AsyncIterable<string> = {
      [Symbol.asyncIterator]: () => ({
        next: () => (returned > 0 ? Promise.resolve({ done: true, value: undefined }) : new Promise(() => undefined)),
        return: () => Promise.resolve({ done: true, value: (returned += 1) }),
      }),
    }
    writeMessages(stdin, messages)
    stdin.destroy()
    await new Promise((resolve) => stdin.once('close', resolve))
    expect(returned).toBe(1)
  })
})
