/** The script of the SDKs' test models: the examples need no network. */

/** A tool call. */
export interface ScriptedCall {
  readonly id: string
  readonly name: string
  readonly args: Record<string, unknown>
}

export interface ScriptedReply {
  readonly text: string
  /** Tool calls of this message. */
  readonly calls: readonly ScriptedCall[]
}

/** The last message to the model. */
export interface LastWord {
  readonly by: 'user' | 'tool'
  readonly text: string
}

/** Returns the answer to the last message. It may throw, like an overloaded model. */
export type Script = (last: LastWord) => ScriptedReply

const launch = (id: string, subagent_name: string, goal_prompt: string): ScriptedCall => ({
  id,
  name: 'task',
  args: { subagent_name, goal_prompt, async: true },
})

const say = (text: string): ScriptedReply => ({ text, calls: [] })

/** Launches two tasks on request, chats, and reports the results of its tasks. */
export const script: Script = ({ by, text }) => {
  if (by === 'tool') return say(text.startsWith('Async task launched') ? 'Both are running.' : `That failed: ${text}`)
  if (text.startsWith('Start')) {
    return {
      text: '',
      calls: [launch('call-1', 'mathematician', '20000'), launch('call-2', 'notary', 'hello')],
    }
  }
  const results = [...text.matchAll(/"final_message": "(.*)"/g)].map(([, message]) => message)
  return say(results.length > 0 ? `News from my tasks: ${results.join('; ')}.` : 'Nothing is new, ask me anything.')
}
