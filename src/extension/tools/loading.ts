/** Whether the page of a tab is being replaced by another, and what it downloads instead. */
import { cutText } from '../../preview.js'
import type { DebuggeeEvent } from '../debuggee.js'

/** A document of the tab, named by the loader of the browser. */
export interface LoadedPage {
  readonly loaderId: string
  isReady: boolean
}

export function createLoading(mainFrameId: string, loaderId: string) {
  let isLoading = false
  let isRequested = false
  let page: LoadedPage = { loaderId, isReady: true }
  let downloads: string[] = []
  return {
    take: (event: DebuggeeEvent): void => {
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
          downloads = [...downloads.slice(-9), cutText(event.params.suggestedFilename, 200)]
          isRequested = false
          break
        default:
      }
    },
    /** Whether another page is loading, or will be as soon as the browser gets to it. */
    get isBusy() {
      return isLoading || isRequested
    },
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

export type Loading = ReturnType<typeof createLoading>
