/** Reads `agent-tasks.config.json`. An error names the file, the field and the value. */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ConfigFileError } from '../errors.js'
import { agentConfigSchema, CONFIG_FILE_NAME, type AgentConfig } from '../protocol/agent-config.js'
import { parseConfigJson } from '../protocol/config-json.js'
import { describeFailure } from '../protocol/outcomes.js'
import { describeIssue } from '../protocol/parse.js'
import { isServerField } from '../protocol/server-config.js'
import { KNOWN_FIELD } from '../protocol/strict-object.js'
import { cutText } from '../data/cut-text.js'
import { preview } from '../data/preview.js'
import { toOneLine } from '../data/control-characters.js'
import { howToConfigure } from './starter-config.js'
import type { Environment } from './trust-records.js'
import { describeUntrusted, judgeFoundFile, type UntrustedFile } from './trust.js'

/** The maximum number of characters that an error shows of a field's name, and of what was expected there. */
const MAX_SHOWN_CHARS = 500

/** A configuration and its source. */
export interface LoadedConfig {
  /** Every setting, after defaults. */
  readonly config: AgentConfig
  /** The file that was read; undefined when there is none. */
  readonly file: string | undefined
  /** The path of the file, even if there is no such file. */
  readonly path: string
  /** The directory that relative paths in the configuration start from. */
  readonly folder: string
  /**
   * The file that was found but is not used, because the user has not trusted it. `config` then has the defaults. Pass this value to the server, as its
   * option `untrusted`.
   */
  readonly untrusted?: UntrustedFile
}

/**
 * Reads a configuration file. Without a path, it looks for `agent-tasks.config.json` in `cwd`. If there is no such file, or if the user has not trusted
 * it (`agent-tasks mcp --trust`), it returns the defaults.
 * @param path the file, which is used without a check of trust; relative paths start from `cwd`
 * @param cwd the directory to look in; default: the working directory
 * @param env the variables `XDG_CONFIG_HOME` and `HOME`, which locate the user's records of trust; default: `process.env`
 * @returns the configuration, and where it comes from
 * @throws INVALID_CONFIG when the file cannot be read, is not JSON, or contains an invalid value
 */
export function loadAgentConfig(
  path?: string,
  cwd: string = process.cwd(),
  env: Readonly<Record<string, string | undefined>> = process.env,
): LoadedConfig {
  if (path !== undefined) return loaded(resolve(cwd, path), readNamed)
  const file = resolve(cwd, CONFIG_FILE_NAME)
  const judged = judgeFoundFile(cwd, env)
  if (judged !== undefined && 'bytes' in judged) return loaded(file, () => judged.bytes)
  const none = { config: agentConfigSchema.parse({}), file: undefined, path: file, folder: cwd }
  return judged === undefined ? none : { ...none, untrusted: judged.untrusted }
}

/**
 * Reads a configuration file as `loadAgentConfig` does, for a command that runs the programs of the file.
 * @throws INVALID_CONFIG also when the file that was found is not trusted
 */
export function loadTrustedConfig(path: string | undefined, env: Environment): LoadedConfig {
  const read = loadAgentConfig(path, process.cwd(), env)
  if (read.untrusted === undefined) return read
  throw new ConfigFileError(read.path, `it is not trusted. ${describeUntrusted(read.untrusted)}`)
}

function loaded(file: string, read: (file: string) => Buffer): LoadedConfig {
  return { config: parseConfigBytes(read(file), file), file, path: file, folder: dirname(file) }
}

/**
 * Checks the content of a configuration file and fills in the defaults.
 * @param content the parsed JSON of the file
 * @param file the name of the file in errors
 * @returns the configuration with all defaults
 * @throws INVALID_CONFIG for the first invalid value
 */
export function parseAgentConfig(content: unknown, file: string): AgentConfig {
  const parsed = agentConfigSchema.safeParse(content)
  if (parsed.success) return parsed.data
  const { field, received, expected } = describeIssue(parsed.error, content, '')
  const name = field.replace(/^\./, '') || 'the file'
  if (expected.startsWith(KNOWN_FIELD)) {
    const rest = `${expected.slice(KNOWN_FIELD.length)}.`.replace(/the nearest is (.*)\.$/, 'did you mean $1?')
    const other = isServerField(name)
      ? ` In the settings of the task server it is known; to check those: CONFIG_FILE=${JSON.stringify(file)} agent-tasks config check.`
      : ''
    throw new ConfigFileError(file, `${shortLine(name)}: unknown field${shortLine(rest)}${other}`)
  }
  // The values of these fields are secrets, so they must not be shown in a log.
  const isHidden = /^http\.tokens|^workers\.connection|\.headers|\.env/.test(name)
  const shown = isHidden ? '(not shown)' : preview(received)
  throw new ConfigFileError(file, `${shortLine(name)}: got ${toOneLine(shown)}, expected ${shortLine(expected)}.`)
}

/** Shortens a text for an error and replaces its control characters. The name of a field comes from the file, so it can contain anything. */
function shortLine(text: string): string {
  const line = toOneLine(cutText(text, MAX_SHOWN_CHARS))
  return text.length > MAX_SHOWN_CHARS ? `${line}...` : line
}

/**
 * Parses and checks the bytes of a configuration file.
 * @throws INVALID_CONFIG when the bytes are not JSON, or a value is invalid
 */
export function parseConfigBytes(bytes: Buffer, file: string): AgentConfig {
  let content: unknown
  try {
    content = parseConfigJson(bytes.toString('utf8'))
  } catch (cause) {
    throw new ConfigFileError(file, `is not JSON: ${shortLine(describeFailure(cause))}.`, { cause })
  }
  return parseAgentConfig(content, file)
}

function readNamed(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    const advice = code === 'ENOENT' ? ` ${howToConfigure(file)}` : ''
    throw new ConfigFileError(file, `cannot be read (${code}).${advice}`, { cause })
  }
}
