/** Subagents as the task tool uses them: a name, and a function that runs a request. */
import type { z } from 'zod'
import { boundLines, previewText } from '../async-tasks/output/bounded-text.js'
import { flatRunner, toFlatRunner } from '../engine/definition.js'
import type { FlatRunner, RunFunction, RunInput, RunnerDefinition } from '../engine/runner.js'
import { InvalidInputError } from '../errors.js'
import { jsonBytes } from '../json/json-size.js'
import { MAX_LEVELS, toWholePlainData } from '../json/plain-data.js'

/** The input of a subagent's run: the parameters of the task tool's call, and the task that it started. */
export interface SubagentRequest extends Omit<RunInput, 'params'> {
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
  /** The working directory of the run, if the host sets one. */
  readonly cwd?: string | undefined
}

/** The part of a request that comes from the model. */
export type SubagentParams = Omit<SubagentRequest, keyof RunInput | 'cwd'>

/** The params of a launch that a request has as its fields. */
export const REQUEST_PARAMS: readonly string[] = [
  'behaviour_prompts',
  'tool_whitelist',
  'expected_outputs',
  'context',
  'cwd',
] satisfies readonly Exclude<keyof SubagentRequest, keyof RunInput>[]

/** Runs a request. Starting the subagent is part of the run: if it throws, the task fails. */
export type SubagentRunner = RunFunction<SubagentRequest>

/** A subagent with a description. */
export interface SubagentDefinition extends RunnerDefinition<SubagentRequest> {
  /** Its name, where no key gives it. */
  readonly name?: string
  /** What it is good at, for the description of the tool. */
  readonly description?: string
  /**
   * The zod schema of `context`, an object; its checks are synchronous. Each launch checks it once, in the process that launches, and is refused if it
   * does not match; a run on a worker and a repeated run get the checked value. The run gets what the schema returns, as plain data. The tool `task`
   * and the page show the schema. A continuation has no context.
   */
  readonly contextSchema?: z.ZodType
}

/** A subagent whose `run` is a function. */
export interface FlatSubagent extends SubagentDefinition {
  readonly run: SubagentRunner
}

/** A subagent: a definition, or only its function. */
export type Subagent = SubagentDefinition | SubagentRunner

/** A subagent that the tool `task` lists: its name, or its name and what it is good at. */
export type SubagentEntry =
  | string
  | {
      readonly name: string
      readonly description?: string | undefined
      /** The schema of its `context`. */
      readonly contextSchema?: z.ZodType | undefined
    }

/** The longest description of one subagent in the description of the tool, in characters. */
const DESCRIPTION_CHARS = 300

/** The maximum length of the list, in characters, because a model reads it in every turn. */
const LIST_CHARS = 4000

/** The subagents as lines of the tool's description; empty without subagents. */
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
 * The JSON Schemas of the subagents' contexts as lines of the tool's description; empty without any. A schema that has no room is left out.
 * @param bytes the size of all lines
 */
export function contextLines(
  entries: readonly SubagentEntry[],
  bytes: number,
  schemaOf: (schema: z.ZodType) => object,
): string[] {
  const title = 'The context of a subagent, as JSON Schema:'
  let room = bytes - lineBytes(title)
  const lines = entries.flatMap((entry) => {
    if (typeof entry === 'string' || entry.contextSchema === undefined) return []
    const schema = schemaText(entry.contextSchema, schemaOf)
    const line = `- ${entry.name}: ${schema ?? ''}`
    const size = lineBytes(line)
    if (schema === undefined || size > room) return []
    room -= size
    return [line]
  })
  return lines.length === 0 ? [] : [title, ...lines]
}

/** The size of a line in a text that becomes JSON, with its line break. */
const lineBytes = (line: string): number => jsonBytes(line)

/** Undefined for a schema of another library, or of another version of zod, that cannot be shown. */
function schemaText(schema: z.ZodType, schemaOf: (schema: z.ZodType) => object): string | undefined {
  try {
    return JSON.stringify(schemaOf(schema))
  } catch {
    return undefined
  }
}

/**
 * Finds a subagent by its name; undefined when it does not exist. If it throws or rejects, the task fails. If it has not settled at
 * the task's deadline, the call fails.
 */
export type ResolveSubagent = (name: string) => Subagent | undefined | Promise<Subagent | undefined>

/**
 * Looks a subagent up and binds it to a request.
 * @returns what to launch, or undefined for an unknown name; rejects when the signal aborts first
 */
export function bindSubagent(
  resolve: ResolveSubagent,
  params: SubagentParams,
  signal?: AbortSignal,
): Promise<FlatRunner | undefined> {
  return orAborted(lookUp(resolve, params), signal)
}

async function lookUp(resolve: ResolveSubagent, params: SubagentParams): Promise<FlatRunner | undefined> {
  try {
    // In JavaScript, a host may resolve to any value.
    const found: unknown = await resolve(params.subagent_name)
    if (found === undefined || found === null) return undefined
    const runner = toFlatRunner(found, `resolveSubagent('${params.subagent_name}')`)
    if (furtherInput(params) === undefined) {
      throw new InvalidInputError('params.context', params.context, `a value nested at most ${MAX_LEVELS} levels deep`)
    }
    return takingRequests(runner)
  } catch (error) {
    const run = (): never => {
      throw error
    }
    return { run }
  }
}

/** Copies the fields of a request besides its name and goal; undefined if they are nested too deeply. */
export function furtherInput({
  subagent_name: _name,
  goal_prompt: _goal,
  ...params
}: SubagentParams & Pick<SubagentRequest, 'cwd'>): Readonly<Record<string, unknown>> | undefined {
  return toWholePlainData(params)
}

/** The definition that runs a subagent's tasks. The input of its run contains the whole request. */
export function definitionOf(subagent: Subagent): FlatRunner {
  return takingRequests(flatRunner(subagent))
}

function takingRequests(subagent: FlatRunner<SubagentRequest>): FlatRunner {
  return {
    ...subagent,
    run: ({ params, ...input }, context) => {
      const { subagentName, goalPrompt } = input
      const request: SubagentRequest = Object.freeze({
        ...params,
        subagent_name: subagentName,
        goal_prompt: goalPrompt,
        ...input,
      })
      return subagent.run(request, context)
    },
  }
}

/** A subagent by its name, as the tool `task` lists it. */
export function subagentEntry(name: string, subagent: Subagent): SubagentEntry {
  const { description, contextSchema } = flatRunner(subagent)
  return { name, description, contextSchema }
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
