/** Who set a timer, read from the stack of the call: for the timeline of a race. */
import { basename, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Who set a timer. It is put into words only when a report needs it, since that is slow. */
export interface TimerOrigin {
  /** What was running: the name of a turn or of a phase, or another timer. */
  readonly during: string | TimerOrigin
  /** The call that set it. */
  readonly call: { readonly stack?: string }
}

/** More frames than a machine puts between the code that sends an event and the timer that it sets. */
const FRAMES = 100

const kit = fileURLToPath(new URL('.', import.meta.url))
const root = fileURLToPath(new URL('../../', import.meta.url))
const own = [`${root}src${sep}`, `${root}machines${sep}`]

/** @param callee the function whose caller is looked for */
export function originOf(callee: (run: () => void, ms: number) => unknown): Pick<TimerOrigin, 'call'> {
  const call = {}
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = FRAMES
  Error.captureStackTrace(call, callee)
  Error.stackTraceLimit = stackTraceLimit
  return { call }
}

/**
 * A timer by who set it: `timer of save (shop.ts:12)`. A timer that another one has set without the user's code is named as that one.
 * Without any code of the user's in between, it is named by the turn in which it was set.
 */
export function timerName({ call, during }: TimerOrigin): string {
  const user = userOf(call.stack)
  if (user !== undefined) return `timer of ${user}`
  return typeof during === 'string' ? `timer set in ${during}` : timerName(during)
}

/** The nearest function of the user's: none of this package, of a dependency, or of Node. Undefined when there is none. */
function userOf(stack = ''): string | undefined {
  for (const line of stack.split('\n').slice(1)) {
    const frame = frameOf(line)
    if (frame === undefined) continue
    const { name, file, at } = frame
    // What called the race has not set the timer.
    if (file.startsWith(kit)) return undefined
    if (own.some((folder) => file.startsWith(folder)) || file.includes(`${sep}node_modules${sep}`)) continue
    const place = `${basename(file)}:${at}`
    return name === undefined ? place : `${name} (${place})`
  }
  return undefined
}

/** A line of a V8 stack: `at async Shop.save [as buy] (file:///shop.ts:12:5)`, or without a name `at /shop.ts:12:5`. */
const FRAME =
  /^\s*at (?:async )?(?:(?<name>.+?) (?:\[as [^\]]+\] )?\()?(?<path>(?:file:\/\/)?\/.+?|[A-Za-z]:\\.+?):(?<at>\d+):\d+\)?$/u

function frameOf(line: string): { name: string | undefined; file: string; at: string } | undefined {
  const { name, path, at } = FRAME.exec(line)?.groups ?? {}
  if (path === undefined || at === undefined) return undefined
  const file = path.startsWith('file:') ? fileURLToPath(path) : path
  // A function in an object or a list, or one without a name, is known by its place.
  return { name: name?.replace(/^Object\./u, '').replace(/^.*<anonymous>$/u, '') || undefined, file, at }
}
