/**
 * `npm run chaos -- --minutes N [--seed S]`: runs the chaos test of many machines (`test/cluster/chaos.test.ts`) for N minutes. It needs `redis-server`.
 * It prints each fault, how long the takeovers took, and how many tasks there were. It fails when a task was lost, ran twice, ran out of order, or
 * overlapped another one.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '1' }, seed: { type: 'string', default: '1' } },
})
const [minutes, seed] = [Number(values.minutes), Number(values.seed)]
if (!(minutes > 0)) throw new RangeError(`--minutes: expected a number > 0, got ${values.minutes}`)
if (!Number.isInteger(seed)) throw new RangeError(`--seed: expected an integer, got ${values.seed}`)

process.chdir(fileURLToPath(new URL('../../../', import.meta.url)))
const { status } = spawnSync('npx', ['vitest', 'run', '--project', 'cluster', 'test/cluster/chaos.test.ts'], {
  stdio: 'inherit',
  env: { ...process.env, CHAOS_SECONDS: String(minutes * 60), CHAOS_SEED: String(seed) },
})
process.exitCode = status ?? 1
