/** The state that all parts of the page share: the known tasks, the connection, and the server's time. */
import { computed, signal, type ReadonlySignal, type Signal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { PageTask } from '../wire.js'
import { createApi, type Api } from './api.js'
import { after, elapsed, every, onFrame } from './browser-clock.js'
import { createConnection, type Connection, type ConnectionHandle } from './stream/connection.js'
import { createFeed, type Known } from './stream/feed.js'
import { keepToken, keptToken, shareToken, takeToken } from './token.js'

/** The data that the page shows. After changes, a new object replaces the old one, at most once per frame. */
export interface View extends Omit<Known, 'tasks'> {
  /** Newest first. */
  readonly tasks: readonly PageTask[]
  readonly taskOf: (key: string) => PageTask | undefined
  readonly findTask: (name: string) => PageTask | undefined
}

interface Asking {
  readonly many: number
  /** The key of the newest of these tasks. */
  readonly first?: string
}

export interface Page {
  readonly api: Api
  readonly connection: ReadonlySignal<Connection>
  readonly view: ReadonlySignal<View>
  /** Returns the server's time in ms since the epoch. The time stops while the connection is lost. */
  now: () => number
  /** The result of `now`, updated once a second. */
  readonly second: ReadonlySignal<number>
  /** The tasks with open questions. */
  readonly asking: ReadonlySignal<Asking>
  /** The server's time when the connection was lost. */
  readonly lostAt: ReadonlySignal<number>
  /** When the page noticed that the server was restarted, by the new server's clock. Undefined after a person has closed the notice. */
  readonly restartedAt: Signal<number | undefined>
  hasToken: () => boolean
  useToken: (token: string) => void
  retryNow: () => void
}

/** How long a tab without a token waits for another tab to send its token, in ms. */
const ANSWER_MS = 300

export function createPage(): Page {
  let token = takeToken() ?? keptToken()
  const api = createApi(() => token)
  const connection = signal<Connection>({ state: 'connecting' })
  let feed = createFeed()
  const view = signal(viewOf(feed.known()))
  const second = signal(0)
  const lostAt = signal(0)
  const restartedAt = signal<number | undefined>(undefined)
  let run: string | undefined
  // The server's time in the last event, and the browser's time when that event arrived.
  let heard = { now: 0, at: 0 }
  let lastHeardAt = 0
  let stopFrame: (() => void) | undefined

  const now = (): number => {
    const at = connection.peek().state === 'live' ? elapsed() : lastHeardAt
    return heard.now + Math.max(0, at - heard.at)
  }
  const publish = (): void => {
    stopFrame ??= onFrame(() => {
      stopFrame = undefined
      view.value = viewOf(feed.known())
    })
  }
  const connect = () => {
    // A frame that shows the old feed may be dropped, because the next change publishes the whole view.
    feed = createFeed()
    return createConnection({
      platform: { open: api.openStream, after, now: elapsed },
      onHeard: () => {
        lastHeardAt = elapsed()
      },
      onState: (state) => {
        if (state.state !== 'connecting') lostAt.value = now()
        connection.value = state
        if (state.state === 'refused') askOtherTabs()
        // Updated now instead of at the next second, so that the shown time stops at once.
        second.value = now()
      },
      onEvent: (event) => {
        const step = feed.take(event)
        if (step.now !== undefined) heard = { now: step.now, at: elapsed() }
        if (step.hasChanged) publish()
        if (step.isWhole) {
          const before = run
          // This part of the id identifies the server process.
          run = event.id.slice(0, event.id.indexOf('-'))
          if (before !== undefined && run !== before) restartedAt.value = now()
          connection.value = { state: 'live' }
          second.value = now()
        }
      },
    })
  }

  const useToken = (given: string): void => {
    token = given
    keepToken(given)
    handle.close()
    handle = connect()
  }
  const askOtherTabs = shareToken(
    () => (connection.peek().state === 'live' ? token : undefined),
    (answer) => {
      const isNeeded = token === undefined || connection.peek().state === 'refused'
      if (isNeeded && answer !== token) useToken(answer)
    },
  )
  const waitForAnswer = (): ConnectionHandle => {
    askOtherTabs()
    return { close: after(ANSWER_MS, () => (handle = connect())), retryNow: () => undefined }
  }

  let handle = token === undefined ? waitForAnswer() : connect()
  // Pasting a link into an open tab changes only the fragment, so the page is not loaded again.
  window.addEventListener('hashchange', () => {
    const given = takeToken()
    if (given !== undefined) useToken(given)
  })
  every(1000, () => {
    second.value = now()
  })
  window.addEventListener('online', () => handle.retryNow())
  document.addEventListener('visibilitychange', () => handle.retryNow())

  return {
    api,
    connection,
    view,
    now,
    second,
    lostAt,
    asking: computed(() => askingOf(view.value.tasks)),
    restartedAt,
    hasToken: () => token !== undefined,
    useToken,
    retryNow: () => handle.retryNow(),
  }
}

function viewOf({ tasks, ...rest }: Known): View {
  return { ...rest, tasks: tasks.newestFirst(), taskOf: (key) => tasks.get(key), findTask: (name) => tasks.find(name) }
}

function askingOf(tasks: readonly PageTask[]): Asking {
  const asking = tasks.filter(({ state }) => state === 'asking')
  const [first] = asking
  return { many: asking.length, ...(first && { first: first.key }) }
}

export const PageContext = createContext<Page | undefined>(undefined)

export function usePage(): Page {
  const page = useContext(PageContext)
  if (!page) throw new Error('usePage needs a PageContext.Provider around the component.')
  return page
}
