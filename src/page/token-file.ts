/**
 * Reads or creates the file that holds the page's token, so that a link to the page stays valid when the page restarts. The token is a secret. Therefore
 * a symbolic link is refused, and so is a file that other users can read.
 */
import { randomBytes } from 'node:crypto'
import { InvalidInputError } from '../errors.js'
import { readPrivate, writePrivate } from '../system/private-file.js'

/** The minimum length of a token, in characters. */
const MIN_TOKEN = 16
const TOKEN = new RegExp(`^[\\w.~+/=-]{${MIN_TOKEN},}$`)

export const TOKEN_WORDS = `at least ${MIN_TOKEN} of the characters A-Z a-z 0-9 - . _ ~ + / =`

/** The maximum size of the file, in bytes. */
const MAX_BYTES = 4096

export const isToken = (text: string): boolean => TOKEN.test(text)

export const randomToken = (): string => randomBytes(24).toString('base64url')

/**
 * Returns the token in a file. If the file does not exist, creates it with a random token, so that only its owner can read it.
 * @param field the name of the setting, for errors
 * @throws INVALID_INPUT if other users can read the file, if it is not a regular file, or if its text is not a token
 * @throws Error from the file system, if the file cannot be created
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
    // Another process has created the file in the meantime, so its token is used. If there is still no file, the name is a link that leads nowhere.
    const other = readToken(file, field)
    if (other === undefined) throw error
    return other
  }
}
