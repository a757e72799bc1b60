/**
 * Ends the programs of this process when it dies in any way. A small shell knows their process groups and kills them when its input closes. There is
 * one watchdog for all programs, and it ends with the last of them.
 *
 * A program is started through a gate: it runs only once the watchdog knows its group, so it can never be orphaned.
 */
import type { ChildProcess } from 'node:child_process'
import { nodeBuiltin } from '../node-builtins.js'

/** Reads lines `add GROUP` and `remove GROUP`. */
const WATCHDOG_SCRIPT = String.raw`
trap '' TERM INT HUP QUIT
groups=' '
while read -r verb group; do
  case $verb in
    add) groups="$groups$group " ;;
    remove) case $groups in *" $group "*) groups="${'$'}{groups%%" $group "*} ${'$'}{groups#*" $group "}" ;; esac ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
`

let watchdog: { readonly child: ChildProcess; readonly groups: Set<number> } | undefined

/** Kills the group when this process dies, until `unwatchGroup`. Once it has returned, the watchdog will read the line even if this process dies. */
export function watchGroup(group: number): void {
  watchdog ??= start()
  watchdog.groups.add(group)
  watchdog.child.stdin?.write(`add ${group}\n`)
}

/** Removes a group that has ended. */
export function unwatchGroup(group: number): void {
  if (watchdog?.groups.delete(group) !== true) return
  if (watchdog.groups.size > 0) {
    watchdog.child.stdin?.write(`remove ${group}\n`)
    return
  }
  // Killed before its input closes: its groups have ended, and other groups may have their numbers by now.
  watchdog.child.kill('SIGKILL')
  watchdog = undefined
}

function start(): NonNullable<typeof watchdog> {
  const { spawn } = nodeBuiltin('node:child_process')
  const child = spawn('/bin/sh', ['-c', WATCHDOG_SCRIPT, 'agent-tasks-watchdog'], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  child.on('error', () => undefined)
  child.stdin.on('error', () => undefined)
  child.unref()
  ;(child.stdin as unknown as { unref?(): void }).unref?.()
  return { child, groups: new Set() }
}
