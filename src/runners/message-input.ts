/** Writes into the stdin of a program: the messages to its task, or one text. */
import type { Writable } from 'node:stream'

/**
 * Writes each message and a line break. Takes the next message when the pipe has accepted the previous one.
 * @returns a function that stops the writing
 */
export function writeMessages(stdin: Writable, messages: AsyncIterable<string>): () => void {
  const iterator = messages[Symbol.asyncIterator]()
  const stop = (): void => void iterator.return?.()
  // Writing fails when the program has closed its stdin.
  stdin.on('error', stop)
  stdin.on('close', stop)
  const write = (message: string): Promise<void> =>
    new Promise((resolve) => stdin.write(message.endsWith('\n') ? message : `${message}\n`, () => resolve()))
  const pump = async (): Promise<void> => {
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) await write(next.value)
    stdin.end()
  }
  void pump()
  return stop
}

/** Writes a text, and closes stdin. A program may end without reading it. */
export function writeText(stdin: Writable, text: string): void {
  stdin.on('error', () => undefined)
  stdin.end(text)
}
