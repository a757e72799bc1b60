/** The same agent on the OpenAI Agents SDK. */
import { Agent, Runner, user, type AgentInputItem, type Model } from '@openai/agents'
import type { AgentTasksOptions } from 'agent-tasks'
import { toOpenAIAgentsTools } from 'agent-tasks/adapters/openai-agents'
import { createTasks } from './tasks.js'
import { createTurns, type ExampleAgent } from './turns.js'

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

  const turns = createTurns(async (text, signal) => {
    const result = await runner.run(agent, [...history, user(text)], { ...(signal && { signal }) })
    history = result.history
    return result.finalOutput ?? ''
  })

  tasks.setupAsyncTaskAutoTrigger(turns.isBusy$, (text, { signal }) => turns.take('tasks', text, signal))

  return {
    say: (text) => turns.take('user', text),
    transcript: turns.transcript,
    onIdle: () => tasks.getAsyncTaskManager().onIdle(),
    dispose: () => tasks.dispose(),
  }
}
