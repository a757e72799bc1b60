/** The states of a command in words, each with the task state whose icon and colour it uses. */
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
