/** What a launch gives its runs besides the goal, and the params as which stores, journals and jobs keep it. */
import { z } from 'zod'
import { omitUndefined } from '../data/omit-undefined.js'
import { jsonObject } from './json-object.js'
import { lazily } from './lazily.js'

const texts = lazily(() => z.array(z.string()).readonly())

/** The fields of a launch that its runs receive. */
export const runFields = lazily(() => ({
  /** Data for the run, by name, as JSON. Default: none. */
  context: jsonObject().optional(),
  /** The working directory of the run. Default: that of the subagent. */
  cwd: z.string().optional(),
  /** More instructions on how to reach the goal. Default: none. */
  behaviourPrompts: texts().optional(),
  /** The variables that the run should emit: the name of each, with a description. Default: none. */
  expectedOutputs: z.record(z.string(), z.string()).optional(),
  /** The tools that the run may use. Default: all of its tools. */
  toolWhitelist: texts().optional(),
}))

/** The fields of a launch that its runs receive. */
export interface RunFields {
  /** Data for the run, by name. */
  readonly context?: Readonly<Record<string, unknown>> | undefined
  /** The working directory of the run. */
  readonly cwd?: string | undefined
  /** More instructions on how to reach the goal. */
  readonly behaviourPrompts?: readonly string[] | undefined
  /** The variables that the run should emit: the name of each, with a description. */
  readonly expectedOutputs?: Readonly<Record<string, string>> | undefined
  /** The tools that the run may use. */
  readonly toolWhitelist?: readonly string[] | undefined
}

export type KeptParams = Readonly<Record<string, unknown>>

/** Returns the params as which the fields are kept; undefined if there are none. Their names are those of the tool `task`. */
export function toParams({
  context,
  cwd,
  behaviourPrompts: behaviour_prompts,
  expectedOutputs: expected_outputs,
  toolWhitelist: tool_whitelist,
}: RunFields): KeptParams | undefined {
  const params = omitUndefined({ context, cwd, behaviour_prompts, expected_outputs, tool_whitelist })
  return Object.keys(params).length === 0 ? undefined : params
}

/** Returns the fields of kept params. Other params, which an earlier version has kept, are added to the context. */
export function fromParams(params: KeptParams = {}): RunFields {
  const { context, cwd, behaviour_prompts, expected_outputs, tool_whitelist, ...others } = params
  const fields = {
    context:
      Object.keys(others).length === 0 ? context : Object.freeze({ ...others, ...(context as KeptParams | undefined) }),
    cwd,
    behaviourPrompts: behaviour_prompts,
    expectedOutputs: expected_outputs,
    toolWhitelist: tool_whitelist,
  }
  return omitUndefined(fields) as RunFields
}
