/** A row of the task table. */
import type { PageTask } from '../../wire.js'
import { usePage } from '../page-state.js'
import { Length } from '../shell/length.js'
import { StateBadge } from '../shell/state-badge.js'
import { TaskTags } from '../shell/task-tags.js'
import { fullTime, timeOfDay } from '../text/format.js'
import { ownerText } from '../text/owners.js'
import { visible } from '../text/visible.js'

interface Props {
  readonly task: PageTask
  readonly index: number
  readonly top: number
  readonly isChosen: boolean
  readonly hasSubagent: boolean
  readonly onOpen: (key: string) => void
}

export function rowId(index: number): string {
  return `task-row-${index}`
}

export function TaskTableRow({ task, index, top, isChosen, hasSubagent, onOpen }: Props) {
  const { taskOf } = usePage().view.value
  const parent = task.parentKey === undefined ? undefined : taskOf(task.parentKey)
  return (
    <div
      id={rowId(index)}
      role="row"
      class="table-row"
      aria-rowindex={index + 2}
      aria-selected={isChosen}
      data-key={task.key}
      style={{ transform: `translateY(${top}px)` }}
      onClick={() => onOpen(task.key)}
    >
      <div role="gridcell" class="cell state">
        <StateBadge state={task.state} />
      </div>
      <div role="gridcell" class="cell title">
        <span class="text">{visible(task.title)}</span>
        <TaskTags task={task} />
        {task.error !== undefined && <span class="error-text">{visible(task.error)}</span>}
      </div>
      <div role="gridcell" class="cell group">
        {visible(ownerText(task, parent))}
      </div>
      {hasSubagent && (
        <div role="gridcell" class="cell subagent">
          {visible(task.subagent ?? '')}
        </div>
      )}
      <div role="gridcell" class="cell created number" title={fullTime(task.createdAt)}>
        {timeOfDay(task.createdAt)}
      </div>
      <div role="gridcell" class="cell duration number">
        <Length task={task} />
      </div>
    </div>
  )
}
