/**
 * Detects pages that produce more events than the extension can handle, for example by logging in a loop. Other events would wait behind the flood, such
 * as the event that the person has taken the tab back.
 */
import type { DebuggeeEvent } from '../debuggee.js'

/**
 * The limits for one second of the page's time. `logEvents`: events of the domain Runtime or Log in a session. `otherEvents`: events of another domain
 * in a session; a request has several. `chars`: characters of console messages in a session.
 */
const LIMITS = { logEvents: 2000, otherEvents: 5000, chars: 4_000_000 }
const WINDOW_MS = 1000
/**
 * How many events of a domain may arrive after the domain was disabled. After that the tab is detached, because commands to the page wait behind its
 * events.
 */
const MAX_LATE = 3000

/** The domains that the tools can do without. */
const DISPENSABLE = ['Runtime', 'Log', 'Network'] as const

export type DispensableDomain = (typeof DISPENSABLE)[number]

export interface FloodOptions {
  /** Called once for each domain of a session that must be disabled. */
  readonly onFlood: (domain: DispensableDomain, sessionId: string | undefined) => void
  /** Called when a disabled domain does not stop sending events, and when the tools cannot do without the domain. */
  readonly onEndless: () => void
  /** Returns the time, in ms. */
  readonly now?: () => number
}

interface Rate {
  since: number
  events: number
  chars: number
  /** How many events have arrived since the domain was disabled; undefined if it is enabled. */
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
      // Events of a flood wait until they are handled. So the time at which the page produced them counts, not the time at which they arrive.
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
    /** Forgets the counts of a session, because it shows another page. */
    forget: (sessionId: string | undefined): void => {
      for (const domain of DISPENSABLE) rates.delete(`${sessionId ?? ''} ${domain}`)
    },
  }
}

/** When the page produced the event, in ms; undefined if the event does not say. */
function timeOf({ method, params }: DebuggeeEvent): number | undefined {
  if (method === 'Runtime.consoleAPICalled' || method === 'Runtime.exceptionThrown') return params.timestamp
  if (method === 'Log.entryAdded') return params.entry.timestamp
  return method === 'Network.requestWillBeSent' || method === 'Network.dataReceived'
    ? params.timestamp * 1000
    : undefined
}

function charsOf(event: DebuggeeEvent): number {
  if (event.method !== 'Runtime.consoleAPICalled') return 0
  return event.params.args.reduce((sum, { value }) => sum + (typeof value === 'string' ? value.length : 0), 0)
}
