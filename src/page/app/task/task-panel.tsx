/** All details of one task, and its actions. */
import { useRef } from 'preact/hooks'
import { addressOf } from '../addresses.js'
import { usePage } from '../page-state.js'
import { StateBadge } from '../shell/state-badge.js'
import { TaskTags } from '../shell/task-tags.js'
import { visible } from '../text/visible.js'
import { MessageForm } from './message-form.js'
import { SectionLevel } from './section.js'
import { TaskActions } from './task-actions.js'
import { TaskSections } from './task-sections.js'
import { useKeptFocus } from './use-kept-focus.js'
import { useTaskDetail } from './use-task-detail.js'

interface Props {
  /** The key or the id of the task. */
  readonly name: string
  readonly headingId: string
  /** Whether the task fills the part, instead of a panel beside a list. */
  readonly isAlone?: boolean
  readonly onClose?: () => void
}

export function TaskPanel({ name, headingId, isAlone = false, onClose }: Props) {
  const { view } = usePage()
  const row = view.value.findTask(name)
  const taskKey = row?.key ?? name
  const { detail, error, isUnknown } = useTaskDetail(taskKey, row).value
  const task = row ?? detail?.task
  const Heading = isAlone ? 'h1' : 'h2'
  const panel = useRef<HTMLElement>(null)
  useKeptFocus(panel, headingId)
  return (
    <article ref={panel} class="task-panel" data-task={taskKey}>
      <header class="task-head">
        <div class="part-head">
          <Heading id={headingId} tabIndex={-1}>
            Task
          </Heading>
          <span class="grow" />
          {!isAlone && <a href={addressOf('task', taskKey)}>Open alone</a>}
          {onClose && (
            <button type="button" class="quiet" onClick={onClose} title="Close (Escape)" aria-label="Close the task">
              ✕
            </button>
          )}
        </div>
        {task && (
          <>
            <p class="task-title">{visible(task.title)}</p>
            <p class="task-state">
              <StateBadge state={task.state} />
              <TaskTags task={task} />
            </p>
            <TaskActions key={taskKey} task={task} detail={detail} />
            {task.kind === 'async' && task.endedAt === undefined && <MessageForm key={taskKey} taskKey={taskKey} />}
          </>
        )}
      </header>
      {task && detail && (
        <SectionLevel.Provider value={isAlone ? 2 : 3}>
          <TaskSections task={task} detail={detail} isAlone={isAlone} />
        </SectionLevel.Provider>
      )}
      {error !== undefined && (
        <p class="problem" role="alert">
          {isUnknown === true
            ? `The server has no task ${visible(taskKey)}. It keeps only the latest tasks.`
            : visible(error)}
        </p>
      )}
      {!detail && error === undefined && <p class="hint">Loading …</p>}
    </article>
  )
}
