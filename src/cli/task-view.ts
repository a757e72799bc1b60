/** Shows the progress of a task: a bar for each command on a terminal, otherwise a line for each change. */
import type { TaskEvent } from '../client/session.js'
import { statusText, type CommandError, type CommandStatus } from '../protocol/command-tasks.js'
import { oneLine } from './table.js'
import type { Terminal } from './terminal.js'

export interface TaskView {
  /** Shows the task at the start and after a reconnection. */
  snapshot(task: { readonly commands: readonly CommandLike[] }): void
  show(event: TaskEvent): void
  /** Stops updating; what is drawn stays. */
  end(): void
}

/** A submitted command, or a command of a task. */
interface CommandLike {
  readonly tool_name: string
  readonly intention?: string | undefined
  readonly status?: CommandStatus | undefined
  readonly error?: CommandError | undefined
}

interface Row {
  readonly name: string
  status: CommandStatus
  /** The status in words. */
  shown: string
  share: number
  note: string
}

const BAR_WIDTH = 20

export function createTaskView(terminal: Terminal): TaskView {
  return terminal.live === undefined ? createLines(terminal) : createBars(terminal, terminal.live)
}

function createLines({ say }: Terminal): TaskView {
  let last: Extract<TaskEvent, { type: 'task_progress' }> | undefined
  const sayStep = (event: NonNullable<typeof last>, status: string): void =>
    say(`${event.taskId} [${event.commandIndex + 1}/${event.totalCommands}] ${event.tool_name} ${status}`)
  return {
    snapshot: () => undefined,
    end: () => undefined,
    show: (event) => {
      if (event.type === 'task_complete') {
        const { status, error } = (last && event.results[last.commandIndex]) ?? {}
        // No message of its own says that a command was given up.
        if (last !== undefined && status === 'skipped') sayStep(last, statusText(status, error))
        say(`${event.taskId} ${event.status} ${outcome(event)}`.trimEnd())
      } else {
        last = event
        sayStep(event, `${event.status}${noteOf(event)}`)
      }
    },
  }
}

function createBars({ colours }: Terminal, live: NonNullable<Terminal['live']>): TaskView {
  const rows: Row[] = []
  let last = ''
  const draw = (): void => {
    const width = Math.max(...rows.map(({ name }) => name.length))
    live.draw([...rows.map((row) => drawRow(row, width, colours)), ...(last === '' ? [] : [last])])
  }
  return {
    snapshot: (task) => {
      task.commands.forEach(({ tool_name, intention = '', status = 'pending', error }, index) => {
        const name = oneLine(intention || tool_name, 40)
        rows[index] = { name, status, shown: statusText(status, error), share: isOver(status) ? 1 : 0, note: '' }
      })
      draw()
    },
    show: (event) => {
      if (event.type === 'task_complete') {
        event.results.forEach(({ status, error }, index) => {
          const row = rows[index]
          if (row === undefined) return
          const shown = statusText(status, error)
          Object.assign(row, { status, shown, ...(error === undefined && { note: '' }) })
        })
        last = `${event.taskId} ${event.status} ${outcome(event)}`.trimEnd()
      } else {
        const { commandIndex: index, status, progress, total } = event
        const name = oneLine(event.intention || event.tool_name, 40)
        for (let missing = rows.length; missing <= index; missing += 1) {
          rows[missing] = { name: '', status: 'pending', shown: 'pending', share: 0, note: '' }
        }
        const share = isOver(status) ? 1 : progress !== undefined && total ? Math.min(1, progress / total) : 0
        rows[index] = { name, status, shown: status, share, note: noteOf(event).slice(2) }
      }
      draw()
    },
    end: () => live.done(),
  }
}

const isOver = (status: CommandStatus): boolean => status !== 'pending' && status !== 'running'

function drawRow({ name, status, shown, share, note }: Row, width: number, colours: Terminal['colours']): string {
  const filled = status === 'skipped' ? 0 : Math.round(share * BAR_WIDTH)
  const bar = `[${'='.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}]`
  const colour = {
    success: colours.green,
    error: colours.red,
    skipped: colours.dim,
    pending: colours.dim,
    running: colours.cyan,
  }[status]
  return `${name.padEnd(width)} ${colour(`${bar} ${shown}`)}${note === '' ? '' : ` ${oneLine(note, 60)}`}`
}

function noteOf(event: Extract<TaskEvent, { type: 'task_progress' }>): string {
  const { progress, total, message, error } = event
  if (error !== undefined) return `: ${oneLine(`${error.code}: ${error.message}`, 200)}`
  if (progress === undefined) return ''
  return `: ${progress}${total === undefined ? '' : `/${total}`}${message === undefined ? '' : ` ${oneLine(message, 100)}`}`
}

function outcome({ summary, error }: Extract<TaskEvent, { type: 'task_complete' }>): string {
  const counts = `(${summary.successfulCommands} of ${summary.totalCommands} commands in ${summary.duration} ms)`
  return error === undefined ? counts : `${counts}: ${oneLine(`${error.code}: ${error.message}`, 300)}`
}
