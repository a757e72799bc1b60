/** The console of a page: log messages and uncaught exceptions. */
import type { Protocol } from 'devtools-protocol'
import type { DebuggeeEvent } from '../debuggee.js'
import { keptText } from './kept-text.js'
import { createRecent } from './recent.js'

/** The levels of messages, from the most to the least severe. */
export const LEVELS = ['error', 'warning', 'info', 'debug'] as const

export type Level = (typeof LEVELS)[number]

export interface ConsoleMessage {
  readonly level: Level
  readonly text: string
  readonly source: string
  /** The number of the page, counted from 0 since the tab was attached. */
  readonly page: number
}

const KEPT = { count: 1000, bytes: 256 * 1024 }
const MESSAGE_CHARS = 2000
const URL_CHARS = 300

export function createConsoleLog() {
  const recent = createRecent<ConsoleMessage>(KEPT, ({ text, source }) => 2 * (text.length + source.length) + 50)
  let page = 0
  const add = (level: Level, text: string, url = '', line = 0): void => {
    const source = url === '' ? '' : ` @ ${keptText(url, URL_CHARS)}:${line}`
    recent.add({ level, text: keptText(text, MESSAGE_CHARS), source, page })
  }
  return {
    take: (event: DebuggeeEvent): void => {
      if (event.method === 'Runtime.consoleAPICalled') {
        const { type, args, stackTrace } = event.params
        const [frame] = stackTrace?.callFrames ?? []
        add(levelOf(type), args.map(argumentText).join(' '), frame?.url, frame?.lineNumber)
      } else if (event.method === 'Runtime.exceptionThrown') {
        const { exceptionDetails: details } = event.params
        add('error', exceptionText(details), details.url, details.lineNumber)
      } else if (event.method === 'Log.entryAdded') {
        const { level, text, url, lineNumber } = event.params.entry
        add(level === 'verbose' ? 'debug' : level, text, url, lineNumber)
      }
    },
    startPage: (): void => void (page += 1),
    /** @param all whether to include the messages of earlier pages of the tab */
    list: (level: Level, all: boolean): readonly ConsoleMessage[] =>
      recent.entries.filter(
        (message) => (all || message.page === page) && LEVELS.indexOf(message.level) <= LEVELS.indexOf(level),
      ),
    get dropped() {
      return recent.dropped
    },
  }
}

export function exceptionText({ exception, text }: Protocol.Runtime.ExceptionDetails): string {
  if (exception === undefined) return text
  return exception.description ?? `Thrown: ${argumentText(exception)}`
}

function levelOf(type: Protocol.Runtime.ConsoleAPICalledEvent['type']): Level {
  if (type === 'error' || type === 'assert') return 'error'
  if (type === 'warning' || type === 'debug') return type
  return 'info'
}

function argumentText({ type, value, description, unserializableValue, preview }: RemoteObject): string {
  if (preview !== undefined) return previewText(preview)
  if (value !== undefined && type !== 'object') return String(value)
  return unserializableValue ?? description ?? (value === undefined ? type : JSON.stringify(value))
}

/** The first properties of an object, from the browser's preview. */
function previewText({ subtype, description = '', properties, overflow }: Protocol.Runtime.ObjectPreview): string {
  if (subtype !== undefined && subtype !== 'array') return description
  const isArray = subtype === 'array'
  const parts = properties.map(({ name, value, type }) => {
    const text = type === 'string' ? JSON.stringify(value) : (value ?? type)
    return isArray ? text : `${name}: ${text}`
  })
  const text = [...parts, ...(overflow ? ['...'] : [])].join(', ')
  return isArray ? `[${text}]` : `{${text}}`
}

type RemoteObject = Protocol.Runtime.RemoteObject
