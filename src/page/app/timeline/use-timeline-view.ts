/** The state of the timeline: the visible period, and the tasks that it shows. While it is paused, it shows the tasks at the time of the pause. */
import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { PageTask } from '../../wire.js'
import { usePage } from '../page-state.js'
import { fittingLength, type TimeWindow } from './time-window.js'
import { changedView, FIRST_VIEW, windowOf, type TimelineView, type ViewChange } from './timeline-view.js'

export interface Timeline {
  readonly view: TimelineView
  /** The tasks, newest first; while the timeline is paused, the tasks at the time of the pause. */
  readonly tasks: readonly PageTask[]
  readonly pausedAt: number | undefined
  readonly window: () => TimeWindow
  readonly now: () => number
  readonly change: (change: ViewChange) => void
  readonly fit: () => void
  readonly pause: () => void
}

/** At first, the visible period reaches back to the creation of the 40th latest task. */
const LATEST = 40

export function useTimelineView(): Timeline {
  const page = usePage()
  const chosen = useSignal<TimelineView | undefined>(undefined)
  const paused = useSignal<{ readonly tasks: readonly PageTask[]; readonly at: number } | undefined>(undefined)
  const isStill = useMemo(() => matchMedia('(prefers-reduced-motion: reduce)'), [])
  const tasks = paused.value?.tasks ?? page.view.value.tasks
  const now = (): number => paused.peek()?.at ?? (isStill.matches ? page.second.peek() : page.now())
  const oldest = tasks[Math.min(LATEST, tasks.length) - 1]?.createdAt
  if (chosen.peek() === undefined && oldest !== undefined) {
    chosen.value = { mode: 'following', lengthMs: fittingLength(oldest, page.now()) }
  }
  const view = chosen.value ?? FIRST_VIEW
  const change = (to: ViewChange): void => {
    chosen.value = changedView(chosen.peek() ?? FIRST_VIEW, to, now())
    if (to.type === 'follow') paused.value = undefined
  }
  return {
    view,
    tasks,
    pausedAt: paused.value?.at,
    window: () => windowOf(chosen.peek() ?? FIRST_VIEW, now()),
    now,
    change,
    fit: () => change({ type: 'fit', lengthMs: fittingLength(tasks.at(-1)?.createdAt ?? now(), now()) }),
    pause: () => {
      paused.value = paused.peek() ? undefined : { tasks: page.view.peek().tasks, at: page.now() }
    },
  }
}
