/** Finds out who set a timer, from the stack of the call, for the timeline of a race. */
import { basename, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Who set a timer. It is converted to text only for a report, because the conversion is slow. */
export interface TimerOrigin {
  /** What was running when the timer was set: the name of a turn or phase, or another timer. */
  readonly during: string | TimerOrigin
  readonly call: { readonly stack?: string }
}

/** How many stack frames are recorded. A machine has fewer between the code that sends an event and the timer that the event sets. */
const FRAMES = 100

const kit = fileURLToPath(new URL('.', import.meta.url))
const root = fileURLToPath(new URL('../../', import.meta.url))
const own = [`${root}src${sep}`, `${root}machines${sep}`]
const clock = `${root}src${sep}clock.`

/** @param callee the function whose caller is returned */
export function originOf(callee: (run: () => void, ms: number) => unknown): Pick<TimerOrigin, 'call'> {
  const call = {}
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = FRAMES
  Error.captureStackTrace(call, callee)
  Error.stackTraceLimit = stackTraceLimit
  return { call }
}

/**
 * Names a timer that has no label after the code that set it: `timer of save (shop.ts:12)`, or `timer of agent-tasks (hub)`. If the stack has no such
 * code, the name is that of the timer during which it was set, or of the turn.
 */
export function timerName({ call, during }: TimerOrigin): string {
  const setter = setterOf(call.stack)
  if (setter !== undefined) return `timer of ${setter}`
  return typeof during === 'string' ? `timer set in ${during}` : timerName(during)
}

/** Returns who set a timer: a file of this package, or the user's function. */
function setterOf(stack: string | undefined): string | undefined {
  const frame = framesOf(stack).find(({ file }) => !file.startsWith(clock))
  if (frame === undefined) return undefined
  return isOwn(frame) ? `agent-tasks (${basename(frame.file).replace(/\.\w+$/u, '')})` : placeOf(frame)
}

/** The nearest function of the user on a stack; undefined if there is none. */
export function userOf(stack: string | undefined): string | undefined {
  const frame = framesOf(stack).find((one) => !isOwn(one))
  return frame && placeOf(frame)
}

interface Frame {
  readonly name: string | undefined
  readonly file: string
  readonly at: string
}

/** The frames of a stack above the race kit, without dependencies and Node. */
function framesOf(stack = ''): Frame[] {
  const frames = stack.split('\n').flatMap((line) => frameOf(line) ?? [])
  // Frames below the race kit belong to the code that started the race. That code has not set the timer.
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
  // A function without a name, or in an object or list, is named after its location.
  return { name: name?.replace(/^Object\./u, '').replace(/^.*<anonymous>$/u, '') || undefined, file, at }
}
