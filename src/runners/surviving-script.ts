/**
 * The shell script that runs a program which survives its host. It leads the program's process group and outlives the host with it; the
 * files in its folder tell the next host what has happened. No text is ever parsed as shell code: the program's arguments are `"$@"`.
 *
 * Arguments: the folder, how much output to keep at the beginning (in units of 512 bytes) and at the end (in bytes), then the program and its arguments.
 *
 * | file | content |
 * |---|---|
 * | `identity` | pid, start, boot and `AGENT_TASKS_RUN` of the script: written once, by link(2), so that a host that revoked the start wins or loses for good |
 * | `stdout`, `stderr` | the first bytes of the output |
 * | `stdout.tail`, `stderr.tail` | the last bytes of what did not fit; at most 128 KiB before them are missing as well |
 * | `exit` | the exit code of the program; above 128, it was ended by signal (code - 128) |
 * | `done` | the output is complete |
 */
export const SURVIVING_SCRIPT = String.raw`
umask 077
dir=$1 head=$2 tail=$3
shift 3
# Caught, not ignored: the program starts with the defaults, and the script goes on.
trap : TERM INT HUP QUIT
mkfifo "$dir/stdout.fifo" "$dir/stderr.fifo" || exit 125
if [ -r /proc/$$/stat ]; then
  start=$(read -r line < /proc/$$/stat; set -- ${'$'}{line##*') '}; shift 19; printf %s "$1")
  read -r boot < /proc/sys/kernel/random/boot_id
else
  start=$(ps -o lstart= -p $$ | sed 's/^ *//; s/ *$//')
  boot=$(sysctl -n kern.boottime)
fi
printf '%s\n%s\n%s\n%s\n' "$$" "$start" "$boot" "$AGENT_TASKS_RUN" > "$dir/identity.new"
# The next host has revoked the start: it links a file of its own to this name.
ln "$dir/identity.new" "$dir/identity" || exit 125
rm -f "$dir/identity.new"
keep() {
  # A signal to the group ends the program, not what reads its output.
  trap '' TERM INT HUP QUIT
  # cat writes what it has read at once, so that a host can show it; head would keep it back.
  (trap '' XFSZ; ulimit -f "$head"; exec cat > "$dir/$1") 2> /dev/null
  tail -c "$tail" > "$dir/$1.tail"
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
# Until there is room on the disk.
until printf '%s\n' "$code" > "$dir/exit.new" && mv "$dir/exit.new" "$dir/exit"; do sleep 1; done
wait
: > "$dir/done"
`
