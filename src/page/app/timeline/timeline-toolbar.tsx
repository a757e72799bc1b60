/** The buttons that choose the visible period, follow the current time, and pause the timeline. */
import type { ViewChange } from './timeline-view.js'

interface Props {
  readonly isFollowing: boolean
  readonly pausedAt: string | undefined
  readonly onChange: (change: Exclude<ViewChange, { type: 'fit' }>) => void
  readonly onFit: () => void
  readonly onPause: () => void
}

export function TimelineToolbar({ isFollowing, pausedAt, onChange, onFit, onPause }: Props) {
  return (
    <div class="toolbar" role="toolbar" aria-label="Timeline">
      <div class="joined">
        <button
          type="button"
          title="Earlier ( [ )"
          aria-label="Earlier"
          onClick={() => onChange({ type: 'pan', part: -0.4 })}
        >
          ◂
        </button>
        <button
          type="button"
          title="Zoom out ( - )"
          aria-label="Zoom out"
          onClick={() => onChange({ type: 'zoom', factor: 2 })}
        >
          −
        </button>
        <button type="button" title="Fit ( 0 )" onClick={onFit}>
          Fit
        </button>
        <button
          type="button"
          title="Zoom in ( + )"
          aria-label="Zoom in"
          onClick={() => onChange({ type: 'zoom', factor: 0.5 })}
        >
          +
        </button>
        <button
          type="button"
          title="Later ( ] )"
          aria-label="Later"
          onClick={() => onChange({ type: 'pan', part: 0.4 })}
        >
          ▸
        </button>
      </div>
      <button
        type="button"
        title="Follow ( f )"
        aria-pressed={isFollowing}
        onClick={() => onChange({ type: 'follow' })}
      >
        Follow
      </button>
      <button type="button" title="Pause ( p )" aria-pressed={pausedAt !== undefined} onClick={onPause}>
        Pause
      </button>
      {pausedAt !== undefined && (
        <span class="tag asks" role="status">
          Paused at {pausedAt}
        </span>
      )}
    </div>
  )
}
