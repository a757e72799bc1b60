/** Tracks whether a tab is loading another page, and which downloads it has begun. */
import type { DebuggeeEvent } from '../debuggee.js'
import { keptText } from './kept-text.js'

/** A document of the tab, identified by the browser's loader id. */
export interface LoadedPage {
  readonly loaderId: string
  isReady: boolean
}

export function createLoading(mainFrameId: string, loaderId: string) {
  let isLoading = false
  let isRequested = false
  let page: LoadedPage = { loaderId, isReady: true }
  let downloads: string[] = []
  /** The frames that are loading a page, without the main frame. */
  const frames = new Set<string>()

  function takeFrames({ method, params }: DebuggeeEvent): void {
    if (method === 'Page.frameStartedLoading' && params.frameId !== mainFrameId) frames.add(params.frameId)
    if (method === 'Page.frameStoppedLoading' || method === 'Page.frameDetached') frames.delete(params.frameId)
    // The frame runs in another process now, and may have loaded its page there already.
    if (method === 'Target.attachedToTarget') frames.delete(params.targetInfo.targetId)
  }

  return {
    take: (event: DebuggeeEvent): void => {
      takeFrames(event)
      if (event.sessionId !== undefined) return
      switch (event.method) {
        case 'Page.frameRequestedNavigation':
          if (event.params.frameId === mainFrameId && event.params.disposition === 'currentTab') isRequested = true
          break
        case 'Page.frameStartedLoading':
          if (event.params.frameId === mainFrameId) [isLoading, isRequested] = [true, false]
          break
        case 'Page.frameStoppedLoading':
          if (event.params.frameId === mainFrameId) [isLoading, isRequested] = [false, false]
          break
        case 'Page.frameNavigated':
          if (event.params.frame.id === mainFrameId) page = { loaderId: event.params.frame.loaderId, isReady: false }
          break
        case 'Page.domContentEventFired':
          page.isReady = true
          break
        case 'Page.downloadWillBegin':
          downloads = [...downloads.slice(-9), keptText(event.params.suggestedFilename, 200)]
          isRequested = false
          break
        default:
      }
    },
    /** Whether the tab is loading another page, or is about to. */
    get isBusy() {
      return isLoading || isRequested
    },
    /** Returns the ids of the frames that are loading a page, without the main frame and the ids in `before`. */
    frames: (before: ReadonlySet<string> = new Set()): ReadonlySet<string> =>
      new Set([...frames].filter((id) => !before.has(id))),
    get page() {
      return page
    },
    get hasDownloads() {
      return downloads.length > 0
    },
    /** The names of the files whose download began since the last call. */
    takeDownloads: (): readonly string[] => {
      const names = downloads
      downloads = []
      return names
    },
  }
}
