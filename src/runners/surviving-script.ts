/**
 * The shell script that runs a program which survives its host. The script leads the process group of the program, and outlives the host, too. The files
 * in its folder record what has happened, for the next host. No text is parsed as shell code: the arguments of the program are `"$@"`.
 *
 * Arguments of the script: the folder, how much output to keep at the beginning (in units of 512 bytes) and at the end (in bytes), the time limit in
 * seconds (empty: none), the first signal of a stop, the seconds until the kill, the file for stdin, then the program and its arguments.
 *
 * When the time limit has passed, no host has ended the program, so the script does: the whole group gets the signal, and is killed later. A host that
 * had begun a stop has sent the signal already.
 *
 * | file | content |
 * |---|---|
 * | `stdout`, `stderr` | the first bytes of the output |
 * | `stdout.tail`, `stderr.tail` | the last bytes of the output, written when the output is complete |
 * | `stdout.size`, `stderr.size` | line 1: the number of bytes that are kept at each end; line 2: the total number of bytes, once the output is complete |
 * | `goal.txt`, `results.json` | what the program is given, if it reads them from files |
 * | `exit` | the exit code of the program; above 128, it was ended by signal (code - 128) |
 * | `uptime` | the system uptime when the program ended, in seconds; Linux only |
 * | `done` | exists when the output is complete |
 * | `overdue` | exists when the script has ended the program, because its time limit had passed |
 * | `stopping` | exists when a host has begun to stop the program |
 * | `unstarted` | exists when the host has died before it let the program start |
 */
export const SURVIVING_SCRIPT = String.raw`
umask 077
dir=$1 head=$2 tail=$3 limit=$4 signal=$5 grace=$6 input=$7
shift 7
keepers=
# Caught, not ignored: the program starts with the defaults, and the script goes on.
trap : TERM INT HUP QUIT
# The gate (gated-start.ts).
read -r go <&3 || { : > "$dir/unstarted"; exit 126; }
exec 3<&-
mkfifo "$dir/stdout.fifo" "$dir/stderr.fifo" "$dir/stdout.count" "$dir/stderr.count" || exit 125
keep() {
  { printf '%s\n' "$tail"; exec wc -c; } < "$dir/$1.count" > "$dir/$1.size" &
  keepers="$keepers $!"
  # tee writes what it has read at once, so that a host can show it, and goes on when the file has reached its limit.
  (trap '' XFSZ; ulimit -f "$head"; exec tee "$dir/$1" "$dir/$1.count" < "$dir/$1.fifo" 2> /dev/null) |
    tail -c "$tail" > "$dir/$1.tail" &
  keepers="$keepers $!"
}
# A signal to the group ends the program, not what reads its output.
trap '' TERM INT HUP QUIT
keep stdout
keep stderr
trap : TERM INT HUP QUIT
(exec "$@") > "$dir/stdout.fifo" 2> "$dir/stderr.fifo" < "$input" &
program=$!
watch=
if [ -n "$limit" ]; then
  trap '' TERM INT HUP QUIT
  (
    # When the program has ended, this ends, too, with its sleep.
    over= sleeper=
    trap 'over=1; [ -z "$sleeper" ] || kill -s KILL "$sleeper"' USR1
    sleep "$limit" & sleeper=$!
    [ -z "$over" ] || kill -s KILL "$sleeper"
    wait "$sleeper"
    [ -z "$over" ] && [ ! -e "$dir/exit" ] || exit 0
    : > "$dir/overdue"
    trap '' USR1
    if [ "$signal" != KILL ]; then
      trap '' "$signal"
      [ -e "$dir/stopping" ] || kill -s "$signal" 0
    fi
    sleep "$grace"
    # The script itself goes on for a moment, to record the end of the program.
    [ -e "$dir/exit" ] || { kill -s KILL "$program"; sleep 1; }
    kill -s KILL 0
  ) > /dev/null 2>&1 &
  watch=$!
  trap : TERM INT HUP QUIT
fi
while :; do
  wait "$program"
  code=$?
  kill -0 "$program" 2> /dev/null || break
done
read -r up idle 2> /dev/null < /proc/uptime && printf '%s\n' "$up" 2> /dev/null > "$dir/uptime"
# Until there is room on the disk.
until printf '%s\n' "$code" > "$dir/exit.new" && mv "$dir/exit.new" "$dir/exit"; do sleep 1; done
[ -z "$watch" ] || kill -s USR1 "$watch" 2> /dev/null
wait $keepers
: > "$dir/done"
`
