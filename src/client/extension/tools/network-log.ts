/** The requests of a page since it began to load. */
import type { Protocol } from 'devtools-protocol'
import type { DebuggeeEvent } from '../debuggee.js'
import { keptText } from './kept-text.js'
import { createRecent } from './recent.js'

export interface NetworkRequest {
  readonly id: string
  readonly method: string
  readonly url: string
  readonly type: Protocol.Network.ResourceType
  /** The response, such as `[200] OK`, or why there is none. Undefined while the request waits for it. */
  outcome: string | undefined
  isSuccess: boolean
}

const KEPT = { count: 1000, bytes: 512 * 1024 }
const URL_CHARS = 500
const METHOD_CHARS = 30
/**
 * The kinds of requests that are awaited after an action. Documents are left out, because the end of a document's request is not reported if its frame
 * runs in another process.
 */
const AWAITED: readonly Protocol.Network.ResourceType[] = ['Fetch', 'XHR', 'Script']

export function createNetworkLog() {
  const pending = new Map<string, NetworkRequest>()
  let recent = createRequests()

  function begin({ requestId, loaderId, request, type = 'Other', redirectResponse, frameId }: RequestEvent): void {
    if (redirectResponse !== undefined) finish(requestId, `[${redirectResponse.status}] redirected`, true)
    // This request loads the page itself, so the log starts again.
    if (type === 'Document' && requestId === loaderId && frameId === mainFrameId && redirectResponse === undefined) {
      recent = createRequests()
      pending.clear()
    }
    const [method, url] = [keptText(request.method, METHOD_CHARS), keptText(request.url, URL_CHARS)]
    const entry = { id: requestId, method, url, type, outcome: undefined, isSuccess: false }
    recent.add(entry)
    pending.set(requestId, entry)
    if (pending.size > KEPT.count) pending.delete([...pending.keys()][0] ?? '')
  }

  function finish(id: string, outcome: string | undefined, isSuccess: boolean): void {
    const entry = pending.get(id)
    pending.delete(id)
    if (entry === undefined) return
    entry.outcome = outcome ?? entry.outcome
    if (outcome !== undefined) entry.isSuccess = isSuccess
  }

  let mainFrameId: string | undefined
  return {
    setMainFrame: (frameId: string): void => void (mainFrameId = frameId),
    take: (event: DebuggeeEvent): void => {
      if (event.method === 'Network.requestWillBeSent') begin(event.params)
      else if (event.method === 'Network.responseReceived') {
        const { requestId, response } = event.params
        const entry = pending.get(requestId)
        if (entry === undefined) return
        entry.outcome = `[${response.status}] ${keptText(response.statusText, 100)}`.trimEnd()
        entry.isSuccess = response.status < 400
      } else if (event.method === 'Network.loadingFinished') finish(event.params.requestId, undefined, true)
      else if (event.method === 'Network.loadingFailed') {
        const { requestId, errorText, canceled, blockedReason } = event.params
        const failure = canceled === true ? undefined : `[failed] ${blockedReason ?? errorText}`
        // A response that the page does not read is cancelled. Its status then stays the outcome of the request.
        finish(requestId, failure ?? pending.get(requestId)?.outcome ?? '[cancelled]', false)
      }
    },
    /** Returns the ids of the awaited requests in flight, without those in `before`. */
    awaited: (before: ReadonlySet<string> = new Set()): ReadonlySet<string> =>
      new Set(
        [...pending.values()].filter(({ id, type }) => AWAITED.includes(type) && !before.has(id)).map(({ id }) => id),
      ),
    get requests() {
      return recent.entries
    },
    get dropped() {
      return recent.dropped
    },
  }
}

type RequestEvent = Protocol.Network.RequestWillBeSentEvent

const createRequests = () => createRecent<NetworkRequest>(KEPT, ({ url }) => 2 * url.length + 500)
