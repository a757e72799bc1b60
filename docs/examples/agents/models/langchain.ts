/** LangChain's own fake chat model, with a script that reads the last message. */
import { AIMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages'
import { fakeModel, type FakeBuiltModel } from '@langchain/core/testing'
import type { Script } from './script.js'

/** LangChain's model takes a list of answers, which the examples do not need. */
const MAX_ANSWERS = 50

export function scriptedLangChainModel(script: Script): FakeBuiltModel {
  const model = fakeModel()
  for (let count = 0; count < MAX_ANSWERS; count += 1) model.respond((messages) => answer(script, messages))
  return model
}

function answer(script: Script, messages: readonly BaseMessage[]): AIMessage {
  const last = messages.at(-1)
  const { text, calls } = script({ by: ToolMessage.isInstance(last) ? 'tool' : 'user', text: last?.text ?? '' })
  return new AIMessage({ content: text, tool_calls: calls.map((call) => ({ ...call, type: 'tool_call' })) })
}
