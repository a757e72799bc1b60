/** Validates and copies submissions, for a single process and for a cluster. */
import { omitUndefined } from '../data/omit-undefined.js'
import { preview } from '../data/preview.js'
import type { SubmitErrorCode } from '../protocol/command-tasks.js'
import { describeIssue } from '../protocol/parse.js'
import { MAX_LEVELS, toWholePlainData } from '../data/plain-data.js'
import { taskSubmitSchema, type TaskSubmitMessage } from '../protocol/task-submission.js'
import type { SubmittedTask } from './command-task.js'

export interface SubmitRefusal {
  readonly error: string
  readonly code: SubmitErrorCode
}

/** A valid submission. Its commands are frozen copies with the status `pending`. */
export interface Submission {
  readonly instanceId: string | undefined
  readonly submission: Omit<SubmittedTask, 'id' | 'createdAt'>
}

export const refusal = (code: SubmitErrorCode, error: string): SubmitRefusal => ({ code, error })

export const NOT_STORED = refusal('NOT_STORED', 'The task could not be stored, and was not accepted. Try again later.')

/** Validates and copies a submission. Copying may run getters of the submitted objects, so check all other state after this call. */
export function readSubmission(message: TaskSubmitMessage): Submission | SubmitRefusal {
  const parsed = taskSubmitSchema().safeParse(message)
  if (!parsed.success) {
    const { field, received, expected } = describeIssue(parsed.error, message, 'task')
    return refusal('INVALID_TASK', `${field}: got ${preview(received)}, expected ${expected}.`)
  }
  const { task_name, task_intention, commands, metadata, instanceId } = parsed.data
  if (commands.length === 0) return refusal('NO_COMMANDS', 'Task must have at least one command')
  const copies = commands.map((command) => toWholePlainData(command.args))
  const metadataCopy = metadata && toWholePlainData(metadata)
  if (copies.includes(undefined)) return tooDeep(`task.commands[${copies.indexOf(undefined)}].args`)
  if (metadataCopy === undefined && metadata !== undefined) return tooDeep('task.metadata')
  return {
    instanceId,
    submission: {
      name: task_name,
      intention: task_intention,
      commands: commands.map((command, index) =>
        Object.freeze({
          id: `cmd_${index + 1}`,
          status: 'pending' as const,
          ...command,
          args: copies[index] ?? {},
        }),
      ),
      ...omitUndefined({ metadata: metadataCopy }),
    },
  }
}

/** Refuses a value that is nested too deeply, because a copy would lose its inner parts. */
const tooDeep = (field: string): SubmitRefusal =>
  refusal(
    'INVALID_TASK',
    `${field}: got a value with more than ${MAX_LEVELS} levels, expected at most ${MAX_LEVELS} levels.`,
  )
