/** Subagents as the task tool sees them: a name that stands for something that runs a request. */
import type { RunContext, Runner, RunInput } from '../engine/runner.js'
import { InvalidInputError } from '../errors.js'
import { toPlainData } from '../protocol/plain-data.js'

/** What a subagent is asked to do: the call of the task tool, and the task that came of it. */
export interface SubagentRequest extends RunInput {
  /** The name that the model asked for. */
  readonly subagent_name: string
  /** What to achieve, as the model wrote it. */
  readonly goal_prompt: string
  /** How to go about it: further instructions. */
  readonly behaviour_prompts?: readonly string[] | undefined
  /** The tools the subagent may use; all that it has when absent. */
  readonly tool_whitelist?: readonly string[] | undefined
  /** What to emit, by name: a description of each. */
  readonly expected_outputs?: Readonly<Record<string, string>> | undefined
  /** Anything else it needs to know, by name. */
  readonly context?: Readonly<Record<string, unknown>> | undefined
}

/** The part of a request that comes from the model. */
export type SubagentParams = Omit<SubagentRequest, keyof RunInput>

/** Runs a request; starting the subagent is part of it. */
export type SubagentRunner = Runner<SubagentRequest>

/** A subagent. */
export interface SubagentDefinition {
  /** Its name, where it is not known by its key. */
  readonly name?: string
  /** What it is good at. */
  readonly description?: string
  /** Does the work. */
  readonly run: SubagentRunner
}

/** A subagent, or just what it does. */
export type Subagent = SubagentDefinition | SubagentRunner

/** Finds a subagent by its name; undefined when there is none. A failure counts as a start that failed. */
export type ResolveSubagent = (name: string) => Subagent | undefined | Promise<Subagent | undefined>

/**
 * Looks a subagent up and binds it to a request.
 * @returns what to launch, or undefined for a name that stands for nothing
 */
export async function bindSubagent(resolve: ResolveSubagent, params: SubagentParams): Promise<Runner | undefined> {
  try {
    // A host without types may resolve to anything.
    const found: unknown = await resolve(params.subagent_name)
    if (found === undefined || found === null) return undefined
    if (typeof found !== 'function' && !isDefinition(found)) {
      throw new InvalidInputError(`resolveSubagent('${params.subagent_name}')`, found, 'a function, or { run }')
    }
    return bind(found as Subagent, toPlainData(params) as SubagentParams)
  } catch (error) {
    return () => {
      throw error
    }
  }
}

function bind(subagent: Subagent, params: SubagentParams): Runner {
  return (input: RunInput, context: RunContext) => {
    const request: SubagentRequest = Object.freeze({ ...params, ...input })
    return typeof subagent === 'function' ? subagent(request, context) : subagent.run(request, context)
  }
}

function isDefinition(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'run' in value && typeof value.run === 'function'
}
