/**
 * The configuration that was found in the folder where the program was started. It names programs, and may have come with a repository: nothing of
 * it is used before the user has said that it is trusted (ADR 50).
 */
import { realpathSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { toOneLine } from '../text/control-characters.js'
import { ConfigFileError } from '../errors.js'
import { CONFIG_FILE_NAME } from '../protocol/agent-config.js'
import { readFoundFile } from './found-file.js'
import { digestOf, modeText, readTrust, writeTrust, type Environment } from './trust-records.js'

/** A configuration that was found and is not used. */
export interface UntrustedFile {
  /** Its absolute path. */
  readonly file: string
  /** Why it is not used, in words for a person. */
  readonly reason: string
  /** What the person can run to trust it, for a shell; undefined when that is not possible. */
  readonly command: string | undefined
}

/** A found file: what it contains, if it is trusted. */
export type JudgedFile = { readonly bytes: Buffer } | { readonly untrusted: UntrustedFile }

/**
 * Reads the configuration of a folder once, and says whether it is trusted.
 * @returns undefined when there is none. Never throws
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
 * Records that a configuration is trusted.
 * @param given its path
 * @param check is called with its content before that; throws when the content is not a configuration
 * @returns the records that were written
 * @throws ConfigFileError when it cannot be trusted
 */
export function trustFile(given: string, env: Environment, check: (bytes: Buffer, file: string) => void): string[] {
  const file = resolve(given)
  if (basename(file) !== CONFIG_FILE_NAME) {
    const problem = `only files with the name ${CONFIG_FILE_NAME} are found, and need to be trusted. Name any other with --config.`
    throw new ConfigFileError(file, problem)
  }
  const found = readFoundFile(file)
  if (found === undefined) throw new ConfigFileError(file, 'there is no such file.')
  if ('problem' in found) throw new ConfigFileError(file, `${found.problem}.`)
  check(found.bytes, file)
  return trustBytes(file, found.bytes, found.stats.mode, env)
}

/** Records that a file is trusted with this content, which was read or written before. @throws ConfigFileError */
export function trustBytes(file: string, bytes: Buffer, mode: number, env: Environment): string[] {
  const path = realPathOf(file)
  if (path === undefined) throw new ConfigFileError(file, 'its folder cannot be found.')
  const exposed = exposureOf(path, mode)
  if (exposed !== undefined) throw new ConfigFileError(file, exposed)
  return writeTrust(path, digestOf(bytes), env)
}

/** What a person reads about a file that is not used: why, and what to do. */
export function describeUntrusted({ file, reason, command }: UntrustedFile): string {
  const first = `The configuration ${toOneLine(file)} is not used, and nothing of it is run: ${toOneLine(reason)}`
  const name = 'name a file with --config'
  if (command === undefined) return `${first} Change that, or ${name}.`
  return `${first} Look at the file. If it should be used, run this command and start this program again, or ${name}:\n${command}`
}

/** What a call of a tool is answered with, for a model to pass on. The file is looked at again: the user may have trusted it since. */
export function answerUntrusted({ file }: UntrustedFile, env: Environment): string {
  const judged = judgeFoundFile(dirname(file), env)
  if (judged === undefined || 'bytes' in judged) {
    const since = judged === undefined ? 'is gone' : 'is trusted now'
    return `The configuration ${toOneLine(file)} ${since}. Ask the user to restart this MCP server, which reads it when it starts.`
  }
  return `No tool of this MCP server can be used yet. Show the user what follows, and do not run the command yourself: only the user may trust a file.\n\n${describeUntrusted(judged.untrusted)}`
}

/** The path with the folder's links resolved and, where the file system ignores case, in the case of the folder. The file may be a link: its content counts. */
function realPathOf(file: string): string | undefined {
  try {
    return join(realpathSync.native(dirname(file)), basename(file))
  } catch {
    return undefined
  }
}

/** Why other users of the machine can change what the configuration runs; undefined when they cannot. */
function exposureOf(path: string, mode: number): string | undefined {
  // The bits have no meaning there.
  if (process.platform === 'win32') return undefined
  const [WRITABLE, STICKY] = [0o002, 0o1000]
  const say = (what: string, bits: number): string =>
    `every user of this machine can change it, because ${what} has the mode ${modeText(bits)}.`
  if ((mode & WRITABLE) !== 0) return say('it', mode)
  for (let folder = dirname(path), isOwn = true; ; folder = dirname(folder), isOwn = false) {
    const bits = statSync(folder, { throwIfNoEntry: false })?.mode ?? 0
    // In a sticky folder, such as /tmp, others cannot replace what is not theirs; they can add files.
    if ((bits & WRITABLE) !== 0 && (isOwn || (bits & STICKY) === 0)) return say(folder, bits)
    if (folder === dirname(folder)) return undefined
  }
}

/** The exact program that runs now, and not what a shell or npx may find first. Undefined when a path cannot be written safely for a shell. */
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
