/** The state of a task whose sign and colour stand for the state of a command. */
import type { CommandBar, PageTaskState } from '../../wire.js'

export const STATE_OF_COMMAND: Readonly<Record<CommandBar['state'], PageTaskState>> = {
  waiting: 'queued',
  running: 'running',
  completed: 'completed',
  failed: 'failed',
  skipped: 'cancelled',
}
