/**
 * Ends the programs of this process when this process dies, even by SIGKILL. The watchdog is a small shell that knows the runs of this process. When its
 * input closes, it asks their processes to stop, and kills after the longest grace period what is still running. There is one watchdog for all runs. It
 * ends with the last of them. It does not have the token of a run itself, so that the end of an outer run does not end the watchdog first.
 */
import type { ChildProcess } from 'node:child_process'
import { nodeBuiltin } from '../system/node-builtins.js'
import { identityOf, type ProgramIdentity } from '../system/process-identity.js'
import { isToken, RUN_TOKEN } from './run-token.js'

/**
 * Reads lines `add TOKEN GROUP SIGNAL SECONDS` and `remove TOKEN`. GROUP is 0 while it is unknown. SIGNAL is `none` for a run that was asked to stop
 * before: many programs take a second signal as the request to end without cleaning up.
 *
 * `look` finds the processes of a run. The first grep reads all environments at once, but may find the entry inside another one, so each process that
 * it finds is checked. Processes are looked for several times, because one that is just executing another program shows no environment.
 */
const WATCHDOG_SCRIPT = String.raw`
trap '' TERM INT HUP QUIT
PATH=$PATH:/usr/bin:/bin
line='
'
IFS=$line
runs= longest=0 asked=' ' gone=' '
while IFS=' ' read -r verb token group signal seconds; do
  others=
  for run in $runs; do case $run in "$token "*) ;; *) others=$others$run$line ;; esac; done
  runs=$others
  [ "$verb" = add ] || continue
  runs="$runs$token $group $signal$line"
  [ "$seconds" -le "$longest" ] || longest=$seconds
done
each() {
  any=
  for run in $runs; do
    group=${'$'}{run#* }
    if "$1" "${'$'}{run%% *}" "${'$'}{group%% *}" "${'$'}{run##* }"; then any=yes; fi
  done
}
look() {
  for file in $(grep -lsaF -e "${RUN_TOKEN}=$1" /proc/[0-9]*/environ); do
    tr '\000' '\n' < "$file" | grep -Eq -e "^${RUN_TOKEN}=$1(/|$)" || continue
    pid=${'$'}{file#/proc/}
    printf '%s\n' "${'$'}{pid%/environ}"
  done
}
ask() {
  [ "$3" != none ] || return 1
  pids=$(look "$1")
  [ -n "$pids" ] || [ "$2" -le 1 ] || [ "$round" -gt 0 ] || kill -s "$3" -- "-$2"
  for pid in $pids; do
    case $asked in *" $pid "*) ;; *) asked="$asked$pid "; kill -s "$3" "$pid" ;; esac
  done
}
# A group that has ended once is over: another one may have its number by now.
has_group() {
  [ "$2" -gt 1 ] || return 1
  case $gone in *" $2 "*) return 1 ;; esac
  kill -s 0 -- "-$2" && return 0
  gone="$gone$2 "
  return 1
}
is_left() { has_group "$@" || [ -n "$(look "$1")" ]; }
finish() {
  pids=$(look "$1")
  for pid in $pids; do kill -s KILL "$pid"; done
  if has_group "$@" && kill -s KILL -- "-$2"; then return 0; fi
  [ -n "$pids" ]
}
round=0
# The clock has whole seconds: without one more, the grace would be up to a second shorter.
[ "$longest" -eq 0 ] || longest=$((longest + 1))
end=$(($(date +%s) + longest))
while [ "$(date +%s)" -lt "$end" ]; do
  [ "$round" -ge 5 ] || each ask
  each is_left
  [ -n "$any" ] || [ "$round" -lt 5 ] || exit 0
  if [ "$round" -lt 5 ]; then sleep 0.1 || sleep 1; else sleep 0.5 || sleep 1; fi
  round=$((round + 1))
done
for round in 1 2 3 4 5 6 7 8 9 10; do
  each finish
  [ -n "$any" ] || [ "$round" -lt 5 ] || exit 0
  sleep 0.1 || sleep 1
done
`

/** The longest grace period that the watchdog gives, in ms: a day. */
const MAX_GRACE_MS = 86_400_000

export interface WatchedRun {
  readonly token: string
  /** The process group of its program. Undefined before the program has started. */
  readonly group?: number | undefined
  /** The signal that asks its processes to stop. Undefined if they were asked already. */
  readonly killSignal: NodeJS.Signals | undefined
  readonly graceMs: number
}

interface Watchdog {
  readonly child: ChildProcess
  readonly identity: ProgramIdentity | undefined
  readonly tokens: Set<string>
}

let watchdog: Watchdog | undefined

/**
 * From now on, the watchdog ends the run when this process dies, until `unwatchRun` is called. Call it before the program starts, and again when its group
 * is known. The line is in the pipe when this function returns, so the watchdog reads it even if this process dies at once.
 */
export function watchRun({ token, group = 0, killSignal, graceMs }: WatchedRun): void {
  // The shell uses the token in a pattern. A store may have been changed.
  if (!isToken(token)) return
  watchdog ??= start()
  watchdog.tokens.add(token)
  const seconds = Math.ceil(Math.min(graceMs, MAX_GRACE_MS) / 1000)
  watchdog.child.stdin?.write(`add ${token} ${group} ${killSignal?.slice('SIG'.length) ?? 'none'} ${seconds}\n`)
}

export function unwatchRun(token: string): void {
  if (watchdog?.tokens.delete(token) !== true) return
  if (watchdog.tokens.size > 0) {
    watchdog.child.stdin?.write(`remove ${token}\n`)
    return
  }
  // The watchdog is killed before its input closes, or it would end its runs: they have ended, and other groups may have their numbers by now.
  watchdog.child.kill('SIGKILL')
  watchdog = undefined
}

/** The watchdog of this process; undefined while no run is watched. The next host waits for it. */
export const watchdogIdentity = (): ProgramIdentity | undefined => watchdog?.identity

function start(): Watchdog {
  const { spawn } = nodeBuiltin('node:child_process')
  const child = spawn('/bin/sh', ['-c', WATCHDOG_SCRIPT, 'agent-tasks-watchdog'], {
    env: { ...process.env, [RUN_TOKEN]: undefined },
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  child.on('error', () => undefined)
  child.stdin.on('error', () => undefined)
  child.unref()
  ;(child.stdin as unknown as { unref?(): void }).unref?.()
  const identity = child.pid === undefined ? undefined : identityOf(child.pid)
  return { child, identity, tokens: new Set() }
}
