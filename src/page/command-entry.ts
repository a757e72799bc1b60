/** A command task in the page's journal. */
import { omitUndefined } from '../data/omit-undefined.js'
import { statusText, type Task, type TaskCommand } from '../protocol/command-tasks.js'
import type { TraceContext } from '../protocol/telemetry.js'
import { asyncKey } from './async-entry.js'
import type { JournalEntry } from './journal.js'
import { Allowance, type KeptValue } from './kept-values.js'
import { heldBytes, ownText, rowText, sentText } from './texts.js'
import type { CommandBar, PageTask, PageTaskState } from './wire.js'

/** A command of an ended task, as the journal keeps it. */
export interface KeptCommand extends CommandBar {
  /** The tool, intention and timeout of the command, as JSON. */
  readonly call: KeptValue
  /** The arguments, as JSON. */
  readonly args: KeptValue
  readonly result?: KeptValue
  readonly error?: string
}

/** The values of an ended task. The journal has its own copy of them, because the TaskManager removes ended tasks. */
export interface KeptTask {
  /** The name and the intention of the task, as JSON. */
  readonly about: KeptValue
  readonly commands: readonly KeptCommand[]
  readonly trace?: TraceContext
}

const ROW_COMMANDS = 20

type Row = Omit<PageTask, 'seq' | 'marks' | 'key' | 'kind' | 'state'>

export class CommandEntry implements JournalEntry {
  readonly kind = 'command'
  readonly key: string
  isEnded = false
  state: PageTaskState
  heldBytes: number
  progress: PageTask['progress'] | undefined
  kept: KeptTask | undefined
  readonly id: string
  readonly instanceId: string
  readonly #find: (id: string) => Task | undefined
  /** The row of the task once it has ended. */
  #last: Row | undefined

  constructor(task: Task, find: (id: string) => Task | undefined) {
    this.id = ownText(task.id)
    this.key = commandKey(this.id)
    this.state = commandState(task)
    this.instanceId = ownText(task.instanceId)
    this.#find = find
    this.heldBytes = heldBytes(this.id) + heldBytes(this.key) + heldBytes(this.instanceId)
  }

  /** Copies the values of the ended task. */
  keep(task: Task, maxBytes: number, trace?: TraceContext): void {
    const row = JSON.stringify(rowOf(task, undefined))
    this.#last = JSON.parse(row) as Row
    // An object takes at most twice as much memory as its JSON.
    this.heldBytes += 2 * heldBytes(row) + COMMAND_BYTES * task.commands.length
    const room = new Allowance(Math.max(0, maxBytes - this.heldBytes))
    const about = room.keepJson({ task_name: task.name, task_intention: task.intention })
    const commands = task.commands.map((command): KeptCommand => {
      const { tool_name, intention, timeout, args, result, error } = command
      return {
        ...barOf(command),
        tool: room.keep(rowText(tool_name)).text,
        call: room.keepJson({ tool_name, intention, timeout }),
        args: room.keepJson(args),
        ...(result !== undefined && { result: room.keep(result) }),
        ...(error !== undefined && { error: room.keep(error.message).text }),
      }
    })
    this.kept = { about, commands, ...(trace !== undefined && { trace: { traceparent: ownText(trace.traceparent) } }) }
    this.heldBytes += room.used
  }

  row(): Row {
    if (this.#last !== undefined) return this.#last
    const task = this.#find(this.id)
    return task === undefined
      ? { id: this.id, title: '', group: this.instanceId, createdAt: 0 }
      : rowOf(task, this.progress)
  }
}

/** The approximate size of a command without its texts, in bytes. */
const COMMAND_BYTES = 500

export const commandKey = (id: string): string => `command:${id}`

const barStates = {
  pending: 'waiting',
  running: 'running',
  success: 'completed',
  error: 'failed',
  skipped: 'skipped',
} as const

/** Returns the displayed state of a command. A `skipped` command with an error was stopped while it ran; one without an error never started. */
export function barState(status: TaskCommand['status'], error: TaskCommand['error']): CommandBar['state'] {
  if (status !== 'skipped' || error === undefined) return barStates[status]
  return statusText(status, error) === 'cancelled' ? 'cancelled' : 'failed'
}

export function barOf({ tool_name, status, startedAt, completedAt, error }: TaskCommand): CommandBar {
  return {
    tool: sentText(tool_name),
    state: barState(status, error),
    ...omitUndefined({ startedAt, endedAt: completedAt }),
  }
}

function rowOf(task: Task, progress: PageTask['progress'] | undefined): Row {
  const { id, name, commands, instanceId, createdAt, startedAt, completedAt, error, metadata } = task
  const parentId = metadata?.['asyncTaskId']
  return {
    id,
    title: sentText(name),
    group: instanceId,
    createdAt,
    ...omitUndefined({ startedAt, endedAt: completedAt }),
    ...(typeof parentId === 'string' && { parentKey: asyncKey(parentId) }),
    ...omitUndefined({ progress }),
    commands: commands.slice(0, ROW_COMMANDS).map(barOf),
    commandCount: commands.length,
    ...(error !== undefined && { error: sentText(error.message) }),
  }
}

export function commandState({ status, error }: Task): PageTaskState {
  return status === 'failed' && error.code === 'COMMAND_TIMEOUT' ? 'timed-out' : status
}
