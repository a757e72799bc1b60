/** The rows of the timeline: a tree for the keyboard and for screen readers, over the canvas with the bars. */
import { useMemo } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { PageTask } from '../../wire.js'
import { movedTo } from '../list-window.js'
import { usePage } from '../page-state.js'
import type { Choosing } from '../task/with-task-panel.js'
import { useListWindow } from '../use-list-window.js'
import { indexAbove, indexOfRow, rowsOf, type Row, type Toggled } from './rows.js'
import { TimelineCanvas } from './timeline-canvas.js'
import { AXIS, ROW } from './timeline-painter.js'
import { TimelineRow, timelineRowId } from './timeline-row.js'
import { viewChangeOf } from './timeline-view.js'
import { useTimeGestures } from './use-time-gestures.js'
import type { Timeline } from './use-timeline-view.js'

interface Props {
  readonly timeline: Timeline
  /** The tasks that match the filter, the newest first. */
  readonly tasks: readonly PageTask[]
  readonly toggled: Toggled
  readonly onToggled: (toggled: Toggled) => void
  readonly choosing: Choosing
}

export function TimelineRows({ timeline, tasks, toggled, onToggled, choosing }: Props) {
  const { second } = usePage()
  const rows = useMemo(() => rowsOf(tasks, toggled), [tasks, toggled])
  const list = useListWindow(rows.length, ROW, AXIS)
  const left = labelWidth(list.width)
  const width = Math.max(80, list.width - left)
  const gestures = useTimeGestures(list.ref, left, width, timeline.change)
  const activeKey = useSignal<string | undefined>(undefined)
  const active = indexOfRow(rows, activeKey.value ?? choosing.chosen)

  const toggle = (key: string, isOpen: boolean): void => onToggled(new Map([...toggled, [key, isOpen]]))
  const goTo = (index: number): void => {
    const row = rows[index]
    if (!row) return
    activeKey.value = row.key
    list.reveal(index)
    if (row.type === 'task') choosing.choose(row.key)
  }
  const press = (row: Row): void => {
    activeKey.value = row.key
    if (row.type === 'task') choosing.open(row.key)
    else toggle(row.key, !row.isOpen)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const row = rows[active]
    const change = viewChangeOf(event.key, event.shiftKey)
    const index = movedTo(event.key, active, rows.length, list.page)
    if (change === 'fit') timeline.fit()
    else if (change === 'pause') timeline.pause()
    else if (change) timeline.change(change)
    else if (index !== undefined) goTo(index)
    else if (row && (event.key === 'Enter' || event.key === ' ')) press(row)
    else if (row && event.key === 'ArrowRight') {
      if (row.type !== 'task' && !row.isOpen) toggle(row.key, true)
      else goTo(active + 1)
    } else if (row && event.key === 'ArrowLeft') {
      if (row.type !== 'task' && row.isOpen) toggle(row.key, false)
      else goTo(indexAbove(rows, active))
    } else return
    event.preventDefault()
  }

  const shown = rows.slice(list.first, list.end)
  const isActiveShown = active >= list.first && active < list.end
  return (
    <div
      ref={list.ref}
      onScroll={list.onScroll}
      class="timeline-scroll"
      role="tree"
      aria-label="Tasks over time"
      aria-activedescendant={isActiveShown ? timelineRowId(active) : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <TimelineCanvas rows={rows} list={list} left={left} width={width} window={timeline.window} now={timeline.now} />
      <div class="timeline-body" role="presentation" style={{ height: `${rows.length * ROW}px` }}>
        {shown.map((row, at) => (
          <TimelineRow
            key={row.key}
            row={row}
            index={list.first + at}
            isActive={list.first + at === active}
            now={timeline.pausedAt ?? second.value}
            labelWidth={left}
            onPress={(pressed) => !gestures.wasDragged() && press(pressed)}
          />
        ))}
      </div>
    </div>
  )
}

function labelWidth(width: number): number {
  if (width < 560) return 132
  return width < 1000 ? 220 : Math.min(480, Math.round(width * 0.24))
}
