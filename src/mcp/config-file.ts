/** Reads `agent-tasks.config.json`. An error names the file, the field and the value. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ConfigFileError } from '../errors.js'
import { agentConfigSchema, CONFIG_FILE_NAME, type AgentConfig } from '../protocol/agent-config.js'
import { describeFailure } from '../protocol/outcomes.js'
import { describeIssue } from '../protocol/parse.js'
import { preview } from '../preview.js'
import { howToConfigure } from './starter-config.js'

/** A configuration and its source. */
export interface LoadedConfig {
  /** Every setting, after defaults. */
  readonly config: AgentConfig
  /** The file that was read; undefined when there is none. */
  readonly file: string | undefined
  /** The file that was read, or looked for. */
  readonly path: string
  /** The directory that its relative paths start from. */
  readonly folder: string
}

/**
 * Reads a configuration file. Without a path it reads `agent-tasks.config.json` in `cwd`, and returns the defaults if there is no such
 * file.
 * @throws ConfigFileError when the file cannot be read, is not JSON, or contains an invalid value
 */
export function loadAgentConfig(path?: string, cwd: string = process.cwd()): LoadedConfig {
  const file = resolve(cwd, path ?? CONFIG_FILE_NAME)
  if (path === undefined && !existsSync(file)) {
    return { config: agentConfigSchema.parse({}), file: undefined, path: file, folder: cwd }
  }
  return { config: parseAgentConfig(readJson(file), file), file, path: file, folder: dirname(file) }
}

/**
 * Checks the content of a configuration file and fills in the defaults.
 * @param file the name of the file in errors
 * @throws ConfigFileError for the first invalid value
 */
export function parseAgentConfig(content: unknown, file: string): AgentConfig {
  const parsed = agentConfigSchema.safeParse(content)
  if (parsed.success) return parsed.data
  const { field, received, expected } = describeIssue(parsed.error, content, '')
  const name = field.replace(/^\./, '') || 'the file'
  // Secrets must not end up in a log.
  const shown = /^http\.tokens|^workers\.connection|\.headers|\.env/.test(name) ? '(not shown)' : preview(received)
  throw new ConfigFileError(file, `${name}: got ${shown}, expected ${expected}.`)
}

function readJson(file: string): unknown {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    const advice = code === 'ENOENT' ? ` ${howToConfigure(file)}` : ''
    throw new ConfigFileError(file, `cannot be read (${code}).${advice}`, { cause })
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, '')) as unknown
  } catch (cause) {
    throw new ConfigFileError(file, `is not JSON: ${describeFailure(cause)}.`, { cause })
  }
}
