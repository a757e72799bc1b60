/** Subagents as the task tool uses them: a name, and a function that runs a request. */
import { boundLines, previewText } from '../async-tasks/bounded-text.js'
import type { RunContext, Runner, RunInput } from '../engine/runner.js'
import { InvalidInputError } from '../errors.js'
import type { OptionType } from '../protocol/option-checks.js'
import { MAX_LEVELS, toWholePlainData } from '../protocol/plain-data.js'

/** The input of a subagent's run: the parameters of the task tool's call, and the task that it started. */
export interface SubagentRequest extends RunInput {
  /** The name of the subagent, as the model wrote it. */
  readonly subagent_name: string
  /** What to achieve, as the model wrote it. */
  readonly goal_prompt: string
  /** Further instructions on how to do it. */
  readonly behaviour_prompts?: readonly string[] | undefined
  /** The only tools that the subagent may use; all of its tools when absent. */
  readonly tool_whitelist?: readonly string[] | undefined
  /** The variables to emit: a description of each, by name. */
  readonly expected_outputs?: Readonly<Record<string, string>> | undefined
  /** Further data for the subagent, by name. */
  readonly context?: Readonly<Record<string, unknown>> | undefined
  /** The working directory to run in, if the host says one. */
  readonly cwd?: string | undefined
}

/** The part of a request that comes from the model. */
export type SubagentParams = Omit<SubagentRequest, keyof RunInput | 'cwd'>

/** Runs a request. Starting the subagent is part of the run: if it throws, the task fails. */
export type SubagentRunner = Runner<SubagentRequest>

/** A subagent with a description. */
export interface SubagentDefinition {
  /** Its name, where no key gives it. */
  readonly name?: string
  /** What it is good at. */
  readonly description?: string
  /** Runs a request. */
  readonly run: SubagentRunner
}

/** A subagent: a definition, or only its function. */
export type Subagent = SubagentDefinition | SubagentRunner

/** A subagent that the tool `task` lists: its name, or its name and what it is good at. */
export type SubagentEntry = string | { readonly name: string; readonly description?: string | undefined }

/** The longest description of one subagent in the description of the tool, in characters. */
const DESCRIPTION_CHARS = 300

/** The longest list, in characters: a model reads it in every turn. */
const LIST_CHARS = 4000

/** The subagents as lines of the tool's description; none without subagents. */
export function subagentLines(entries: readonly SubagentEntry[]): string[] {
  if (entries.length === 0) return []
  const lines = entries.map((entry) => {
    const { name, description = '' } = typeof entry === 'string' ? { name: entry } : entry
    const about = previewText(description.trim().replace(/\s+/g, ' '), DESCRIPTION_CHARS)
    return about === '' ? `- ${name}` : `- ${name}: ${about}`
  })
  return ['Subagents:', boundLines(lines, LIST_CHARS)]
}

export const aDefinition: OptionType = {
  expected: '{ run }, with a function run',
  accepts: (value) => typeof value === 'object' && value !== null && 'run' in value && typeof value.run === 'function',
}

export const aSubagent: OptionType = {
  expected: 'a function, or { run }',
  accepts: (value) => typeof value === 'function' || aDefinition.accepts(value),
}

/**
 * Finds a subagent by its name; undefined when there is none. If it throws or rejects, the task that was to start fails; if it has not answered at
 * the deadline of that task, the call fails.
 */
export type ResolveSubagent = (name: string) => Subagent | undefined | Promise<Subagent | undefined>

/**
 * Looks a subagent up and binds it to a request.
 * @returns the runner to launch, or undefined when there is no such subagent; rejects when the signal aborts first
 */
export function bindSubagent(
  resolve: ResolveSubagent,
  params: SubagentParams,
  signal?: AbortSignal,
): Promise<Runner | undefined> {
  return orAborted(lookUp(resolve, params), signal)
}

async function lookUp(resolve: ResolveSubagent, params: SubagentParams): Promise<Runner | undefined> {
  try {
    // A host without types may resolve to anything.
    const found: unknown = await resolve(params.subagent_name)
    if (found === undefined || found === null) return undefined
    if (!aSubagent.accepts(found)) {
      throw new InvalidInputError(`resolveSubagent('${params.subagent_name}')`, found, aSubagent.expected)
    }
    const copied = toWholePlainData(params)
    if (copied === undefined) {
      throw new InvalidInputError('params.context', params.context, `a value of at most ${MAX_LEVELS} levels`)
    }
    return bind(found as Subagent, copied)
  } catch (error) {
    return () => {
      throw error
    }
  }
}

/** The runner that goes on with a program of the subagent that survived its host; undefined if its runs end with the host. */
export function survivorOf(subagent: Subagent): Runner | undefined {
  const run = typeof subagent === 'function' ? subagent : subagent.run
  if (run.survivesHost !== true) return undefined
  const runner: Runner = (input, context) =>
    run({ subagent_name: input.subagentName, goal_prompt: input.goalPrompt, ...input }, context)
  return Object.assign(runner, { survivesHost: true })
}

function bind(subagent: Subagent, params: SubagentParams): Runner {
  return (input: RunInput, context: RunContext) => {
    const request: SubagentRequest = Object.freeze({ ...params, ...input })
    return typeof subagent === 'function' ? subagent(request, context) : subagent.run(request, context)
  }
}

/** Settles as the promise does, or rejects with the signal's reason if the signal aborts first. */
async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  let stop: () => void = () => undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    const onAbort = (): void => {
      reject(signal.reason instanceof Error ? signal.reason : new Error('Aborted.', { cause: signal.reason }))
    }
    signal.addEventListener('abort', onAbort, { once: true })
    stop = () => signal.removeEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    stop()
  }
}
