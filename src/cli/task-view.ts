/** Shows the progress of a task: a bar for each command on a terminal, otherwise a line for each change. */
import type { TaskMessage } from '../client/session.js'
import { countFinished, statusText, type CommandError, type CommandStatus } from '../protocol/command-tasks.js'
import { oneLine } from './table.js'
import type { Line, Terminal } from './terminal.js'

export interface TaskView {
  /** Shows the whole task, at the start and after the connection was made again. */
  snapshot(task: { readonly commands: readonly CommandLike[] }): void
  show(event: TaskMessage): void
  /** Shows a note below the commands; `''` removes the note. */
  note(text: string): void
  /** Stops updating. The last lines stay on the screen. */
  end(): void
}

interface CommandLike {
  readonly tool_name: string
  readonly intention?: string | undefined
  readonly status?: CommandStatus | undefined
  readonly error?: CommandError | undefined
}

interface Row {
  readonly name: string
  status: CommandStatus
  /** The status of the command in words. */
  shown: string
  share: number
  note: string
}

const BAR_WIDTH = 20

const COLOURS = {
  success: 'green',
  error: 'red',
  skipped: 'dim',
  pending: 'dim',
  running: 'cyan',
} as const satisfies Record<CommandStatus, string>

export function createTaskView(terminal: Terminal): TaskView {
  return terminal.live === undefined ? createLines(terminal) : createBars(terminal.live)
}

function createLines({ say }: Terminal): TaskView {
  let last: Extract<TaskMessage, { type: 'task_progress' }> | undefined
  const sayStep = (event: NonNullable<typeof last>, status: string): void =>
    say(`${event.taskId} [${event.commandIndex + 1}/${event.totalCommands}] ${event.tool_name} ${status}`)
  return {
    snapshot: () => undefined,
    end: () => undefined,
    note: (text) => {
      if (text !== '') say(text)
    },
    show: (event) => {
      if (event.type === 'task_complete') {
        const { status, error } = (last && event.results[last.commandIndex]) ?? {}
        // The server sends no message when it gives up a command, so its end is shown here.
        if (last !== undefined && status === 'skipped') sayStep(last, statusText(status, error))
        say(`${event.taskId} ${event.status} ${outcome(event)}`.trimEnd())
      } else {
        last = event
        sayStep(event, `${event.status}${noteOf(event)}`)
      }
    },
  }
}

function createBars(live: NonNullable<Terminal['live']>): TaskView {
  const rows: Row[] = []
  let last = ''
  const draw = (): void => {
    const width = Math.max(...rows.map(({ name }) => name.length))
    const footer = last === '' ? [] : [last]
    const { first, end } = shownRows(rows, live.rows - footer.length)
    const hidden = end - first < rows.length ? [`commands ${first + 1} to ${end} of ${rows.length}`] : []
    live.draw([...rows.slice(first, end).map((row) => drawRow(row, width)), ...hidden, ...footer])
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
    note: (text) => {
      if (last === text) return
      last = text
      draw()
    },
    end: () => live.done(),
  }
}

/** Selects the rows that fit on the screen: those around the running command, or around the next command. */
function shownRows(rows: readonly Row[], most: number): { readonly first: number; readonly end: number } {
  if (rows.length <= most) return { first: 0, end: rows.length }
  // One line is needed for a text that says which commands are shown.
  const count = Math.max(1, most - 1)
  const running = rows.findIndex(({ status }) => status === 'running')
  const next = rows.findIndex(({ status }) => status === 'pending')
  const current = running >= 0 ? running : next >= 0 ? next : rows.length - 1
  const first = Math.max(0, Math.min(current - Math.floor(count / 2), rows.length - count))
  return { first, end: first + count }
}

const isOver = (status: CommandStatus): boolean => status !== 'pending' && status !== 'running'

function drawRow({ name, status, shown, share, note }: Row, width: number): Line {
  const filled = status === 'skipped' ? 0 : Math.round(share * BAR_WIDTH)
  const bar = `[${'='.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}]`
  const rest = note === '' ? '' : ` ${oneLine(note, 60)}`
  return [`${name.padEnd(width)} `, { text: `${bar} ${shown}`, colour: COLOURS[status] }, rest]
}

function noteOf(event: Extract<TaskMessage, { type: 'task_progress' }>): string {
  const { progress, total, message, error } = event
  if (error !== undefined) return `: ${oneLine(`${error.code}: ${error.message}`, 200)}`
  if (progress === undefined) return ''
  return `: ${progress}${total === undefined ? '' : `/${total}`}${message === undefined ? '' : ` ${oneLine(message, 100)}`}`
}

function outcome({ summary, results, error }: Extract<TaskMessage, { type: 'task_complete' }>): string {
  const counts = `(${countFinished(results)} of ${summary.totalCommands} commands in ${summary.duration} ms)`
  return error === undefined ? counts : `${counts}: ${oneLine(`${error.code}: ${error.message}`, 300)}`
}
