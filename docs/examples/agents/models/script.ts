/** What a model would say, for the test models of the SDKs: the examples need no network. */

/** A call of a tool. */
export interface ScriptedCall {
  readonly id: string
  readonly name: string
  readonly args: Record<string, unknown>
}

export interface ScriptedReply {
  readonly text: string
  /** Calls to make before it says anything more. */
  readonly calls: readonly ScriptedCall[]
}

/** What the model was told last. */
export interface LastWord {
  readonly by: 'user' | 'tool'
  readonly text: string
}

/** Decides by the last message alone. It may throw, as a model does that is overloaded. */
export type Script = (last: LastWord) => ScriptedReply

const launch = (id: string, subagent_name: string, goal_prompt: string): ScriptedCall => ({
  id,
  name: 'task',
  args: { subagent_name, goal_prompt, async: true },
})

const say = (text: string): ScriptedReply => ({ text, calls: [] })

/** Launches two tasks when it is asked to start, chats, and reports what it is told of its tasks. */
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
