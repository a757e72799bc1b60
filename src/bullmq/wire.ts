/** The data that hosts and workers exchange through Redis, with its limits. */
import { z } from 'zod'
import type { OutputObject } from '../../machines/records.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { jsonBytes } from '../data/json-size.js'
import { lazily } from '../protocol/lazily.js'
import { fromParams, toParams, type KeptParams } from '../protocol/run-fields.js'
import { describeFailure, toOutput } from '../protocol/outcomes.js'
import { MAX_LEVELS, toWholePlainData } from '../data/plain-data.js'

import type { SubagentRequest } from '../tools/subagents.js'

/** The name of every job. Dashboards show it. */
export const JOB_NAME = 'run'

/** The maximum size of the input of a run, in bytes of JSON (1 MiB). */
const MAX_INPUT_BYTES = 1024 * 1024

/** The maximum size of the output of a run, in bytes of JSON (64 MiB). A store has the same limit for one task. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/** The maximum length of an error message, in characters. */
const MAX_ERROR_CHARS = 100_000

const jobDataSchema = lazily(() =>
  z.object({
    input: z.looseObject({ id: z.string(), subagentName: z.string(), goalPrompt: z.string() }),
    owner: z.string(),
    attempt: z.int().min(1),
    host: z.string(),
    trace: z.object({ traceparent: z.string(), tracestate: z.string().optional() }).optional(),
  }),
)

export type JobData = z.output<ReturnType<typeof jobDataSchema>>

/**
 * Makes the data of a job from the input of a run.
 * @throws INVALID_INPUT for an input that is larger than 1 MiB of JSON, or nested too deeply
 */
export function toJobData(input: SubagentRequest, data: Omit<JobData, 'input'>): JobData {
  const { id, subagent: subagentName, goal: goalPrompt, results } = input
  const sent = { id, subagentName, goalPrompt, ...omitUndefined({ params: toParams(input), results }) }
  const plain = toWholePlainData(sent)
  if (plain === undefined) {
    throw new InvalidInputError('input.context', input.context, `a value nested at most ${MAX_LEVELS} levels deep`)
  }
  if (jsonBytes(plain, MAX_INPUT_BYTES) > MAX_INPUT_BYTES) {
    throw new InvalidInputError('input', '(too large to be shown)', `at most ${MAX_INPUT_BYTES} bytes of JSON`)
  }
  return { input: { ...plain }, ...data }
}

/**
 * Reads the data of a job.
 * @throws Error for a job that no host of this package has sent, or a host with an incompatible version
 */
export function readJobData(data: unknown): JobData {
  const parsed = jobDataSchema().safeParse(data)
  if (parsed.success) return parsed.data
  throw new Error(
    'The worker cannot read this job: it was not sent by agent-tasks, or it was sent by an incompatible version. Use the same version for hosts and workers.',
  )
}

/** Makes the input of a run from the data of a job. */
export function toRunInput({
  input: { id, subagentName: subagent, goalPrompt: goal, params, results },
}: JobData): SubagentRequest {
  const kept = typeof params === 'object' && params !== null ? (params as KeptParams) : undefined
  const given = omitUndefined({ results: results as SubagentRequest['results'] })
  return Object.freeze({ id, subagent, goal, ...fromParams(kept), ...given })
}

/**
 * Makes the return value of a job from the output of a run.
 * @throws Error for an output larger than 64 MiB of JSON
 */
export function toReturnValue(value: unknown): OutputObject {
  const output = toOutput(value)
  if (jsonBytes(output, MAX_OUTPUT_BYTES) <= MAX_OUTPUT_BYTES) return output
  throw new Error(`The output of the run is too large to be sent: more than ${MAX_OUTPUT_BYTES} bytes of JSON.`)
}

/** The parts of an error that are sent to the host, because retry policies and task records use them. */
const failureSchema = lazily(() =>
  z.object({
    error: z.string(),
    name: z.string().optional(),
    code: z.union([z.string(), z.number()]).optional(),
    status: z.union([z.string(), z.number()]).optional(),
    exitCode: z.number().optional(),
    signal: z.string().optional(),
    retryAfterMs: z.number().optional(),
    wasSuspended: z.boolean().optional(),
  }),
)

const FAILURE_FIELDS = ['name', 'code', 'status', 'exitCode', 'signal', 'retryAfterMs', 'wasSuspended'] as const

/** Converts the error of a run to JSON. Never throws. */
export function writeFailure(reason: unknown): string {
  const fields = Object.fromEntries(FAILURE_FIELDS.map((field) => [field, read(reason, field)]))
  const schema = failureSchema()
  const error = describeFailure(reason).slice(0, MAX_ERROR_CHARS)
  const whole = schema.safeParse({ ...fields, error })
  return JSON.stringify(whole.success ? whole.data : { error })
}

/** Reads the error of a run on a worker. If `json` is not valid, `end` becomes the message. */
export function readFailure(json: string, end: string): Error {
  const parsed = failureSchema().safeParse(parseOrUndefined(json))
  if (!parsed.success) return new Error(describeFailure(end))
  const { error, ...fields } = parsed.data
  return Object.assign(new Error(error), fields)
}

/**
 * Reads the return value of a job.
 * @throws SyntaxError for invalid JSON
 */
export const readReturnValue = (json: string): OutputObject => toOutput(JSON.parse(json))

export function parseOrUndefined(json: string): unknown {
  try {
    return JSON.parse(json) as unknown
  } catch {
    return undefined
  }
}

/** Makes the error of a run that was stopped from outside, or whose outcome is unknown. */
export const interruptedError = (message: string): AgentTasksError => new AgentTasksError('INTERRUPTED', message)

/** Makes the error of a run that was stopped because its worker was closed. Its retry uses up no attempt (promise K13). */
export const stoppedError = (): AgentTasksError =>
  Object.assign(
    interruptedError('The worker that ran this task was stopped. Launch the task again if its result is still needed.'),
    { wasSuspended: true },
  )

export const WORKER_DIED =
  'The worker that ran this task ended before the task did. Launch the task again if its result is still needed.'

function read(from: unknown, field: string): unknown {
  try {
    return typeof from === 'object' && from !== null ? (from as Record<string, unknown>)[field] : undefined
  } catch {
    return undefined
  }
}
