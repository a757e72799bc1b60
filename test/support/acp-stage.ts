/** Runs an ACP agent as a real program (`programs/acp-agent.mjs`). The test describes what the agent does. */
import { fileURLToPath } from 'node:url'
import { acpRunner } from '../../src/runners/acp/index.js'
import type { TaskAnswer } from '../../machines/records.js'
import type { OutputObject } from '../../machines/records.js'
import type { TaskQuestionInput } from '../../src/protocol/task-questions.js'
import { createRunContext, runInput, type RecordedContext } from './run-context.js'
import type { AcpRunnerOptions } from '../../src/runners/acp/acp-options.js'

const script = fileURLToPath(new URL('programs/acp-agent.mjs', import.meta.url))

/** What the agent does. */
export interface AgentScript {
  readonly acts?: readonly (readonly [string, ...unknown[]])[]
  readonly [field: string]: unknown
}

/** The options of a runner that starts the agent. */
export const agentOptions = (does: AgentScript, more: Partial<AcpRunnerOptions> = {}): AcpRunnerOptions => ({
  command: process.execPath,
  args: [script, JSON.stringify(does)],
  permissions: 'ask',
  ...more,
})

/** A context that answers the questions of a run in order. A question without an answer stays open until its signal aborts. */
export function answering(...answers: readonly (TaskAnswer | string)[]) {
  const questions: TaskQuestionInput[] = []
  const waiting = [...answers]
  const context: RecordedContext = {
    ...createRunContext(),
    ask: (question, { signal } = {}) => {
      questions.push(question)
      const answer = waiting.shift()
      if (typeof answer === 'string') return Promise.resolve({ action: 'accept', content: { answer } })
      if (answer !== undefined) return Promise.resolve(answer)
      return new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('withdrawn')))
        context.append('asked')
      })
    },
  }
  return { context, questions }
}

/** Runs the agent to its end. */
export const runAgent = async (
  does: AgentScript,
  more?: Partial<AcpRunnerOptions>,
  context: RecordedContext = createRunContext(),
): Promise<OutputObject> => acpRunner(agentOptions(does, more)).run(runInput(), context)

/** Runs the agent to its end. Returns the results of its acts. */
export async function results(
  does: AgentScript,
  more?: Partial<AcpRunnerOptions>,
  context?: RecordedContext,
): Promise<unknown[]> {
  const { final_message = '' } = await runAgent(does, more, context)
  return JSON.parse(final_message) as unknown[]
}

/** Runs an agent that must fail. Returns its error. */
export const failure = (
  does: AgentScript,
  more?: Partial<AcpRunnerOptions>,
  context?: RecordedContext,
): Promise<Error & { readonly code?: string }> =>
  runAgent(does, more, context).then(
    (output) => {
      throw new Error(`it completed: ${JSON.stringify(output)}`)
    },
    (error: unknown) => error as Error,
  )
