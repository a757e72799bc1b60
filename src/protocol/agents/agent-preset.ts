/**
 * What is known about the command line of a coding agent, as data: its arguments, and where its output has the result, the reason of a failure and more.
 * The schema belongs to an option of runners and to the configuration file, so every field has a description.
 */
import { z } from 'zod'
import { lazily } from '../lazily.js'
import { printedFieldSchema, programArgumentsSchema, resumeArgumentsSchema } from '../program-session.js'
import { strictObject } from '../strict-object.js'

/** What an agent may do: read, also change the files of its folder, or everything that its user may do. */
export const ACCESS_LEVELS = ['read', 'write', 'full'] as const

const isPattern = (text: string): boolean => {
  try {
    return new RegExp(text, 'i') instanceof RegExp
  } catch {
    return false
  }
}

const pattern = lazily(() => z.string().refine(isPattern, 'a regular expression'))

const variables = lazily(() => z.record(z.string(), z.string()))

export const agentPresetSchema = lazily(() =>
  strictObject({
    seen: z.string().optional().describe('The version of the agent that this was seen with.'),
    start: programArgumentsSchema().describe(
      'The arguments of a new session, with {goal}. Elements of their own are replaced by lists: {access} by the arguments of the access, {trust} by ' +
        'those of trust, {args} by the arguments of the subagent, {goal:words} by the words of the goal. {session} is a new UUID, for agents that ' +
        'take the ID of a new session.',
    ),
    resume: resumeArgumentsSchema().describe(
      'The arguments that continue a session, likewise, with {session} and {message} or {message:words}.',
    ),
    access: strictObject({
      read: programArgumentsSchema().describe('The arguments with which the agent only reads.'),
      write: programArgumentsSchema().describe('The arguments with which it also changes files of its folder.'),
      full: programArgumentsSchema().describe('The arguments with which it asks for nothing.'),
    }).describe('What {access} stands for.'),
    accessEnv: strictObject({
      read: variables().optional().describe('Those with which the agent only reads.'),
      write: variables().optional().describe('Those with which it also changes files of its folder.'),
      full: variables().optional().describe('Those with which it asks for nothing.'),
    })
      .optional()
      .describe('Variables of the environment that belong to the access.'),
    trust: programArgumentsSchema().default([]).describe('What {trust} stands for if the folder is trusted.'),
    untrusted: pattern()
      .optional()
      .describe('A regular expression: what the agent prints when it does not run because the folder is not trusted.'),
    session: printedFieldSchema().describe('Where stdout has the ID of the session.'),
    result: printedFieldSchema().describe('Where stdout has the text of the result. The last one counts.'),
    goesOn: z
      .boolean()
      .default(false)
      .describe(
        'Whether the agent may go on after it has printed a result. If a limit then stops it, the task completes with the last result.',
      ),
    isInParts: z
      .boolean()
      .default(false)
      .describe('Whether the text of the result comes in parts. Those in lines that follow each other are joined.'),
    done: printedFieldSchema()
      .optional()
      .describe('A field of the line with which the agent ends. If there is none, and no result, the task fails.'),
    failure: z
      .array(printedFieldSchema())
      .default([])
      .describe(
        'Fields whose presence means that the agent has failed, whatever its exit code. A later result undoes this.',
      ),
    reason: z
      .array(printedFieldSchema())
      .default([])
      .describe('Where stdout has the reason of a failure: the first of these fields that is present.'),
    rateLimit: pattern().optional().describe('A regular expression: reasons that are a rate limit.'),
    denied: printedFieldSchema().optional().describe('Where stdout lists what the agent was not allowed to do.'),
    deniedName: z.string().optional().describe('The field of such an entry that names it.'),
    deniedCall: printedFieldSchema()
      .optional()
      .describe(
        '`denied` is then the ID of a call, in each line that has it. This is where the line of that call names it; {denied} stands for the ID.',
      ),
    deniedLine: pattern()
      .optional()
      .describe(
        'A regular expression: `denied` is then a text in each line that matches, such as a command that the sandbox of the agent has stopped.',
      ),
    usage: strictObject({
      inputTokens: printedFieldSchema().optional().describe('Where stdout has the number of input tokens.'),
      cachedInputTokens: printedFieldSchema().optional().describe('Where it has how many of them came from a cache.'),
      outputTokens: printedFieldSchema().optional().describe('Where it has the number of output tokens.'),
      costUsd: printedFieldSchema().optional().describe('Where it has the cost, in US dollars.'),
      isCumulative: z
        .boolean()
        .default(false)
        .describe('Whether the numbers of a continued session include those of its earlier runs.'),
      isSummed: z
        .boolean()
        .default(false)
        .describe('Whether the numbers are those of one step each, so that all of them are added.'),
    })
      .optional()
      .describe('Where stdout has what the run has used.'),
  }),
)

/** What is known about the command line of a coding agent. */
export type AgentPreset = z.input<ReturnType<typeof agentPresetSchema>>

/** A preset with its defaults. */
export type AgentPresetData = z.output<ReturnType<typeof agentPresetSchema>>
