/** Timeline: when each task was created, ran and ended. */
import { useSignal } from '@preact/signals'
import { usePage } from '../page-state.js'
import type { PartProps } from '../shell/part-props.js'
import { NoTasks } from '../shell/no-tasks.js'
import { WithTaskPanel } from '../task/with-task-panel.js'
import { timeOfDay } from '../text/format.js'
import { Legend } from './legend.js'
import { TimelineRows } from './timeline-rows.js'
import { TimelineToolbar } from './timeline-toolbar.js'
import { useTimelineView } from './use-timeline-view.js'

export function TimelinePart({ address }: PartProps) {
  const { view } = usePage()
  const closed = useSignal<ReadonlySet<string>>(new Set())
  const timeline = useTimelineView()
  const { tasks } = timeline
  return (
    <WithTaskPanel address={address}>
      {(choosing) => (
        <section class="part timeline" aria-labelledby="timeline-heading">
          <div class="part-head">
            <h1 id="timeline-heading">Timeline</h1>
            {view.value.tasks.length > 0 && (
              <TimelineToolbar
                isFollowing={timeline.view.mode === 'following'}
                pausedAt={timeline.pausedAt === undefined ? undefined : timeOfDay(timeline.pausedAt)}
                onChange={timeline.change}
                onFit={timeline.fit}
                onPause={timeline.pause}
              />
            )}
          </div>
          {tasks.length === 0 ? (
            <NoTasks />
          ) : (
            <>
              <TimelineRows
                timeline={timeline}
                closed={closed.value}
                onClosed={(to) => (closed.value = to)}
                choosing={choosing}
              />
              <Legend />
            </>
          )}
        </section>
      )}
    </WithTaskPanel>
  )
}
