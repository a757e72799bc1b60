/** Reads `agent-tasks.config.json`. The first thing that is wrong stops the start: which file, which field, what came. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ConfigFileError } from '../errors.js'
import { agentConfigSchema, CONFIG_FILE_NAME, type AgentConfig } from '../protocol/agent-config.js'
import { describeFailure } from '../protocol/outcomes.js'
import { describeIssue } from '../protocol/parse.js'
import { preview } from '../preview.js'

/** A configuration, and where its relative paths start. */
export interface LoadedConfig {
  /** What it says, with every default filled in. */
  readonly config: AgentConfig
  /** The file it came from; undefined when there was none. */
  readonly file: string | undefined
  /** Where its relative paths start. */
  readonly folder: string
}

/**
 * Reads the file that is named, or `agent-tasks.config.json` in the working directory; without either everything is at
 * its default.
 * @throws ConfigFileError when the named file is not there, is no JSON, or holds a value that is not allowed
 */
export function loadAgentConfig(path?: string, cwd: string = process.cwd()): LoadedConfig {
  const file = resolve(cwd, path ?? CONFIG_FILE_NAME)
  if (path === undefined && !existsSync(file)) {
    return { config: agentConfigSchema.parse({}), file: undefined, folder: cwd }
  }
  return { config: parseAgentConfig(readJson(file), file), file, folder: dirname(file) }
}

/**
 * Checks the content of a configuration file.
 * @param file what to call it in messages
 * @throws ConfigFileError about the first thing that is wrong
 */
export function parseAgentConfig(content: unknown, file: string): AgentConfig {
  const parsed = agentConfigSchema.safeParse(content)
  if (parsed.success) return parsed.data
  const { field, received, expected } = describeIssue(parsed.error, content, '')
  const name = field.replace(/^\./, '') || 'the file'
  // A token must not end up in a log.
  const shown = /^http\.tokens|\.headers|\.env/.test(name) ? '(not shown)' : preview(received)
  throw new ConfigFileError(file, `${name}: got ${shown}, expected ${expected}.`)
}

function readJson(file: string): unknown {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    throw new ConfigFileError(file, `cannot be read (${(cause as NodeJS.ErrnoException).code ?? 'unknown'}).`, {
      cause,
    })
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, '')) as unknown
  } catch (cause) {
    throw new ConfigFileError(file, `is not JSON: ${describeFailure(cause)}.`, { cause })
  }
}
