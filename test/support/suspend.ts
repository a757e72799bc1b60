/**
 * `npm run suspend -- --times 100 --by-alarm 1`: ends the service worker of the extension 100 times while commands run, and once more so that only its
 * alarm starts it again. Needs a build.
 */
import { parseArgs } from 'node:util'
import { suspendAgainAndAgain } from './suspension.js'

const { values } = parseArgs({
  options: { times: { type: 'string', default: '100' }, 'by-alarm': { type: 'string', default: '1' } },
})
const result = await suspendAgainAndAgain({
  times: Number(values.times),
  byAlarm: Number(values['by-alarm']),
  log: (line) => console.log(`suspend: ${line}`),
})
const { tasks, completed, failed, refused, lost, doubled, wrong, lives, longestMs, longestByAlarmMs } = result
console.log(
  `suspend: ${lives} service workers, ${tasks} tasks, ${completed} completed, ${failed} failed, ${refused} submissions refused meanwhile`,
)
console.log(`suspend: lost ${lost.length}, doubled ${doubled.length}, wrong ${wrong.length}`)
console.log(
  `suspend: connected again after ${Math.round(longestMs)} ms at most, after ${Math.round(longestByAlarmMs)} ms by the alarm alone`,
)
for (const line of [...lost, ...doubled, ...wrong]) console.error(`suspend: FAILED: ${line}`)
if (lost.length + doubled.length + wrong.length > 0) process.exitCode = 1
