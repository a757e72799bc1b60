/**
 * Reads or creates the file with a page's token, so that a link stays valid when the page restarts. The token is a secret: only its owner may be able
 * to read the file, and symbolic links are not followed.
 */
import { randomBytes } from 'node:crypto'
import { InvalidInputError } from '../errors.js'
import { readPrivate, writePrivate } from '../private-file.js'

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
  const text = readPrivate(file, field, MAX_BYTES)
  if (text === undefined) return undefined
  const token = text.replace(/\r?\n$/, '')
  if (text.length <= MAX_BYTES && isToken(token)) return token
  throw new InvalidInputError(field, file, `a file whose text is a token: ${TOKEN_WORDS}`)
}

function writeToken(file: string, field: string): string {
  const token = randomToken()
  try {
    writePrivate(file, `${token}\n`, { replaces: false })
    return token
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // Another process was first, or the name is a dangling symbolic link, which is refused.
    const other = readToken(file, field)
    if (other === undefined) throw error
    return other
  }
}
