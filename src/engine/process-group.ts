/**
 * Programs with everything they start: each leads a process group of its own, which is signalled as a whole and does
 * not outlive this process.
 *
 * A group does not see the Ctrl-C of a terminal, and Node emits no `exit` when a signal ends it: a host that runs
 * programs handles SIGINT and SIGTERM itself, disposes its manager and exits.
 * Windows has no such groups: there only the program itself is signalled, and what it started may stay.
 */
import type { ChildProcess } from 'node:child_process'
import { nodePlatform } from '../node-builtins.js'

/** Whether programs can lead groups here. */
export const hasGroups = nodePlatform !== 'win32'

/** The group of a program that was started with `detached: hasGroups`. */
export interface ProcessGroup {
  /** Signals every member; does nothing when there is none left. */
  signal(name: NodeJS.Signals): void
  /** Kills whoever is left and forgets the group. Call it once, when the program's run is over. */
  end(): void
}

/** Takes charge of a started program: until `end`, its group is killed if this process exits. */
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
        // ESRCH: nobody is left. EPERM: whoever is left runs as somebody else, and cannot be signalled at all.
      }
    },
    end: () => {
      group.signal('SIGKILL')
      living.delete(group)
      if (living.size === 0) process.removeListener('exit', killLiving)
    },
  }
  if (living.size === 0) process.on('exit', killLiving)
  living.add(group)
  return group
}

const living = new Set<ProcessGroup>()

function killLiving(): void {
  for (const group of living) group.signal('SIGKILL')
}
