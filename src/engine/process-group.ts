/**
 * Process groups. Each program leads its own group, which is signalled as a whole and does not outlive this process.
 *
 * Ctrl-C in a terminal does not reach such a group, and Node emits no `exit` event when a signal ends the process; `dispose-on-signals.ts` handles
 * this. Windows has no process groups: only the program itself is signalled, and the processes that it started may stay.
 */
import type { ChildProcess } from 'node:child_process'
import { countMembers } from './group-members.js'
import { nodePlatform } from '../node-builtins.js'

export const hasGroups = nodePlatform !== 'win32'

/** Whether Unix sockets are files on this platform. */
export const hasUnixSockets = nodePlatform !== 'win32'

/** The group of a program that was started with `detached: hasGroups`. */
export interface ProcessGroup {
  /** Signals every member. Has no effect if none is left. */
  signal(name: NodeJS.Signals): void
  /** The number of remaining members; 0 without process groups. */
  count(): number
  /** Kills the remaining members. Call it once, when the program's run is over. */
  end(): void
}

/** Returns the group of a started program. The group is killed if this process exits before `end`. */
export function leadGroup(child: ChildProcess): ProcessGroup {
  const group: ProcessGroup = {
    signal: (name) => {
      if (!hasGroups || child.pid === undefined) {
        child.kill(name)
        return
      }
      try {
        process.kill(-child.pid, name)
      } catch {
        // ESRCH: no member is left. EPERM: the remaining ones run as another user and cannot be signalled.
      }
    },
    count: () => (!hasGroups || child.pid === undefined ? 0 : countMembers(child.pid)),
    end: () => {
      group.signal('SIGKILL')
      forget()
    },
  }
  const forget = killAtExit(() => group.signal('SIGKILL'))
  return group
}

const kills = new Set<() => void>()

/** Calls `kill` when this process exits. Returns an unsubscribe function. */
export function killAtExit(kill: () => void): () => void {
  if (kills.size === 0) process.on('exit', killAll)
  kills.add(kill)
  return () => {
    kills.delete(kill)
    if (kills.size === 0) process.removeListener('exit', killAll)
  }
}

function killAll(): void {
  for (const kill of kills) kill()
}
