/** The badge and tooltip of the extension's icon. */
import type { ConnectionState } from './connection-state.js'

export interface Badge {
  /** The text on the icon, at most four characters. */
  readonly text: string
  readonly colour: string
  /** The tooltip of the icon. */
  readonly title: string
}

/** @param running the number of running commands */
export function badgeOf({ phase, problem }: ConnectionState, running: number): Badge {
  if (phase === 'connected') {
    return running > 0
      ? { text: 'busy', colour: '#b35900', title: 'agent-tasks: a command is running' }
      : { text: 'on', colour: '#1a7f37', title: 'agent-tasks: connected. Click to put this tab under control' }
  }
  const why = problem === undefined ? '' : `. ${problem.what}`
  return phase === 'connecting'
    ? { text: '...', colour: '#57606a', title: `agent-tasks: not connected${why}` }
    : { text: 'off', colour: '#57606a', title: `agent-tasks: stopped${why}` }
}
