/** The task table: a grid that renders only the visible rows. Arrow keys select a row, and Enter opens its task. */
import type { PageTask } from '../../wire.js'
import { movedTo } from '../list-window.js'
import { usePage } from '../page-state.js'
import { useListWindow } from '../use-list-window.js'
import { SORTS, type SortColumn, type TaskFilter } from './task-filter.js'
import { TaskTableRow, rowId } from './task-table-row.js'

interface Props {
  readonly tasks: readonly PageTask[]
  readonly filter: TaskFilter
  readonly chosen: string | undefined
  readonly onChoose: (key: string) => void
  readonly onOpen: (key: string) => void
  readonly onSort: (sort: string) => void
}

const ROW = 32
const HEAD = 32
const HEADINGS: Readonly<Record<SortColumn, string>> = {
  state: 'State',
  title: 'Task',
  group: 'Owner or instance',
  subagent: 'Subagent',
  created: 'Created',
  duration: 'Total time',
}
const ORDER: readonly SortColumn[] = ['state', 'title', 'group', 'subagent', 'created', 'duration']

export function TaskTable({ tasks, filter, chosen, onChoose, onOpen, onSort }: Props) {
  const { hello } = usePage().view.value
  const isOfInstances = hello?.hasAsync === false
  const headings = isOfInstances ? { ...HEADINGS, group: 'Instance' } : HEADINGS
  const box = useListWindow(tasks.length, ROW, HEAD)
  const active = tasks.findIndex(({ key }) => key === chosen)
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return
    if (event.key === 'Enter' && chosen !== undefined) {
      onOpen(chosen)
      return
    }
    const index = movedTo(event.key, active, tasks.length, box.page)
    const task = index === undefined ? undefined : tasks[index]
    if (index === undefined || !task) return
    event.preventDefault()
    box.reveal(index)
    onChoose(task.key)
  }
  return (
    <div
      ref={box.ref}
      onScroll={box.onScroll}
      class={isOfInstances ? 'table of-instances' : 'table'}
      role="grid"
      aria-label="Tasks"
      aria-rowcount={tasks.length + 1}
      aria-activedescendant={active >= box.first && active < box.end ? rowId(active) : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div role="rowgroup" class="table-head">
        <div role="row" class="table-row" aria-rowindex={1}>
          {ORDER.filter((column) => !isOfInstances || column !== 'subagent').map((column) => (
            <div key={column} role="columnheader" class={`cell ${column}`} aria-sort={sortOf(column, filter)}>
              <button type="button" onClick={() => onSort(nextSort(column, filter))}>
                {headings[column]}
              </button>
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="table-body" style={{ height: `${tasks.length * ROW}px` }}>
        {tasks.slice(box.first, box.end).map((task, at) => (
          <TaskTableRow
            key={task.key}
            task={task}
            index={box.first + at}
            top={(box.first + at) * ROW}
            isChosen={task.key === chosen}
            hasSubagent={!isOfInstances}
            onOpen={onOpen}
          />
        ))}
      </div>
    </div>
  )
}

function sortOf(column: SortColumn, { sort, isAscending }: TaskFilter): 'ascending' | 'descending' | 'none' {
  if (column !== sort) return 'none'
  return isAscending ? 'ascending' : 'descending'
}

/** Returns the order after a click on a column. Times start in descending order, and texts in ascending order. */
function nextSort(column: SortColumn, { sort, isAscending }: TaskFilter): string {
  const beginsDown = column === SORTS[0] || column === 'duration'
  if (column !== sort) return beginsDown ? `-${column}` : column
  return isAscending ? `-${column}` : column
}
