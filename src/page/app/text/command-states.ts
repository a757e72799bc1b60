/** The names of a command's states, and for each state the task state with the same icon and colour. */
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
