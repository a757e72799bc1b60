/** The settings on the options page, and their validation. */
import { z } from 'zod'
import { isLoopback } from '../endpoints.js'

export interface Settings {
  /** The HTTP URL of the server. */
  readonly url: string
  /** The token. Empty if the server asks for none. */
  readonly token: string
  /** The instance id under which tasks find this browser. */
  readonly name: string
  readonly isOn: boolean
}

export const DEFAULT_SETTINGS: Settings = { url: 'http://127.0.0.1:3300', token: '', name: 'browser', isOn: true }

export type Field = 'url' | 'token' | 'name'

export type FieldProblems = Readonly<Partial<Record<Field, string>>>

const settingsSchema = z.object({
  url: z.string(),
  token: z.string(),
  name: z.string(),
  isOn: z.boolean(),
})

/** Reads stored settings. Returns the defaults if there are none, or if they are invalid. */
export function readSettings(stored: unknown): Settings {
  return settingsSchema.catch(DEFAULT_SETTINGS).parse(stored)
}

/**
 * Checks what the person entered.
 * @returns the settings to store, or the problem of each invalid field
 */
export function checkSettings(entered: Omit<Settings, 'isOn'>): Settings | { readonly problems: FieldProblems } {
  const [url, token, name] = [entered.url.trim(), entered.token.trim(), entered.name.trim()]
  const problems: Partial<Record<Field, string>> = {}
  const urlProblem = problemOfUrl(url)
  if (urlProblem !== undefined) problems.url = urlProblem
  // The token is sent in a header, which allows no other characters.
  if (!/^[\x21-\x7e]*$/.test(token)) problems.token = 'Enter a token of visible ASCII characters, without spaces.'
  if (!/^[\w.:-]{1,256}$/.test(name)) {
    problems.name = 'Enter 1 to 256 letters, digits, dots, colons, dashes or underscores.'
  }
  return Object.keys(problems).length > 0 ? { problems } : { url, token, name, isOn: true }
}

function problemOfUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return 'Enter an address that begins with http:// or https://, such as http://127.0.0.1:3300.'
  }
  if (url.username !== '' || url.password !== '') return 'Enter the token in its own field, not in the address.'
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    return 'Use https:// for a server on another machine: with http:// anyone on the network can read the token.'
  }
  return undefined
}
