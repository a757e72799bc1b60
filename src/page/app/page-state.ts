/** The shared state of the page: the known tasks, the connection, and the time of the server. */
import { computed, signal, type ReadonlySignal, type Signal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { PageTask } from '../wire.js'
import { createApi, type Api } from './api.js'
import { after, elapsed, every, onFrame } from './browser-clock.js'
import { createConnection, type Connection, type ConnectionHandle } from './stream/connection.js'
import { createFeed, type Known } from './stream/feed.js'
import { keepToken, keptToken, shareToken, takeToken } from './token.js'

/** What is displayed. Replaced at each change, at most once per frame. */
export interface View extends Omit<Known, 'tasks'> {
  /** Newest first. */
  readonly tasks: readonly PageTask[]
  readonly taskOf: (key: string) => PageTask | undefined
  /** Finds the task of an address, which has its key or its id. */
  readonly findTask: (name: string) => PageTask | undefined
}

interface Asking {
  readonly many: number
  /** The key of one of these tasks. */
  readonly first?: string
}

export interface Page {
  readonly api: Api
  readonly connection: ReadonlySignal<Connection>
  readonly view: ReadonlySignal<View>
  /** The server's clock, in ms since the epoch. It stops while the connection is lost. */
  now: () => number
  /** The same value, updated once a second. */
  readonly second: ReadonlySignal<number>
  /** The tasks with open questions. */
  readonly asking: ReadonlySignal<Asking>
  /** When the connection was lost, by the server's clock. */
  readonly lostAt: ReadonlySignal<number>
  /** When the page found a restarted server, by that server's clock. Undefined after the notice was read. */
  readonly restartedAt: Signal<number | undefined>
  hasToken: () => boolean
  useToken: (token: string) => void
  retryNow: () => void
}

/** How long a tab without a token waits for that of another tab, in ms. */
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
  // The server's clock at a moment of the browser's clock.
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
    // A dropped frame loses nothing, because the next change publishes everything.
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
        // The displayed time stops at once.
        second.value = now()
      },
      onEvent: (event) => {
        const step = feed.take(event)
        if (step.now !== undefined) heard = { now: step.now, at: elapsed() }
        if (step.hasChanged) publish()
        if (step.isWhole) {
          const before = run
          run = runOf(event.id)
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
  // A link that is pasted into an open tab changes only the fragment.
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

/** Identifies the process of the server that sent an event, by the first part of the event's id. */
function runOf(id: string): string {
  return id.slice(0, id.indexOf('-'))
}

function askingOf(tasks: readonly PageTask[]): Asking {
  const asking = tasks.filter(({ state }) => state === 'asking')
  const [first] = asking
  return { many: asking.length, ...(first && { first: first.key }) }
}

export const PageContext = createContext<Page | undefined>(undefined)

export function usePage(): Page {
  const page = useContext(PageContext)
  if (!page) throw new Error('A part of the page is outside of it.')
  return page
}
