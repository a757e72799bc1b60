/**
 * Programs with everything they start: each leads a process group of its own, which is signalled as a whole and does
 * not outlive this process.
 *
 * Such a group does not receive the Ctrl-C of a terminal, and Node emits no `exit` event when a signal ends it: see
 * `dispose-on-signals.ts`.
 * Windows has no process groups: there only the program itself is signalled, and processes that it started may stay.
 */
import type { ChildProcess } from 'node:child_process'
import { countMembers } from './group-members.js'
import { nodePlatform } from '../node-builtins.js'

/** Whether this platform has process groups. */
export const hasGroups = nodePlatform !== 'win32'

/** Whether this platform has Unix sockets that are files. */
export const hasUnixSockets = nodePlatform !== 'win32'

/** The group of a program that was started with `detached: hasGroups`. */
export interface ProcessGroup {
  /** Signals every member; does nothing when none is left. */
  signal(name: NodeJS.Signals): void
  /** How many members are left. Where there are no groups: 0. */
  count(): number
  /** Kills the members that are left and forgets the group. Call it once, when the program's run is over. */
  end(): void
}

/** Makes a started program the leader of a group, which is killed if this process exits before `end`. */
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
        // ESRCH: no member is left. EPERM: the members that are left run as another user and cannot be signalled.
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

/** Calls `kill` when this process exits. Returns a function that forgets it. */
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
