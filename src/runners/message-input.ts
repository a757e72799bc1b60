/** Writes the messages to a task into the stdin of its program. */
import type { Writable } from 'node:stream'

/**
 * Writes each message as it comes, with a line break at its end, and takes the next one when the program's pipe has taken it.
 * @returns a function that stops it
 */
export function writeMessages(stdin: Writable, messages: AsyncIterable<string>): () => void {
  const iterator = messages[Symbol.asyncIterator]()
  const stop = (): void => void iterator.return?.()
  // A program that reads no more gets no more.
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
