/**
 * Finds out which new tabs were opened by pages under control. The browser does not say so: it names the active tab as the opener of each new tab. But
 * the debugger announces each tab that a page under control opens, before the browser opens the tab.
 */

/** How long an announcement is valid, in ms. */
const APART_MS = 2000

/** @param now returns the time, in ms */
export function createOpenedTabs(now: () => number = () => performance.now()) {
  let announcements: readonly number[] = []
  return {
    /** Announces that a page under control is about to open a tab. */
    announce: (): void => {
      announcements = [...announcements, now()]
    },
    /**
     * Call it for each new tab. Each announcement counts for one tab.
     * @returns whether the tab was announced
     */
    isAnnounced: (): boolean => {
      const recent = announcements.filter((at) => now() - at <= APART_MS)
      announcements = recent.slice(1)
      return recent.length > 0
    },
  }
}
