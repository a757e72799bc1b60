/**
 * Detects pages that produce more events than the extension can handle, for example by logging in a loop. Other events, such as the person taking a tab
 * back, would wait behind them.
 */
import type { DebuggeeEvent } from '../debuggee.js'

/** The limits per second of page time: events of a domain in a session, and characters of its console. A request has several events. */
const LIMITS = { logEvents: 2000, otherEvents: 5000, chars: 4_000_000 }
const WINDOW_MS = 1000
/** The maximum number of events of a domain after it was disabled. Beyond it the page is detached, because commands to it wait behind its events. */
const MAX_LATE = 3000

/** The domains that the tools can do without. */
const DISPENSABLE = ['Runtime', 'Log', 'Network'] as const

export type DispensableDomain = (typeof DISPENSABLE)[number]

export interface FloodOptions {
  /** Called once for each domain of a session that has to be disabled. */
  readonly onFlood: (domain: DispensableDomain, sessionId: string | undefined) => void
  /** Called when that does not help, or when the domain is necessary. */
  readonly onEndless: () => void
  /** In ms. */
  readonly now?: () => number
}

interface Rate {
  since: number
  events: number
  chars: number
  /** The number of events after it was disabled; undefined before. */
  late?: number
}

export function createFloods({ onFlood, onEndless, now = () => performance.now() }: FloodOptions) {
  const rates = new Map<string, Rate>()

  return {
    /** @returns whether the event belongs to a flood and must be ignored */
    take: (event: DebuggeeEvent): boolean => {
      const [domain = ''] = event.method.split('.')
      const key = `${event.sessionId ?? ''} ${domain}`
      const rate: Rate = rates.get(key) ?? { since: -Infinity, events: 0, chars: 0 }
      rates.set(key, rate)
      if (rate.late !== undefined) {
        rate.late += 1
        if (rate.late === MAX_LATE) onEndless()
        return true
      }
      // Events of a flood arrive late, at the speed at which they are handled. So their own time counts.
      const at = timeOf(event) ?? now()
      if (at - rate.since > WINDOW_MS) Object.assign(rate, { since: at, events: 0, chars: 0 })
      rate.events += 1
      rate.chars += charsOf(event)
      const dispensable = DISPENSABLE.find((one) => one === domain)
      const most = dispensable === undefined || domain === 'Network' ? LIMITS.otherEvents : LIMITS.logEvents
      if (rate.events <= most && rate.chars <= LIMITS.chars) return false
      rate.late = 0
      if (dispensable === undefined) onEndless()
      else onFlood(dispensable, event.sessionId)
      return true
    },
    /** Resets a session that shows another page. */
    forget: (sessionId: string | undefined): void => {
      for (const domain of DISPENSABLE) rates.delete(`${sessionId ?? ''} ${domain}`)
    },
  }
}

/** When the page produced it, in ms. */
function timeOf({ method, params }: DebuggeeEvent): number | undefined {
  if (method === 'Runtime.consoleAPICalled' || method === 'Runtime.exceptionThrown') return params.timestamp
  if (method === 'Log.entryAdded') return params.entry.timestamp
  return method === 'Network.requestWillBeSent' || method === 'Network.dataReceived'
    ? params.timestamp * 1000
    : undefined
}

/** The length of the text in a console event. */
function charsOf(event: DebuggeeEvent): number {
  if (event.method !== 'Runtime.consoleAPICalled') return 0
  return event.params.args.reduce((sum, { value }) => sum + (typeof value === 'string' ? value.length : 0), 0)
}
