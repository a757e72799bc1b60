/** The OpenAI Agents SDK's own scripted model, with a script that reads the last message. */
import { assistantMessage, functionCall, modelResponder, ScriptedModel } from '@openai/agents/testing'
import type { LastWord, Script } from './script.js'

/** The SDK's model takes a list of answers, which the examples do not need. */
const MAX_ANSWERS = 50

export function scriptedOpenAIModel(script: Script): ScriptedModel {
  const answer = modelResponder(({ request }) => {
    const { text, calls } = script(lastWord(request.input))
    return calls.length === 0
      ? [assistantMessage(text)]
      : calls.map(({ id, name, args }) => functionCall(name, args, { callId: id }))
  })
  return new ScriptedModel(Array.from({ length: MAX_ANSWERS }, () => answer))
}

function lastWord(input: Parameters<ScriptedModel['getResponse']>[0]['input']): LastWord {
  if (typeof input === 'string') return { by: 'user', text: input }
  const last = input.at(-1)
  if (last?.type === 'function_call_result') {
    const { output } = last
    if (typeof output === 'string') return { by: 'tool', text: output }
    return { by: 'tool', text: 'text' in output ? output.text : '' }
  }
  const content = last !== undefined && 'content' in last ? last.content : ''
  if (typeof content === 'string') return { by: 'user', text: content }
  const [part] = content
  return { by: 'user', text: part !== undefined && 'text' in part ? part.text : '' }
}
