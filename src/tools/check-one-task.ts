/**
 * Tools for MCP clients, each for one action of check_async_tasks. The actions are separate tools so that the client can treat check_async_tasks as
 * read-only, and ask its user before the others.
 */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import { strictObject } from '../protocol/strict-object.js'
import { checkAsyncTasksSchema, createTaskCheck, type CheckAsyncTasksParams } from './check-async-tasks.js'
import { READ_ONLY, type ToolDescriptor, type ToolSetting } from './tool-descriptor.js'
import { outputOf, type OutputFields } from './tool-output.js'
import { defineTool } from './tool.js'

const fields = lazily(() => checkAsyncTasksSchema().shape)
const taskId = lazily(() => z.string().describe('ID or unique prefix.'))

export const cancelTool = actionTool('cancel', {
  name: 'cancel_async_task',
  title: 'Cancel a background task',
  description: 'Cancel a background async task.',
  summary: 'Stops a task and what it has launched; `reason` says why.',
  purpose: 'stops a task that nobody needs any more.',
  brief: 'stops it',
  hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  inputSchema: () => strictObject({ task_id: taskId(), reason: fields().reason.describe('') }),
  output: () => ({
    task_id: ['id', z.string()],
    status: ['status', z.string()],
    cancelled: ['cancelled', z.boolean()],
    stops_within_ms: ['stopsWithinMs', z.number().optional()],
  }),
})

/** Reads what a task has written, or its result. */
export const readTool = actionTool('output', {
  name: 'read_task_output',
  title: 'Read the output of a task',
  description: 'Read what a background async task has written so far, or its result, from a byte cursor on.',
  summary: 'Reads the output of a task, or its result, from a byte cursor on.',
  purpose: 'reads what a task has written, or a result that was cut.',
  brief: 'reads the output of a task',
  hints: READ_ONLY,
  inputSchema: () =>
    strictObject({
      task_id: taskId(),
      part: fields().part.describe('output (default), or a result that was cut.'),
      cursor: fields().cursor.describe(''),
      max_bytes: fields().max_bytes.describe('Default 16384.'),
      raw: fields().raw.describe(''),
    }),
  output: () => ({
    task_id: ['task_id', z.string()],
    start: ['start', z.number()],
    next_cursor: ['nextCursor', z.number()],
    skipped_bytes: ['skippedBytes', z.number()],
    remaining_bytes: ['remainingBytes', z.number()],
  }),
})

export const answerTool = actionTool('answer', {
  name: 'answer_async_task',
  title: 'Answer a background task',
  description: 'Answer a question of a background async task.',
  summary: 'Answers the question of a task.',
  purpose: 'answers a task that asks. If you do not know the answer, ask the user.',
  brief: 'answers the question of a task',
  hints: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  inputSchema: () =>
    strictObject({
      task_id: taskId(),
      question_id: fields().question_id.describe('If it has several.'),
      // Listed as a text, because some clients refuse a field of several types. The text may be JSON.
      answer: z
        .unknown()
        .pipe(fields().answer)
        .optional()
        .meta({ type: 'string', description: 'Text, or JSON that its schema asks for.' }),
      decline: fields().decline.describe(''),
    }),
  output: () => ({
    task_id: ['id', z.string()],
    question_id: ['question_id', z.string()],
    answered: ['isAnswered', z.boolean()],
  }),
})

interface ActionTool extends Omit<ToolDescriptor, 'output'> {
  readonly description: string
  readonly inputSchema: () => z.ZodObject
  readonly output: () => OutputFields
}

function actionTool(
  action: NonNullable<CheckAsyncTasksParams['action']>,
  { description, inputSchema, output, ...rest }: ActionTool,
): ToolDescriptor {
  const { name } = rest
  const schema = lazily(inputSchema)
  const create = ({ shown }: ToolSetting) => {
    const check = createTaskCheck(shown, name)
    return defineTool({
      name,
      description,
      inputSchema: schema(),
      run: (input, context) => check({ ...(input as CheckAsyncTasksParams), action }, context),
    })
  }
  return { ...rest, output: lazily(() => outputOf(output())), served: { create } }
}
