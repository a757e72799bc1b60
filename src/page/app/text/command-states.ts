/** The states of a command, in words, and the state of a task whose sign and colour stand for each. */
import type { CommandBar, PageTaskState } from '../../wire.js'

export const STATE_OF_COMMAND: Readonly<Record<CommandBar['state'], PageTaskState>> = {
  waiting: 'queued',
  running: 'running',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
  skipped: 'queued',
}

export const COMMAND_WORDS: Readonly<Record<CommandBar['state'], string>> = {
  waiting: 'waiting',
  running: 'running',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
  skipped: 'not run',
}
