/** The label of a row. The bar of the row is on the canvas behind it. */
import { StateIcon } from '../shell/state-icon.js'
import { count } from '../text/format.js'
import { visible } from '../text/visible.js'
import { GROUP_WORDS, PHASE_WORDS, rowText } from './row-text.js'
import { levelOf, type GroupRow, type Row, type PhaseRow } from './rows.js'
import { ROW } from './timeline-painter.js'

interface Props {
  readonly row: Row
  readonly index: number
  readonly isActive: boolean
  readonly now: number
  readonly labelWidth: number
  readonly onPress: (row: Row) => void
}

/** The indentation of each level of a family, in px. */
const INDENT = 14

export function timelineRowId(index: number): string {
  return `timeline-row-${index}`
}

export function TimelineRow({ row, index, isActive, now, labelWidth, onPress }: Props) {
  const text = rowText(row, now)
  return (
    <div
      id={timelineRowId(index)}
      role="treeitem"
      class={`timeline-row ${row.type}`}
      aria-level={levelOf(row)}
      aria-expanded={row.type === 'task' ? undefined : row.isOpen}
      aria-selected={isActive}
      aria-label={text}
      title={text}
      data-key={row.key}
      style={{ transform: `translateY(${index * ROW}px)` }}
      onClick={() => onPress(row)}
    >
      <span class="row-label" style={{ width: `${labelWidth}px` }}>
        {row.type === 'task' ? (
          <>
            {row.depth > 0 && (
              <span class="branch" aria-hidden="true" style={{ marginLeft: `${indentOf(row.depth, labelWidth)}px` }} />
            )}
            <StateIcon state={row.task.state} />
            <span class="text">{visible(row.task.title)}</span>
          </>
        ) : (
          <Head row={row} />
        )}
      </span>
      {row.type === 'phase' && !row.isOpen && (
        <span class="unfold" style={{ left: `${labelWidth + 8}px` }}>
          Show all
        </span>
      )}
    </div>
  )
}

function Head({ row }: { readonly row: PhaseRow | GroupRow }) {
  const { isOpen, count: inPhase, tasks } = row
  const isPhase = row.type === 'phase'
  return (
    <>
      <span class="twist" aria-hidden="true">
        {isOpen ? '▾' : '▸'}
      </span>
      <span class="text">
        {isPhase ? PHASE_WORDS[row.phase] : visible(row.name)}
        {!isPhase && <span class="hint"> {GROUP_WORDS[row.kind]}</span>}
      </span>{' '}
      <span class="number hint">
        {isPhase || inPhase === tasks.length ? count(inPhase) : `${count(inPhase)} of ${count(tasks.length)}`}
      </span>
    </>
  )
}

/** Returns the indentation of a task in px. It is limited, so that deep families leave room for the titles. */
function indentOf(depth: number, labelWidth: number): number {
  return Math.min((depth - 1) * INDENT, labelWidth / 4)
}
