/** What a task runs: the shape that functions, programs and subagents are brought into. */
import type { OutputObject, TaskAnswer, TaskProgress } from '../../machines/records.js'
import type { TaskQuestionInput } from '../protocol/task-questions.js'

/** What a run is given besides its input. */
export interface RunContext {
  /** Aborts when the task is cancelled or its deadline passes. A listener that throws is reported and harms nothing. */
  readonly signal: AbortSignal
  /** The task that this run belongs to. */
  readonly taskId: string
  /** Who is told of the end; it may change while the task runs. */
  readonly owner: string
  /** Says how far the run has come: a number, or MCP's `{ progress, total?, message? }`. Ignored once the task has ended. */
  report(progress: number | TaskProgress): void
  /** Adds to the task's output, of which the last 64 KiB are kept. Ignored once the task has ended. */
  append(text: string): void
  /**
   * Asks whoever the task is for, and waits. The task goes on as `running`, and so does its deadline.
   * @param question words, or `{ message, schema? }` with the JSON Schema of the answer's content; without one the content
   *   is `{ answer: string }`
   * @returns the answer, whose content fits the schema, or that there will be none
   * @throws QuestionWithdrawnError when the task ends or is overdue; InvalidInputError for a malformed question
   */
  ask(question: TaskQuestionInput): Promise<TaskAnswer>
}

/** What a run does: it resolves with an output, or rejects. */
export type Runner<Input = RunInput> = (input: Input, context: RunContext) => Promise<OutputObject> | OutputObject

/** What the runner of a launched task is called with. */
export interface RunInput {
  /** The task's id. */
  readonly id: string
  /** The name of the subagent. */
  readonly subagentName: string
  /** What to achieve. */
  readonly goalPrompt: string
}
