/** Tracks whether the page of a tab is being replaced, and downloads that start instead. */
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
  /** The other frames that are loading a page. */
  const frames = new Set<string>()

  function takeFrames({ method, params }: DebuggeeEvent): void {
    if (method === 'Page.frameStartedLoading' && params.frameId !== mainFrameId) frames.add(params.frameId)
    if (method === 'Page.frameStoppedLoading' || method === 'Page.frameDetached') frames.delete(params.frameId)
    // The load may already have ended in the new process.
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
    /** Whether another page is loading, or is about to. */
    get isBusy() {
      return isLoading || isRequested
    },
    /** The other frames that are loading a page, except those in an earlier result of this function. */
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
