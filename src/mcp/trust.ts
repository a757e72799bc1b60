/**
 * Decides whether the configuration file in the current folder may be used. It names programs to run, and may have come with a repository. So nothing of
 * it is used before the user has said that the file is trusted (ADR 50).
 */
import { realpathSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { toOneLine } from '../data/control-characters.js'
import { ConfigFileError } from '../errors.js'
import { CONFIG_FILE_NAME } from '../protocol/agent-config.js'
import { readFoundFile } from './found-file.js'
import { digestOf, modeText, readTrust, writeTrust, type Environment } from './trust-records.js'

/** A configuration file that was found in the current folder, but is not used. */
export interface UntrustedFile {
  /** Its absolute path. */
  readonly file: string
  /** Why it is not used, for a person to read. */
  readonly reason: string
  /** The shell command with which the person can trust the file; undefined when the file cannot be trusted in its current state. */
  readonly command: string | undefined
}

/** A configuration file that was found: its content if it is trusted, or why it is not used. */
export type JudgedFile = { readonly bytes: Buffer } | { readonly untrusted: UntrustedFile }

/**
 * Reads the configuration file of a folder once, and decides whether it is trusted.
 * @returns undefined when there is no such file. Never throws
 */
export function judgeFoundFile(folder: string, env: Environment): JudgedFile | undefined {
  const file = join(folder, CONFIG_FILE_NAME)
  const found = readFoundFile(file)
  if (found === undefined) return undefined
  const refuse = (reason: string, canBeTrusted = true): JudgedFile => ({
    untrusted: { file, reason, command: canBeTrusted ? trustCommand(file) : undefined },
  })
  if ('problem' in found) return refuse(`${found.problem}.`, false)
  const path = realPathOf(file)
  if (path === undefined) return refuse('its folder cannot be found.', false)
  const exposed = exposureOf(path, found.stats.mode)
  if (exposed !== undefined) return refuse(exposed, false)
  const trust = readTrust(path, digestOf(found.bytes), env)
  switch (trust.state) {
    case 'trusted':
      return { bytes: found.bytes }
    case 'changed':
      return refuse('it has changed since it was trusted.')
    case 'damaged':
      return refuse(`the record of its trust, ${trust.record}, cannot be used: ${trust.problem}.`)
    case 'unknown':
      return refuse('it was found in the folder in which this program was started, and nobody has trusted it yet.')
  }
}

/**
 * Records that the user trusts a configuration file.
 * @param given the path of the file
 * @param check called with the content before it is trusted; throws when the content is not a configuration
 * @returns the paths of the records that were written
 * @throws INVALID_CONFIG when the file cannot be trusted
 */
export function trustFile(given: string, env: Environment, check: (bytes: Buffer, file: string) => void): string[] {
  const file = resolve(given)
  if (basename(file) !== CONFIG_FILE_NAME) {
    const problem = `only a file with the name ${CONFIG_FILE_NAME} needs to be trusted. Pass any other file with --config; it needs no trust.`
    throw new ConfigFileError(file, problem)
  }
  const found = readFoundFile(file)
  if (found === undefined) throw new ConfigFileError(file, 'there is no such file.')
  if ('problem' in found) throw new ConfigFileError(file, `${found.problem}.`)
  check(found.bytes, file)
  return trustBytes(file, found.bytes, found.stats.mode, env)
}

/**
 * Records that the user trusts a file with this content, which the caller has read or written.
 * @throws INVALID_CONFIG when the file cannot be trusted
 */
export function trustBytes(file: string, bytes: Buffer, mode: number, env: Environment): string[] {
  const path = realPathOf(file)
  if (path === undefined) throw new ConfigFileError(file, 'its folder cannot be found.')
  const exposed = exposureOf(path, mode)
  if (exposed !== undefined) throw new ConfigFileError(file, exposed)
  return writeTrust(path, digestOf(bytes), env)
}

/** The text for a person about a file that is not used: why, and what to do. */
export function describeUntrusted({ file, reason, command }: UntrustedFile): string {
  const first = `The configuration ${toOneLine(file)} is not used, and nothing of it is run: ${toOneLine(reason)}`
  const name = 'name a file with --config'
  if (command === undefined) return `${first} Correct this problem, or ${name}.`
  return `${first} Look at the file. If it should be used, run this command and start this program again, or ${name}:\n${command}`
}

/** The answer to every call of a tool, for the model to pass on. The file is read again, because the user may have trusted it since. */
export function answerUntrusted({ file }: UntrustedFile, env: Environment): string {
  const judged = judgeFoundFile(dirname(file), env)
  if (judged === undefined || 'bytes' in judged) {
    const since = judged === undefined ? 'is gone' : 'is trusted now'
    return `The configuration ${toOneLine(file)} ${since}. Ask the user to restart this MCP server, which reads it when it starts.`
  }
  return `No tool of this MCP server can be used yet. Show the user what follows, and do not run the command yourself: only the user may trust a file.\n\n${describeUntrusted(judged.untrusted)}`
}

/**
 * The path of a file, with the links in its folder resolved. Where the file system ignores case, the folder gets its real spelling. If the file itself
 * is a link, the link is kept, because trust depends on the content.
 */
function realPathOf(file: string): string | undefined {
  try {
    return join(realpathSync.native(dirname(file)), basename(file))
  } catch {
    return undefined
  }
}

/** Why other users of the machine can change the configuration; undefined when they cannot. */
function exposureOf(path: string, mode: number): string | undefined {
  // Windows does not use these bits.
  if (process.platform === 'win32') return undefined
  const [WRITABLE, STICKY] = [0o002, 0o1000]
  const say = (what: string, bits: number): string =>
    `every user of this machine can change it, because ${what} has the mode ${modeText(bits)}.`
  if ((mode & WRITABLE) !== 0) return say('it', mode)
  for (let folder = dirname(path), isOwn = true; ; folder = dirname(folder), isOwn = false) {
    const bits = statSync(folder, { throwIfNoEntry: false })?.mode ?? 0
    // In a folder with the sticky bit, such as /tmp, other users cannot replace files of this user, but they can add files. So this is safe for parent
    // folders only.
    if ((bits & WRITABLE) !== 0 && (isOwn || (bits & STICKY) === 0)) return say(folder, bits)
    if (folder === dirname(folder)) return undefined
  }
}

/**
 * The command names the running program by its full path, because a shell or npx may find another version first. Undefined when a path cannot be quoted
 * safely for a shell.
 */
function trustCommand(file: string): string | undefined {
  const manifest = createRequire(import.meta.url).resolve('agent-tasks/package.json')
  const main = join(dirname(manifest), 'dist', 'src', 'cli', 'main.js')
  const words = [process.execPath, main, 'mcp', '--trust', file].map(quote)
  return words.includes(undefined) ? undefined : words.join(' ')
}

function quote(word: string): string | undefined {
  if (toOneLine(word) !== word) return undefined
  if (process.platform === 'win32') return /[%$`"!^&<>|]/.test(word) ? undefined : `"${word}"`
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
