/**
 * The shell script that runs a program which survives its host. It leads the program's process group and outlives the host with it; the
 * files in its folder tell the next host what has happened. No text is ever parsed as shell code: the program's arguments are `"$@"`.
 *
 * Arguments: the folder, how much output to keep at the beginning (in units of 512 bytes) and at the end (in bytes), then the program and its arguments.
 *
 * | file | content |
 * |---|---|
 * | `stdout`, `stderr` | the first bytes of the output |
 * | `stdout.tail`, `stderr.tail` | the last bytes of what did not fit; at most 128 KiB before them are missing as well |
 * | `stdout.lost`, `stderr.lost` | these files do not have all that they should, because the disk was full or the script was killed |
 * | `exit` | the exit code of the program; above 128, it was ended by signal (code - 128) |
 * | `uptime` | for how long the system had been up when the program ended, in seconds; only Linux tells it |
 * | `done` | the output is complete |
 */
import { GATE } from './gated-start.js'

export const SURVIVING_SCRIPT = String.raw`
umask 077
dir=$1 head=$2 tail=$3
shift 3
# Caught, not ignored: the program starts with the defaults, and the script goes on.
trap : TERM INT HUP QUIT
${GATE}
mkfifo "$dir/stdout.fifo" "$dir/stderr.fifo" || exit 125
keep() {
  # A signal to the group ends the program, not what reads its output.
  trap '' TERM INT HUP QUIT
  # cat writes what it has read at once, so that a host can show it; head would keep it back.
  (trap '' XFSZ; ulimit -f "$head"; exec cat > "$dir/$1") 2> /dev/null && return
  # The mark needs no room on the disk: it is the FIFO, under another name.
  mv "$dir/$1.fifo" "$dir/$1.lost"
  tail -c "$tail" > "$dir/$1.tail" || return
  # Where the file was not filled, it was not its limit that has stopped cat.
  [ "$(wc -c < "$dir/$1")" -ge "$((head * 512))" ] && mv "$dir/$1.lost" "$dir/$1.fifo"
}
keep stdout < "$dir/stdout.fifo" &
keep stderr < "$dir/stderr.fifo" &
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
