/** The part Tasks: a table with a filter. The selected task is shown beside the table. */
import { useMemo, useRef } from 'preact/hooks'
import { addressOf, withParameter } from '../addresses.js'
import { replaceAddress } from '../current-address.js'
import { usePage } from '../page-state.js'
import type { PartProps } from '../shell/part-props.js'
import { NoTasks } from '../shell/no-tasks.js'
import { WithTaskPanel } from '../task/with-task-panel.js'
import { count } from '../text/format.js'
import { BulkActions } from './bulk-actions.js'
import { FilterBar } from './filter-bar.js'
import { choicesOf, filterTasks, readFilter } from './task-filter.js'
import { TaskTable } from './task-table.js'

export function TasksPart({ address }: PartProps) {
  const { view, second, now } = usePage()
  const { tasks } = view.value
  const filter = useMemo(() => readFilter(address.query), [address])
  // Only the order by duration changes with time.
  const time = filter.sort === 'duration' ? second.value : 0
  const found = useMemo(() => filterTasks(tasks, filter, time === 0 ? now() : time), [tasks, filter, time])
  const choices = useMemo(() => choicesOf(tasks, filter), [tasks, filter])
  const table = useRef<HTMLElement>(null)
  return (
    <WithTaskPanel address={address}>
      {({ chosen, choose, open }) => (
        <section ref={table} class="part tasks" aria-labelledby="tasks-heading">
          <div class="part-head">
            <h1 id="tasks-heading">Tasks</h1>
            <p class="hint">
              {found.length === tasks.length ? count(tasks.length) : `${count(found.length)} of ${count(tasks.length)}`}
            </p>
            <span class="grow" />
            {view.value.hello?.canLaunch === true && <a href={addressOf('launch')}>Launch a task</a>}
          </div>
          {tasks.length === 0 ? (
            <NoTasks />
          ) : (
            <>
              <FilterBar
                filter={filter}
                choices={choices}
                address={address}
                onLeave={() => table.current?.querySelector<HTMLElement>('[role=grid]')?.focus()}
              />
              <BulkActions tasks={found} />
              {found.length === 0 ? (
                <div class="empty">
                  <p class="empty-title">No task matches the filter</p>
                  <p>
                    <button type="button" onClick={() => replaceAddress('#/tasks')}>
                      Show all {count(tasks.length)}
                    </button>
                  </p>
                </div>
              ) : (
                <TaskTable
                  tasks={found}
                  filter={filter}
                  chosen={chosen}
                  onChoose={choose}
                  onOpen={open}
                  onSort={(sort) => replaceAddress(withParameter(address, 'sort', sort))}
                />
              )}
            </>
          )}
        </section>
      )}
    </WithTaskPanel>
  )
}
