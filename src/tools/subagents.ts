/** Subagents of the tool `task`. A subagent is a name, and a function that runs a request. */
import type { z } from 'zod'
import { boundLines, previewText } from '../features/output/bounded-text.js'
import { resolveRunner, toFlatRunner } from '../engine/definition.js'
import type { ResolvedRunner, RunFunction, RunInput, RunnerDefinition } from '../engine/runner.js'
import { InvalidInputError } from '../errors.js'
import type { KeptParams } from '../protocol/run-fields.js'
import { jsonBytes } from '../data/json-size.js'
import { MAX_LEVELS, toWholePlainData } from '../data/plain-data.js'

/** The input of a subagent's run. Fields that were not given are absent. */
export interface SubagentRequest extends RunInput {
  /** The working directory of the run. Default: that of the subagent. */
  readonly cwd?: string | undefined
  /** More instructions on how to reach the goal. */
  readonly behaviourPrompts?: readonly string[] | undefined
  /** The variables that the subagent should emit: the name of each, with a description. */
  readonly expectedOutputs?: Readonly<Record<string, string>> | undefined
  /** The tools that the subagent may use. Default: all of its tools. */
  readonly toolWhitelist?: readonly string[] | undefined
}

/** The parameters of the tool `task` that describe the work. */
export interface SubagentParams {
  readonly subagent_name: string
  readonly goal_prompt: string
  readonly behaviour_prompts?: readonly string[] | undefined
  readonly tool_whitelist?: readonly string[] | undefined
  readonly expected_outputs?: Readonly<Record<string, string>> | undefined
  readonly context?: Readonly<Record<string, unknown>> | undefined
}

/** Runs a request. If starting the subagent throws, the task fails. */
export type SubagentRunner = RunFunction<SubagentRequest>

/** A subagent with a description. */
export interface SubagentDefinition extends RunnerDefinition<SubagentRequest> {
  /** The name of the subagent. Needed only where the subagent is not the value of a key. */
  readonly name?: string
  /** What the subagent is good at. The model reads this in the description of the tool. */
  readonly description?: string
  /**
   * The zod schema of `context`. It describes an object, and its checks must be synchronous. A launch whose context does not match is refused. The
   * context is checked once, in the process that launches the task. All runs, also retries and runs on workers, get what the schema returned, as plain
   * data. The tool `task` and the page show the schema. A task that continues another has no context.
   */
  readonly contextSchema?: z.ZodType
}

/** A subagent in the form of a definition, whose `run` is a function. */
export interface ResolvedSubagent extends SubagentDefinition {
  readonly run: SubagentRunner
}

/** A subagent: a definition, or only the function that runs it. */
export type Subagent = SubagentDefinition | SubagentRunner

/** A subagent as the tool `task` lists it: its name, or its name and what it is good at. */
export type SubagentEntry =
  | string
  | {
      readonly name: string
      readonly description?: string | undefined
      /** The schema of its `context`. */
      readonly contextSchema?: z.ZodType | undefined
    }

/** The maximum length of the description of one subagent in the description of the tool, in characters. */
const DESCRIPTION_CHARS = 300

/** The maximum length of the list of subagents, in characters. It is limited because a model reads the list in every turn. */
const LIST_CHARS = 4000

/** The subagents as lines of the description of the tool; an empty list if there are none. */
export function subagentLines(entries: readonly SubagentEntry[]): string[] {
  if (entries.length === 0) return []
  const lines = entries.map((entry) => {
    const { name, description = '' } = typeof entry === 'string' ? { name: entry } : entry
    const about = previewText(description.trim().replace(/\s+/g, ' '), DESCRIPTION_CHARS)
    return about === '' ? `- ${name}` : `- ${name}: ${about}`
  })
  return ['Subagents:', boundLines(lines, LIST_CHARS)]
}

/**
 * The JSON Schemas of the subagents' contexts, as lines of the description of the tool. A schema that does not fit is left out.
 * @param bytes the maximum size of all lines together, in bytes of JSON
 */
export function contextLines(
  entries: readonly SubagentEntry[],
  bytes: number,
  schemaOf: (schema: z.ZodType) => object,
): string[] {
  const title = 'The context of a subagent, as JSON Schema:'
  // As a part of a JSON text, a line has a line break, in as many bytes as the quotes.
  let room = bytes - jsonBytes(title)
  const lines = entries.flatMap((entry) => {
    if (typeof entry === 'string' || entry.contextSchema === undefined) return []
    const schema = schemaText(entry.contextSchema, schemaOf)
    const line = `- ${entry.name}: ${schema ?? ''}`
    const size = jsonBytes(line)
    if (schema === undefined || size > room) return []
    room -= size
    return [line]
  })
  return lines.length === 0 ? [] : [title, ...lines]
}

/** The JSON Schema of a context; undefined if it cannot be made, because the schema comes from another library or another version of zod. */
function schemaText(schema: z.ZodType, schemaOf: (schema: z.ZodType) => object): string | undefined {
  try {
    return JSON.stringify(schemaOf(schema))
  } catch {
    return undefined
  }
}

/**
 * Finds a subagent by its name. Returns undefined for an unknown name. If it throws or rejects, the task fails. If it takes longer than the deadline of
 * the task, the call fails.
 */
export type ResolveSubagent = (name: string) => Subagent | undefined | Promise<Subagent | undefined>

/**
 * Looks up a subagent and binds it to a request.
 * @returns what to launch; undefined for an unknown name
 * @throws the reason of the signal when it aborts before the subagent was found
 */
export function bindSubagent(
  resolve: ResolveSubagent,
  params: SubagentParams,
  signal?: AbortSignal,
): Promise<ResolvedRunner | undefined> {
  return orAborted(lookUp(resolve, params), signal)
}

async function lookUp(resolve: ResolveSubagent, params: SubagentParams): Promise<ResolvedRunner | undefined> {
  try {
    // A host in JavaScript may resolve to any value, so the value is checked.
    const found: unknown = await resolve(params.subagent_name)
    if (found === undefined || found === null) return undefined
    const runner = toFlatRunner(found, `resolveSubagent('${params.subagent_name}')`)
    if (furtherInput(params) === undefined) {
      throw new InvalidInputError('params.context', params.context, `a value nested at most ${MAX_LEVELS} levels deep`)
    }
    return runner
  } catch (error) {
    const run = (): never => {
      throw error
    }
    return { run }
  }
}

/** Copies the parameters, except name and goal, as they are kept. Returns undefined if they are nested too deeply. */
export function furtherInput({
  subagent_name: _name,
  goal_prompt: _goal,
  ...params
}: SubagentParams & Pick<SubagentRequest, 'cwd'>): KeptParams | undefined {
  return toWholePlainData(params)
}

export function subagentEntry(name: string, subagent: Subagent): SubagentEntry {
  const { description, contextSchema } = resolveRunner(subagent)
  return { name, description, contextSchema }
}

/** Settles as the promise does. If the signal aborts first, rejects with its reason. */
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
