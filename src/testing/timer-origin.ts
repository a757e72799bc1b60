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
const clock = `${root}src${sep}clock.`

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
 * The name of a timer without a label, by the code that set it: `timer of save (shop.ts:12)`, or `timer of agent-tasks (hub)`. A timer that was set by
 * another timer has its name, or else the name of the turn in which it was set.
 */
export function timerName({ call, during }: TimerOrigin): string {
  const setter = setterOf(call.stack)
  if (setter !== undefined) return `timer of ${setter}`
  return typeof during === 'string' ? `timer set in ${during}` : timerName(during)
}

/** What set a timer: the file of this package, or the user's function. */
function setterOf(stack: string | undefined): string | undefined {
  const frame = framesOf(stack).find(({ file }) => !file.startsWith(clock))
  if (frame === undefined) return undefined
  return isOwn(frame) ? `agent-tasks (${basename(frame.file).replace(/\.\w+$/u, '')})` : placeOf(frame)
}

/** The nearest function of the user's on a stack; undefined when there is none. */
export function userOf(stack: string | undefined): string | undefined {
  const frame = framesOf(stack).find((one) => !isOwn(one))
  return frame && placeOf(frame)
}

interface Frame {
  readonly name: string | undefined
  readonly file: string
  readonly at: string
}

/** The frames above the race, without those of dependencies and of Node. */
function framesOf(stack = ''): Frame[] {
  const frames = stack.split('\n').flatMap((line) => frameOf(line) ?? [])
  // What called the race has not set the timer.
  const race = frames.findIndex(({ file }) => file.startsWith(kit))
  return frames
    .slice(0, race === -1 ? undefined : race)
    .filter(({ file }) => !file.includes(`${sep}node_modules${sep}`))
}

const isOwn = ({ file }: Frame): boolean => own.some((folder) => file.startsWith(folder))

function placeOf({ name, file, at }: Frame): string {
  const place = `${basename(file)}:${at}`
  return name === undefined ? place : `${name} (${place})`
}

/** A line of a V8 stack: `at async Shop.save [as buy] (file:///shop.ts:12:5)`, or without a name `at /shop.ts:12:5`. */
const FRAME =
  /^\s*at (?:async )?(?:(?<name>.+?) (?:\[as [^\]]+\] )?\()?(?<path>(?:file:\/\/)?\/.+?|[A-Za-z]:\\.+?):(?<at>\d+):\d+\)?$/u

function frameOf(line: string): Frame | undefined {
  const { name, path, at } = FRAME.exec(line)?.groups ?? {}
  if (path === undefined || at === undefined) return undefined
  const file = path.startsWith('file:') ? fileURLToPath(path) : path
  // A function in an object or a list, or one without a name, is known by its place.
  return { name: name?.replace(/^Object\./u, '').replace(/^.*<anonymous>$/u, '') || undefined, file, at }
}
