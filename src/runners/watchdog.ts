/**
 * Ends the programs of this process when it dies, whichever way that happens: a small shell knows their process groups and kills them when its
 * input closes. There is one for all programs; it ends with the last of them.
 *
 * A program is started through a gate: it runs only when its group is known to the watchdog, so that no moment is left in which it could be orphaned.
 */
import type { ChildProcess } from 'node:child_process'
import { nodeBuiltin } from '../node-builtins.js'

/** It reads `add GROUP` and `remove GROUP`. */
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

/** Kills the group when this process dies, until `unwatchGroup`. When it returns, the watchdog will read it, whatever happens to this process. */
export function watchGroup(group: number): void {
  watchdog ??= start()
  watchdog.groups.add(group)
  watchdog.child.stdin?.write(`add ${group}\n`)
}

/** The group has ended. */
export function unwatchGroup(group: number): void {
  if (watchdog?.groups.delete(group) !== true) return
  if (watchdog.groups.size > 0) {
    watchdog.child.stdin?.write(`remove ${group}\n`)
    return
  }
  // Killed before its input closes: its groups have ended, and their numbers may be others' by now.
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
