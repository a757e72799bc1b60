/** Reads what a coding agent has printed, as its preset says: result, failure, what was denied, and what the run has used. */
import type { OutputObject } from '../../../machines/records.js'
import { cutText } from '../../data/cut-text.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { preview } from '../../data/preview.js'
import type { AgentPresetData } from '../../protocol/agents/agent-preset.js'
import { describeTail, ProcessError, type ProgramRemains } from '../process-error.js'
import { printedParts, printedSum, printedText, printedValue, printedValues } from '../printed-session.js'
import type { ProgramEnd } from '../supervision.js'

/** The maximum length of a reason, in characters. */
const MAX_REASON_CHARS = 4000

/** The maximum number of denials that are named. */
const MAX_DENIED = 20

/** The maximum length of such a name, in characters. */
const MAX_DENIED_CHARS = 300

/** How deep a reason may be nested in JSON. */
const MAX_NESTING = 3

/** The output of a task that an agent has done. */
interface AgentOutput extends OutputObject {
  readonly final_message: string
  /** What the agent was not allowed to do. */
  readonly denied?: readonly string[]
}

/**
 * Returns the output of the task, from what an agent has printed that has ended by itself.
 * @throws ProcessError with the reason that the agent has printed, if it has failed
 */
export function readAgentOutput(preset: AgentPresetData, end: ProgramEnd, remains: ProgramRemains): AgentOutput {
  const error = agentError(preset, end, remains)
  if (error !== undefined) throw error
  return agentOutput(preset, remains.stdout)
}

function agentOutput(preset: AgentPresetData, stdout: string): AgentOutput {
  const denied = deniedNames(preset, stdout)
  const usage = usageOf(preset, stdout)
  return {
    final_message: (preset.isInParts ? printedParts : printedText)(preset.result, stdout) ?? '',
    ...(denied.length > 0 && { denied }),
    ...(usage !== undefined && { usage }),
  }
}

/** Returns the output of the task if the agent ended now; undefined if it would fail. */
export function resultSoFar(preset: AgentPresetData, remains: ProgramRemains): AgentOutput | undefined {
  const end = { exitCode: 0, signal: null }
  return agentError(preset, end, remains) === undefined ? agentOutput(preset, remains.stdout) : undefined
}

/** Returns why an agent has failed that has ended by itself; undefined if it has not. */
function agentError(
  preset: AgentPresetData,
  { exitCode, signal }: Pick<ProgramEnd, 'exitCode' | 'signal'>,
  { command, stdout, stderr }: ProgramRemains,
): ProcessError | undefined {
  const result = printedValue(preset.result, stdout)
  const failedAt = Math.max(-1, ...preset.failure.map((field) => printedValue(field, stdout)?.line ?? -1))
  const hasFailed = failedAt >= 0 && failedAt >= (result?.line ?? -1)
  const isDone = result !== undefined || (preset.done !== undefined && printedValue(preset.done, stdout) !== undefined)
  if (exitCode === 0 && !hasFailed && isDone) return undefined
  const how = signal === null ? `ended with exit code ${exitCode ?? 'unknown'}` : `was ended by ${signal}`
  const failure = { command, stderr, ...(exitCode !== null && { exitCode }), ...(signal !== null && { signal }) }
  const name = `Command ${preview(command)}`
  const tail = describeTail(stderr, stdout)
  if (preset.untrusted !== undefined && new RegExp(preset.untrusted, 'i').test(stderr + stdout)) {
    const hint = 'It does not work in a folder that it does not trust. The option `trust: true` trusts the folder.'
    return new ProcessError('AGENT_FAILED', `${name} ${how}. ${hint}${tail}`, failure)
  }
  // A result that came before the end is no reason.
  const reason = hasFailed || !isDone || exitCode !== 0 ? reasonOf(preset, stdout) : undefined
  if (reason === undefined) {
    const code = exitCode === 0 ? 'AGENT_FAILED' : 'PROCESS_FAILED'
    const what = exitCode === 0 ? `${how} and printed no result` : how
    return new ProcessError(code, `${name} ${what}.${tail}`, failure)
  }
  const isLimited = preset.rateLimit !== undefined && new RegExp(preset.rateLimit, 'i').test(reason)
  const ended = `${/[.!?]$/.test(reason) ? '' : '.'} ${name} ${how}.`
  return new ProcessError(isLimited ? 'RATE_LIMITED' : 'AGENT_FAILED', `${reason}${ended}`, failure)
}

