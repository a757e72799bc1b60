/** The part Timeline: when each task was created, ran and ended. */
import { useSignal } from '@preact/signals'
import { useMemo, useRef } from 'preact/hooks'
import { withParameter, type Address } from '../addresses.js'
import { replaceAddress } from '../current-address.js'
import { usePage } from '../page-state.js'
import type { PartProps } from '../shell/part-props.js'
import { NoTasks } from '../shell/no-tasks.js'
import { WithTaskPanel } from '../task/with-task-panel.js'
import { FilterBar } from '../tasks/filter-bar.js'
import { choicesOf, filterTasks, readFilter } from '../tasks/task-filter.js'
import { count, timeOfDay } from '../text/format.js'
import { Legend } from './legend.js'
import type { Toggled } from './rows.js'
import { TimelineRows } from './timeline-rows.js'
import { TimelineToolbar } from './timeline-toolbar.js'
import { useTimelineView } from './use-timeline-view.js'

export function TimelinePart({ address }: PartProps) {
  const { view, now } = usePage()
  const toggled = useSignal<Toggled>(new Map())
  const timeline = useTimelineView()
  const { tasks } = timeline
  // The order of the task table does not apply to the timeline.
  const filter = useMemo(
    () => ({ ...readFilter(address.query), sort: 'created' as const, isAscending: false }),
    [address],
  )
  const found = useMemo(() => filterTasks(tasks, filter, now()), [tasks, filter])
  // The timeline filters only by text and state. The task table also filters by owner, instance and subagent.
  const choices = useMemo(() => ({ states: choicesOf(tasks, filter).states, ...NO_NAMES }), [tasks, filter])
  const part = useRef<HTMLElement>(null)
  return (
    <WithTaskPanel address={address}>
      {(choosing) => (
        <section ref={part} class="part timeline" aria-labelledby="timeline-heading">
          <div class="part-head">
            <h1 id="timeline-heading">Timeline</h1>
            {found.length < tasks.length && (
              <p class="hint">
                {count(found.length)} of {count(tasks.length)}
              </p>
            )}
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
              <FilterBar
                filter={filter}
                choices={choices}
                address={address}
                onLeave={() => part.current?.querySelector<HTMLElement>('[role=tree]')?.focus()}
              />
              {found.length === 0 ? (
                <div class="empty">
                  <p class="empty-title">No task matches the filter</p>
                  <p>
                    <button type="button" onClick={() => replaceAddress(withoutFilter(address))}>
                      Show all {count(tasks.length)}
                    </button>
                  </p>
                </div>
              ) : (
                <TimelineRows
                  timeline={timeline}
                  tasks={found}
                  toggled={toggled.value}
                  onToggled={(to) => (toggled.value = to)}
                  choosing={choosing}
                />
              )}
              <Legend />
            </>
          )}
        </section>
      )}
    </WithTaskPanel>
  )
}

const NO_NAMES = { owners: [], instances: [], subagents: [] } as const

/** Returns the address without the filter, and keeps the selected task. */
function withoutFilter({ part, query }: Address): string {
  return withParameter({ part, query: new URLSearchParams() }, 'task', query.get('task') ?? undefined)
}
