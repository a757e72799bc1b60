#!/usr/bin/env bash
# croner 11.0.1: a fixed time in an hour that daylight saving time skips is left out for that day when the hour is the last one of the day.
#
# The types document that a fixed-time job in such an hour runs at the first valid time after it. In Europe/Berlin, where 02:00 to 03:00 is skipped on 2027-03-28,
# "30 2 * * *" fires at 03:00 (01:00 UTC). In America/Nuuk, 23:00 to 24:00 is skipped on 2027-03-27 (its end is 01:00 UTC of the 28th): "30 23 * * *" fires
# neither then nor at midnight, and the next run is a day later. A job that must run each night therefore runs one time less.
#
# Seen: 2027-03-28T01:00:00.000Z for Berlin, and 2027-03-29T00:30:00.000Z for Nuuk. Exits 1 when that changes.
set -euo pipefail
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund croner@11.0.1 >/dev/null
cat >run.cjs <<'JS'
const { Cron } = require('croner')
const next = (cron, timezone, from) =>
  new Cron(cron, { mode: '5-part', fixedTimeRule: 'no-wildcard', timezone }).nextRun(new Date(from)).toISOString()
console.log('Europe/Berlin', next('30 2 * * *', 'Europe/Berlin', '2027-03-27T12:00:00Z'))
console.log('America/Nuuk ', next('30 23 * * *', 'America/Nuuk', '2027-03-27T12:00:00Z'))
JS
node run.cjs | tee out.txt
seen='Europe/Berlin 2027-03-28T01:00:00.000Z
America/Nuuk  2027-03-29T00:30:00.000Z'
[ "$(cat out.txt)" = "$seen" ] || exit 1
