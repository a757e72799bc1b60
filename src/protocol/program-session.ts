/**
 * How the session of a program is resumed. The schema belongs to an option of runners and to the configuration file, so every field has a
 * description.
 */
import { z } from 'zod'
import { lazily } from './lazily.js'
import { strictObject } from './strict-object.js'

/**
 * Names a field of the JSON that a program prints: `json:FIELD` when all output is one value, `jsonl:TYPE/FIELD` for the lines whose `type` is
 * TYPE, `jsonl:TYPE[OTHER=VALUE]/FIELD` for those of them whose field OTHER has a value.
 */
export const PRINTED_FIELD = /^(?:json:|jsonl:([^/[\]]+)((?:\[[^=[\]]+=[^[\]]*\])*)\/)([^/]+)$/

export const printedFieldSchema = lazily(() =>
  z.string().regex(PRINTED_FIELD, "'json:FIELD', 'jsonl:TYPE/FIELD' or 'jsonl:TYPE[OTHER=VALUE]/FIELD'"),
)

/** Arguments of a program. */
export const programArgumentsSchema = lazily(() =>
  z.array(z.string().refine((value) => !value.includes('\0'), 'text without null characters')),
)

const hasPlaceholders = (args: readonly string[]): boolean =>
  args.some((argument) => argument.includes('{session}')) &&
  args.some((argument) => argument.includes('{message}') || argument === '{message:words}')

/** The arguments that resume a session. */
export const resumeArgumentsSchema = lazily(() =>
  programArgumentsSchema().refine(hasPlaceholders, 'arguments with {session} and {message}'),
)

export const programSessionSchema = lazily(() =>
  strictObject({
    from: printedFieldSchema().describe(
      'Where the ID of its session is in its stdout: json:FIELD of the one JSON value, or jsonl:TYPE/FIELD of the lines with this type.',
    ),
    resume: resumeArgumentsSchema().describe(
      'Its arguments to continue a task: {session} is the ID of the session, {message} what the task was sent.',
    ),
    result: printedFieldSchema()
      .optional()
      .describe('Where the text of its result is, likewise. Default: all of its stdout.'),
  }),
)
