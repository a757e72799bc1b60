/** The addresses of the page's sections, called parts: `#/timeline`, `#/tasks?state=failed`, `#/task/async:abc`. */

/** The heading of each part. The navigation shows the same names. */
export const PART_NAMES = {
  timeline: 'Timeline',
  tasks: 'Tasks',
  task: 'Task',
  launch: 'Launch',
  history: 'History',
  delivery: 'Delivery',
  host: 'Host',
  machines: 'Machines',
  instances: 'Instances',
  health: 'Health',
} as const

export type Part = keyof typeof PART_NAMES
export const PARTS = Object.keys(PART_NAMES) as readonly Part[]

export interface Address {
  readonly part: Part
  /** What the part shows, such as the key of a task in the part `task`. */
  readonly subject?: string
  readonly query: URLSearchParams
}

/** Reads the fragment of a URL. A fragment with an unknown part is the address of the timeline. */
export function readAddress(fragment: string): Address {
  const [path, query] = splitOnce(fragment.replace(/^#\/?/, ''), '?')
  const [name, subject] = splitOnce(path, '/')
  const part = PARTS.find((one) => one === name) ?? 'timeline'
  return { part, query: new URLSearchParams(query), ...(subject !== '' && { subject: decoded(subject) }) }
}

export function addressOf(part: Part, subject?: string, query?: URLSearchParams): string {
  const path = subject === undefined ? part : `${part}/${encoded(subject)}`
  const text = query?.toString() ?? ''
  return `#/${path}${text === '' ? '' : `?${text}`}`
}

/** Returns the same address with a query parameter set, or removed if the value is empty. */
export function withParameter({ part, subject, query }: Address, name: string, value: string | undefined): string {
  const changed = new URLSearchParams(query)
  if (value === undefined || value === '') changed.delete(name)
  else changed.set(name, value)
  return addressOf(part, subject, changed)
}

/** Returns the token in a link: `#token=…`, or `#/task/async:abc?token=…`. */
export function tokenOf(fragment: string): string | undefined {
  const query = fragment.startsWith('#/') ? splitOnce(fragment, '?')[1] : fragment.replace(/^#/, '')
  return new URLSearchParams(query).get('token') ?? undefined
}

/** Encodes a text as a segment of a path. A lone surrogate, which no URL can contain, becomes the replacement character. */
export function encoded(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'))
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
