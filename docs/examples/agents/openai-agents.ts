/** The same agent on the OpenAI Agents SDK. */
import { Agent, Runner, user, type AgentInputItem, type Model } from '@openai/agents'
import type { AgentTasksOptions } from 'agent-tasks'
import { createTurns } from 'agent-tasks/parts'
import { toOpenAIAgentsTools } from 'agent-tasks/adapters/openai-agents'
import { createTasks } from './tasks.js'
import { recorded, type ExampleAgent, type TurnEvent } from './transcript.js'

export function createOpenAIAgent(model: Model, options?: AgentTasksOptions): ExampleAgent {
  const tasks = createTasks(options)
  const agent = new Agent({
    name: 'Assistant',
    instructions: 'Start long work in the background and go on.',
    model,
    tools: toOpenAIAgentsTools(tasks.tools),
  })
  const runner = new Runner({ tracingDisabled: true })
  let history: AgentInputItem[] = []
  const transcript: TurnEvent[] = []

  const turns = createTurns(
    recorded(transcript, async (text, signal) => {
      const result = await runner.run(agent, [...history, user(text)], { signal })
      history = result.history
      return result.finalOutput ?? ''
    }),
  )

  tasks.setupAsyncTaskAutoTrigger(turns.isBusy$, turns.triggerAgentTurn)

  return {
    say: (text) => turns.take(text),
    transcript,
    onIdle: () => tasks.manager.onIdle(),
    dispose: () => tasks.dispose(),
  }
}
