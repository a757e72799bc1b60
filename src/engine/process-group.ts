/**
 * Process groups. Each program leads its own group. Signals go to the whole group. When this process exits, the group is killed.
 *
 * Ctrl-C in a terminal does not reach such a group. Node emits no `exit` event when a signal ends this process, so `dispose-on-signals.ts` handles
 * signals. Windows has no process groups: only the program itself receives signals, and processes that it has started may stay.
 */
import type { ChildProcess } from 'node:child_process'
import { countMembers } from './group-members.js'
import { nodePlatform } from '../system/node-builtins.js'

export const hasGroups = nodePlatform !== 'win32'

/** Whether the platform has Unix sockets, which are files. */
export const hasUnixSockets = nodePlatform !== 'win32'

/** The group of a program that was started with `detached: hasGroups`. */
export interface ProcessGroup {
  /** Sends a signal to every process of the group. Has no effect if the group has no process any more. */
  signal(name: NodeJS.Signals): void
  /** Returns the number of processes in the group; 0 on a platform without process groups. */
  count(): number
  /** Whether a process of the group exists; it may be a zombie. */
  exists(): boolean
  /** Kills the processes of the group. Call it once, when the run of the program is over. */
  end(): void
  /** Does what `end` does, without a signal: the group has no process any more, and another group may get its number. */
  forget(): void
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
        // ESRCH: the group has no process. EPERM: its processes run as another user and cannot receive signals.
      }
    },
    count: () => (!hasGroups || child.pid === undefined ? 0 : countMembers(child.pid)),
    exists: () => {
      if (!hasGroups || child.pid === undefined) return child.exitCode === null && child.signalCode === null
      try {
        return process.kill(-child.pid, 0)
      } catch (error) {
        return (error as NodeJS.ErrnoException).code !== 'ESRCH'
      }
    },
    end: () => {
      group.signal('SIGKILL')
      forget()
    },
    forget: () => forget(),
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
