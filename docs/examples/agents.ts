/**
 * An agent on each SDK launches two background tasks, continues to chat, and is woken when they have ended. The models are
 * the SDKs' own test models: no network, no key.
 *
 * Run it after `npm run build` with `node --import tsx docs/examples/agents.ts [ai-sdk | openai-agents | langchain | json-schema]`.
 */
import { disposeOnSignals } from 'agent-tasks'
import { createAiSdkAgent } from './agents/ai-sdk.js'
import { createPlainAgent } from './agents/json-schema.js'
import { createLangChainAgent } from './agents/langchain.js'
import { scriptedAiSdkModel } from './agents/models/ai-sdk.js'
import { scriptedCompletion } from './agents/models/json-schema.js'
import { scriptedLangChainModel } from './agents/models/langchain.js'
import { scriptedOpenAIModel } from './agents/models/openai-agents.js'
import { script } from './agents/models/script.js'
import { createOpenAIAgent } from './agents/openai-agents.js'
import type { ExampleAgent } from './agents/transcript.js'

const agents: Record<string, () => ExampleAgent> = {
  'ai-sdk': () => createAiSdkAgent(scriptedAiSdkModel(script)),
  'openai-agents': () => createOpenAIAgent(scriptedOpenAIModel(script)),
  langchain: () => createLangChainAgent(scriptedLangChainModel(script)),
  'json-schema': () => createPlainAgent(scriptedCompletion(script)),
}

async function show(name: string, agent: ExampleAgent): Promise<void> {
  const unsubscribe = disposeOnSignals(agent.dispose)
  await Promise.all([agent.say('Start both jobs.'), agent.say('What is new meanwhile?')])
  await agent.onIdle()
  await agent.dispose()
  unsubscribe()
  console.log(`\n# ${name}`)
  for (const { type, from, text, answer = '' } of agent.transcript) {
    if (type === 'began') console.log(from === 'user' ? `user:   ${text}` : '(woken by its tasks)')
    if (type === 'ended') console.log(`agent:  ${answer}`)
  }
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !Object.hasOwn(agents, name))
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(', ')}. Known: ${Object.keys(agents).join(', ')}.`)
  process.exitCode = 1
} else {
  for (const [name, create] of Object.entries(agents)) {
    if (wanted.length === 0 || wanted.includes(name)) await show(name, create())
  }
}
