/**
 * Which of the new tabs pages under control have opened. The browser names the tab that was active as the opener of each new one, so that it does
 * not say who opened it. But the debugger announces each tab that a page under control opens, before the browser opens it.
 */

/** How long after its announcement a tab may be opened, in ms. */
const APART_MS = 2000

/** @param now in ms */
export function createOpenedTabs(now: () => number = () => performance.now()) {
  let announcements: readonly number[] = []
  return {
    /** A page under control opens a tab. */
    announce: (): void => {
      announcements = [...announcements, now()]
    },
    /** @returns whether the tab that the browser has opened just now was announced; each announcement is good for one */
    isAnnounced: (): boolean => {
      const recent = announcements.filter((at) => now() - at <= APART_MS)
      announcements = recent.slice(1)
      return recent.length > 0
    },
  }
}
