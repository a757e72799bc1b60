/** The context of a run that a test starts without a manager. It records what the run does with the context. */
import { NO_MESSAGES } from '../../src/features/questions/inbox.js'
import type { TaskSession } from '../../machines/records.js'
import { reportMethods } from '../../src/engine/report-methods.js'
import type { RunContext, RunInput } from '../../src/engine/runner.js'

/** A context that records its calls. */
export interface RecordedContext extends RunContext {
  readonly controller: AbortController
  /** The sessions that the run has recorded. */
  readonly sessions: TaskSession[]
  readonly offered: readonly unknown[]
  /** What was reported, in order. */
  readonly reported: unknown[]
  /** All text appended so far. */
  output(): string
  /** Resolves when the output contains a text. */
  printed(text: string): Promise<void>
}

/** The input of a run. */
export function runInput(goalPrompt = 'goal'): RunInput {
  return { id: 'agent-1', subagent: 'agent', goal: goalPrompt }
}

/** The parts of the context that a run without a manager has for tasks of its own. */
const noFamily: Pick<RunContext, 'launch' | 'children'> = {
  launch: () => {
    throw new Error('there is no manager')
  },
  children: {
    ids: () => [],
    waitFor: () => Promise.resolve({ settled: [], pending: [], unknown: [] }),
    cancel: () => false,
  },
}

/** Makes a context whose `controller` aborts it. */
export function createRunContext(): RecordedContext {
  const controller = new AbortController()
  const sessions: TaskSession[] = []
  const offered: unknown[] = []
  const reported: unknown[] = []
  const waiting: { readonly text: string; readonly resolve: () => void }[] = []
  let output = ''
  return {
    controller,
    signal: controller.signal,
    taskId: 'agent-1',
    owner: 'main',
    attempt: 1,
    reported,
    output: () => output,
    ...reportMethods((_field, value) => void reported.push(value)),
    append: (text) => {
      output += text
      for (const waiter of waiting) if (output.includes(waiter.text)) waiter.resolve()
    },
    sessions,
    setSession: (id, options) => void sessions.push({ id, ...options }),
    ask: () => Promise.reject(new Error('no one answers')),
    messages: NO_MESSAGES,
    ...noFamily,
    step: async (_name, work) => work(),
    sleep: () => Promise.resolve(),
    waitFor: () => Promise.resolve(undefined),
    spend: () => undefined,
    offered,
    offer: (output) => void offered.push(output),
    wrapUp: new AbortController().signal,
    printed: (text) =>
      new Promise((resolve) => {
        if (output.includes(text)) resolve()
        else waiting.push({ text, resolve })
      }),
  }
}
