/** The visible period of the timeline. It follows the current time, or stays fixed. */
import { lengthOfWindow, panned, windowAt, zoomed, type TimeWindow } from './time-window.js'

export type TimelineView =
  { readonly mode: 'following'; readonly lengthMs: number } | { readonly mode: 'still'; readonly window: TimeWindow }

export type ViewChange =
  | { readonly type: 'zoom'; readonly factor: number; readonly place?: number }
  | { readonly type: 'pan'; readonly part: number }
  | { readonly type: 'follow' }
  | { readonly type: 'fit'; readonly lengthMs: number }

export const FIRST_VIEW: TimelineView = { mode: 'following', lengthMs: 300_000 }

export function windowOf(view: TimelineView, now: number): TimeWindow {
  return view.mode === 'following' ? windowAt(now, view.lengthMs) : view.window
}

/** Applies a change to the view. Zooming does not change whether the view follows the current time. Moving makes the view fixed. */
export function changedView(view: TimelineView, change: ViewChange, now: number): TimelineView {
  const shown = windowOf(view, now)
  switch (change.type) {
    case 'zoom': {
      const isFollowing = view.mode === 'following'
      const window = zoomed(shown, change.factor, change.place ?? (isFollowing ? 1 : 0.5))
      return isFollowing ? { mode: 'following', lengthMs: lengthOfWindow(window) } : { mode: 'still', window }
    }
    case 'pan':
      return { mode: 'still', window: panned(shown, change.part) }
    case 'follow':
      return { mode: 'following', lengthMs: lengthOfWindow(shown) }
    case 'fit':
      return { mode: 'following', lengthMs: change.lengthMs }
  }
}

export function viewChangeOf(
  key: string,
  isShift: boolean,
): Exclude<ViewChange, { type: 'fit' }> | 'fit' | 'pause' | undefined {
  switch (key) {
    case '+':
    case '=':
      return { type: 'zoom', factor: 0.7 }
    case '-':
    case '_':
      return { type: 'zoom', factor: 1 / 0.7 }
    case '[':
      return { type: 'pan', part: -0.2 }
    case ']':
      return { type: 'pan', part: 0.2 }
    case 'ArrowLeft':
      return isShift ? { type: 'pan', part: -0.2 } : undefined
    case 'ArrowRight':
      return isShift ? { type: 'pan', part: 0.2 } : undefined
    case '0':
      return 'fit'
    case 'f':
      return { type: 'follow' }
    case 'p':
      return 'pause'
    default:
      return undefined
  }
}