function reasonOf({ reason }: AgentPresetData, stdout: string): string | undefined {
  for (const field of reason) {
    const text = plainText(printedValue(field, stdout)?.value)
    if (text !== '') return cutText(text, MAX_REASON_CHARS)
  }
  return undefined
}

/** A text, or the texts of a list. Agents also print the JSON of an API as a text: its message counts. */
function plainText(value: unknown, depth = 0): string {
  if (Array.isArray(value)) return value.map((one) => plainText(one, depth)).join('; ')
  if (typeof value === 'object' && value !== null) return messageIn(value, depth)
  const text = typeof value === 'string' ? value.trim() : ''
  if (!text.startsWith('{') || depth > MAX_NESTING) return text
  try {
    return messageIn(JSON.parse(text) as object, depth) || text
  } catch {
    return text
  }
}

function messageIn(value: object, depth: number): string {
  if (depth > MAX_NESTING) return ''
  const { message, error, detail } = value as Readonly<Record<string, unknown>>
  return plainText(message ?? error ?? detail, depth + 1)
}

/** The names of what the agent was not allowed to do, each once. */
function deniedNames(preset: AgentPresetData, stdout: string): readonly string[] {
  const { deniedName } = preset
  const list = deniedEntries(preset, stdout)
  const nameOf = (entry: unknown): unknown =>
    deniedName !== undefined && typeof entry === 'object' && entry !== null
      ? (entry as Readonly<Record<string, unknown>>)[deniedName]
      : entry
  const names = list.map(nameOf).filter((name) => typeof name === 'string')
  return [...new Set(names.map((name) => cutText(name, MAX_DENIED_CHARS)))].slice(0, MAX_DENIED)
}

function deniedEntries({ denied, deniedLine, deniedCall }: AgentPresetData, stdout: string): readonly unknown[] {
  if (denied === undefined) return []
  if (deniedCall !== undefined) {
    const ids = [...printedValues(denied, stdout)].map(({ value }) => String(value)).reverse()
    return ids.slice(0, MAX_DENIED).map(
      (id) =>
        printedText(
          deniedCall.replace('{denied}', () => id),
          stdout,
        ) ?? id,
    )
  }
  if (deniedLine === undefined) {
    const list = printedValue(denied, stdout)?.value
    return Array.isArray(list) ? list : []
  }
  const lines = stdout.split('\n')
  const isDenied = new RegExp(deniedLine, 'i')
  const found = [...printedValues(denied, stdout)].filter(({ line }) => isDenied.test(lines[line] ?? ''))
  return found.map(({ value }) => value).reverse()
}

function usageOf({ usage }: AgentPresetData, stdout: string): object | undefined {
  if (usage === undefined) return undefined
  const number = (field: string | undefined): number | undefined => {
    if (field !== undefined && usage.isSummed) return printedSum(field, stdout)
    const value = field === undefined ? undefined : printedValue(field, stdout)?.value
    return typeof value === 'number' ? value : undefined
  }
  const used = omitUndefined({
    input_tokens: number(usage.inputTokens),
    cached_input_tokens: number(usage.cachedInputTokens),
    output_tokens: number(usage.outputTokens),
    cost_usd: number(usage.costUsd),
  })
  if (Object.keys(used).length === 0) return undefined
  return usage.isCumulative ? { ...used, of: 'session' } : used
}
