/** The label of a row; its bar is on the canvas behind it. */
import { StateIcon } from '../shell/state-icon.js'
import { count } from '../text/format.js'
import { visible } from '../text/visible.js'
import { rowText } from './row-text.js'
import { levelOf, type Row } from './rows.js'
import { ROW } from './timeline-painter.js'

interface Props {
  readonly row: Row
  readonly index: number
  readonly isActive: boolean
  readonly now: number
  readonly labelWidth: number
  readonly onPress: (row: Row) => void
}

/** Of a level, in px. */
const INDENT = 14

export function timelineRowId(index: number): string {
  return `timeline-row-${index}`
}

export function TimelineRow({ row, index, isActive, now, labelWidth, onPress }: Props) {
  const text = rowText(row, now)
  const isGroup = row.type === 'group'
  return (
    <div
      id={timelineRowId(index)}
      role="treeitem"
      class={`timeline-row ${row.type}`}
      aria-level={levelOf(row)}
      aria-expanded={isGroup ? row.isOpen : undefined}
      aria-selected={isActive}
      aria-label={text}
      title={text}
      data-key={row.key}
      style={{ transform: `translateY(${index * ROW}px)` }}
      onClick={() => onPress(row)}
    >
      <span class="row-label" style={{ width: `${labelWidth}px` }}>
        {isGroup ? (
          <>
            <span class="twist" aria-hidden="true">
              {row.isOpen ? '▾' : '▸'}
            </span>
            <span class="text">{visible(row.name)}</span>{' '}
            <span class="number hint">
              {row.live > 0 ? `${count(row.live)} of ${count(row.tasks.length)}` : count(row.tasks.length)}
            </span>
          </>
        ) : (
          <>
            {row.depth > 0 && (
              <span class="branch" aria-hidden="true" style={{ marginLeft: `${indentOf(row.depth, labelWidth)}px` }} />
            )}
            <StateIcon state={row.task.state} />
            <span class="text">{visible(row.task.title)}</span>
          </>
        )}
      </span>
    </div>
  )
}

/** A deep family leaves room for its names. */
function indentOf(depth: number, labelWidth: number): number {
  return Math.min((depth - 1) * INDENT, labelWidth / 4)
}
