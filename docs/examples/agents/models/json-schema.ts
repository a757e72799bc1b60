/** A model without an SDK, with a script. */
import type { Complete, Message } from '../json-schema.js'
import type { Script } from './script.js'

/** Rejects when the script throws. */
export const scriptedCompletion =
  (script: Script): Complete =>
  (messages) =>
    Promise.resolve(messages).then((asked) => answer(script, asked))

function answer(script: Script, messages: readonly Message[]): Message {
  const last = messages.at(-1)
  const { text, calls } = script({ by: last?.role === 'tool' ? 'tool' : 'user', text: last?.content ?? '' })
  return {
    role: 'assistant',
    content: text,
    calls: calls.map(({ id, name, args }) => ({ id, name, arguments: JSON.stringify(args) })),
  }
}
