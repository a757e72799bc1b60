/**
 * Reads or creates the file with a page's token, so that a link stays valid when the page restarts. The token is a secret: only its owner may be able
 * to read the file, and symbolic links are not followed.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, linkSync, mkdirSync, readSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { InvalidInputError } from '../errors.js'
import { openAtOnce } from '../regular-file.js'

/** The minimum length of a token, in characters. */
const MIN_TOKEN = 16
const TOKEN = new RegExp(`^[\\w.~+/=-]{${MIN_TOKEN},}$`)

/** The format of a token, for errors. */
export const TOKEN_WORDS = `at least ${MIN_TOKEN} of the characters A-Z a-z 0-9 - . _ ~ + / =`

/** The maximum size of the file, in bytes. */
const MAX_BYTES = 4096

export const isToken = (text: string): boolean => TOKEN.test(text)

export const randomToken = (): string => randomBytes(24).toString('base64url')

/**
 * Reads the token of a file. If the file does not exist, creates it with a random token, readable by its owner only.
 * @param field the name of the setting, for errors
 * @throws InvalidInputError for a file that others can read, that is not a regular file, or that has no token; errors of the file system
 */
export function tokenOfFile(file: string, field: string): string {
  return readToken(file, field) ?? writeToken(file, field)
}

/** Returns undefined if the file does not exist. */
function readToken(file: string, field: string): string | undefined {
  const refuse = (expected: string): never => {
    throw new InvalidInputError(field, file, expected)
  }
  let descriptor: number
  try {
    descriptor = openAtOnce(file, { followsLinks: false })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    if (code === 'ELOOP' || code === 'EMLINK') return refuse('a file, not a symbolic link')
    return refuse(`a file that this process can read (${String(code)})`)
  }
  try {
    const stats = fstatSync(descriptor)
    const { mode, uid, size } = stats
    if (!stats.isFile()) return refuse('a regular file')
    const user = process.getuid?.()
    if (user !== undefined && uid !== user) return refuse('a file of the user that runs this process')
    if (user !== undefined && (mode & 0o077) !== 0) {
      return refuse('a file that only its owner can read and write (chmod 600)')
    }
    const bytes = Buffer.alloc(Math.min(size, MAX_BYTES + 1))
    const read = readSync(descriptor, bytes, 0, bytes.length, 0)
    const token = bytes.toString('utf8', 0, read).replace(/\r?\n$/, '')
    return read <= MAX_BYTES && isToken(token) ? token : refuse(`a file whose text is a token: ${TOKEN_WORDS}`)
  } finally {
    closeSync(descriptor)
  }
}

/** Writes a temporary file and then links it to its name, so that a process that starts at the same time never reads a part of it. */
function writeToken(file: string, field: string): string {
  const token = randomToken()
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.${process.pid}.${randomBytes(6).toString('hex')}`
  writeFileSync(draft, `${token}\n`, { mode: 0o600, flag: 'wx' })
  try {
    linkSync(draft, file)
    return token
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // Another process was first, or the name is a dangling symbolic link, which is refused.
    const other = readToken(file, field)
    if (other === undefined) throw error
    return other
  } finally {
    rmSync(draft, { force: true })
  }
}
