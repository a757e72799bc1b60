/**
 * Kills the programs of this process when this process dies, even by SIGKILL. The watchdog is a small shell that knows the process groups of the
 * programs, and kills them when its input closes. There is one watchdog for all programs. It ends with the last of them.
 *
 * A program starts behind a gate, and runs only when the watchdog knows its process group. So it never runs without the watchdog.
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

/**
 * From now on, the watchdog kills the group when this process dies, until `unwatchGroup` is called. The line is in the pipe when this function returns,
 * so the watchdog reads it even if this process dies at once.
 */
export function watchGroup(group: number): void {
  watchdog ??= start()
  watchdog.groups.add(group)
  watchdog.child.stdin?.write(`add ${group}\n`)
}

/** Stops watching a group that has ended. */
export function unwatchGroup(group: number): void {
  if (watchdog?.groups.delete(group) !== true) return
  if (watchdog.groups.size > 0) {
    watchdog.child.stdin?.write(`remove ${group}\n`)
    return
  }
  // The watchdog is killed before its input closes, or it would kill its groups: they have ended, and other groups may have their numbers by now.
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
