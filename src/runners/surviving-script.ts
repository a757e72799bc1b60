/**
 * The shell script that runs a program which survives its host. The script leads the process group of the program, and outlives the host, too. The files
 * in its folder record what has happened, for the next host. No text is parsed as shell code: the arguments of the program are `"$@"`.
 *
 * Arguments of the script: the folder, how much output to keep at the beginning (in units of 512 bytes) and at the end (in bytes), then the program and
 * its arguments.
 *
 * | file | content |
 * |---|---|
 * | `stdout`, `stderr` | the first bytes of the output |
 * | `stdout.tail`, `stderr.tail` | the last bytes of the output, written when the output is complete |
 * | `stdout.size`, `stderr.size` | line 1: the number of bytes that are kept at each end; line 2: the total number of bytes, once the output is complete |
 * | `exit` | the exit code of the program; above 128, it was ended by signal (code - 128) |
 * | `uptime` | the system uptime when the program ended, in seconds; Linux only |
 * | `done` | exists when the output is complete |
 */
import { GATE } from './gated-start.js'

export const SURVIVING_SCRIPT = String.raw`
umask 077
dir=$1 head=$2 tail=$3
shift 3
# Caught, not ignored: the program starts with the defaults, and the script goes on.
trap : TERM INT HUP QUIT
${GATE}
mkfifo "$dir/stdout.fifo" "$dir/stderr.fifo" "$dir/stdout.count" "$dir/stderr.count" || exit 125
keep() {
  { printf '%s\n' "$tail"; exec wc -c; } < "$dir/$1.count" > "$dir/$1.size" &
  # tee writes what it has read at once, so that a host can show it, and goes on when the file has reached its limit.
  (trap '' XFSZ; ulimit -f "$head"; exec tee "$dir/$1" "$dir/$1.count" < "$dir/$1.fifo" 2> /dev/null) |
    tail -c "$tail" > "$dir/$1.tail" &
}
# A signal to the group ends the program, not what reads its output.
trap '' TERM INT HUP QUIT
keep stdout
keep stderr
trap : TERM INT HUP QUIT
(exec "$@") > "$dir/stdout.fifo" 2> "$dir/stderr.fifo" < /dev/null &
program=$!
while :; do
  wait "$program"
  code=$?
  kill -0 "$program" 2> /dev/null || break
done
read -r up idle 2> /dev/null < /proc/uptime && printf '%s\n' "$up" 2> /dev/null > "$dir/uptime"
# Until there is room on the disk.
until printf '%s\n' "$code" > "$dir/exit.new" && mv "$dir/exit.new" "$dir/exit"; do sleep 1; done
wait
: > "$dir/done"
`
