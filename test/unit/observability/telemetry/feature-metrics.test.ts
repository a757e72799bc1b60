/** The metrics of schedules, monitors and pauses, and of what queued tasks wait for. */
import { appendFileSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { AsyncTaskManagerOptions } from '../../../../src/index.js'
import { memoryStore } from '../../../../src/store/index.js'
import { createManualClock } from '../../../../src/testing/index.js'
import { limitedTasks, untilAborted } from '../../../support/limited-tasks.js'
import { recordTelemetry } from './recorded.js'

const HOUR = 3_600_000
const EVENT = 250

function measured(options: AsyncTaskManagerOptions = {}) {
  const recorded = recordTelemetry()
  const tasks = limitedTasks({ telemetry: recorded.telemetry, maxAsyncTasks: 10, ...options })
  const read = async (name: string) => (await recorded.metrics()).get(`agent_tasks.${name}`)
  const byReason = async (name: string): Promise<Record<string, unknown>> => {
    const points = ((await read(name)) ?? []) as Record<string, unknown>[]
    return Object.fromEntries(points.map((point) => [String(point['agent_tasks.reason']), point['value']] as const))
  }
  const append = (id: string, text: string) => tasks.runs.find((run) => run.id === id)?.context.append(text)
  return { ...tasks, ...recorded, read, byReason, append }
}

it('count firings, also those of managers that were disposed', async () => {
  const { manager, pass, read, telemetry } = measured()
  manager.schedule({ every: HOUR, message: 'look' })
  manager.schedule({ in: HOUR, message: 'once' })
  expect(await read('firings')).toBeUndefined()
  await pass(HOUR)
  expect(await read('firings')).toEqual([{ value: 2 }])
  expect(await read('missed_firings')).toEqual([{ value: 0 }])
  expect(await read('skipped_firings')).toBeUndefined()
  const other = limitedTasks({ telemetry })
  other.manager.schedule({ in: HOUR, message: 'once' })
  await other.pass(HOUR)
  expect(await read('firings')).toEqual([{ value: 3 }])
  await manager.dispose()
  await manager.dispose()
  expect(await read('firings')).toEqual([{ value: 3 }])
})

it('count firings that are skipped, because their task has not ended', async () => {
  const { manager, pass, read } = measured({ findRunner: () => untilAborted })
  manager.schedule({ every: HOUR, launch: { subagent: 'scout', goal: 'look' } })
  for (let hour = 0; hour < 3; hour += 1) await pass(HOUR)
  expect(await read('firings')).toEqual([{ value: 1 }])
  expect(await read('skipped_firings')).toEqual([{ value: 2 }])
})

it.each(['once', 'skip'] as const)('count missed firings where they are handled with %s', async (missed) => {
  const store = memoryStore()
  const first = limitedTasks({ store })
  first.manager.schedule({ every: HOUR, message: 'look', missed })
  await first.manager.stored()
  const clock = createManualClock(3 * HOUR + 1_000)
  const { manager, read } = measured({ store: store.copy(), clock })
  await manager.recovered
  clock.advance(1)
  expect(await read('missed_firings')).toEqual([{ value: 3 }])
  expect(await read('firings')).toEqual(missed === 'once' ? [{ value: 1 }] : undefined)
})

it('count the events of monitors, and their ends by reason', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'metrics-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'log')
  writeFileSync(file, '')
  const { manager, launch, append, pass, read, byReason, runs } = measured({
    monitors: { files: [folder], maxPerOwner: 20 },
  })
  await launch('a')
  const match = 'x'
  const monitor = (options = {}) => manager.monitor({ taskId: 'a' }, { match, ...options })
  monitor({ maxEvents: 2 })
  monitor({ seconds: 2 })
  monitor({ idleSeconds: 2 })
  for (let event = 0; event < 2; event += 1) {
    append('a', 'x\n')
    await pass(EVENT)
  }
  expect(await read('monitor_events')).toEqual([{ value: 6 }])
  expect(await byReason('monitor_ends')).toEqual({ events: 1 })
  await pass(2_000)
  expect(await byReason('monitor_ends')).toEqual({ events: 1, time: 1, idle: 1 })
  monitor().cancel()
  monitor().cancel('no longer needed')
  manager.releaseOwner(monitor({ owner: 'gone' }).owner)
  await pass(0)
  expect(await byReason('monitor_ends')).toMatchObject({ cancelled: 3 })
  const missing = manager.monitor({ file }, { match })
  appendFileSync(file, 'x\n')
  await pass(EVENT)
  await pass(EVENT)
  expect(await read('monitor_events')).toEqual([{ value: 7 }])
  expect(missing.cancel()).toBe(true)
  monitor()
  await runs[0]?.end()
  expect(await byReason('monitor_ends')).toEqual({ events: 1, time: 1, idle: 1, cancelled: 4, source: 1 })
})

it('count a monitor that ends because its events come too fast', async () => {
  const { manager, launch, append, pass, byReason } = measured()
  await launch('a')
  manager.monitor({ taskId: 'a' }, { match: 'x' })
  for (let event = 0; event < 300 && manager.monitors().length > 0; event += 1) {
    append('a', 'x\n')
    await pass(EVENT)
  }
  expect(await byReason('monitor_ends')).toEqual({ rate: 1 })
})

it('count pauses, and what queued tasks wait for: each task once', async () => {
  const { manager, launch, read, byReason, runs } = measured({ maxAsyncTasks: 4, whenFull: 'queue' })
  const none = { pause: 0, dependency: 0, key: 0, subagent: 0, rate: 0 }
  expect(await byReason('waiting')).toEqual(none)
  expect(await read('pauses')).toEqual([{ 'agent_tasks.kind': 'task', value: 0 }])
  await launch('first', { concurrencyKey: 'k' }, { rate: { limit: 1, perMs: HOUR } })
  await launch('second', { subagentName: 'one' }, { maxConcurrent: 1 })
  await launch('by key', { concurrencyKey: 'k', subagentName: 'other' })
  await launch('by subagent', { subagentName: 'one' }, { maxConcurrent: 1 })
  await launch('by rate', {}, { rate: { limit: 1, perMs: HOUR } })
  await launch('by task', { after: ['first'], concurrencyKey: 'k' })
  await launch('third', { subagentName: 'other' })
  await launch('fourth', { subagentName: 'other' })
  await launch('by slot', { subagentName: 'other' })
  manager.pause('ada')
  await launch('by pause', { owner: 'ada', after: [] })
  expect(await byReason('waiting')).toEqual({ pause: 1, dependency: 1, key: 1, subagent: 1, rate: 1 })
  expect((await read('queued'))?.[0]?.value).toBe(6)
  expect((await read('pauses'))?.[0]?.value).toBe(1)
  manager.pause()
  expect(await byReason('waiting')).toEqual({ ...none, pause: 6 })
  expect((await read('pauses'))?.[0]?.value).toBe(2)
  manager.resume()
  manager.resume('ada')
  await runs[0]?.end()
  expect(await byReason('waiting')).toMatchObject({ pause: 0, dependency: 0 })
  await manager.dispose()
  expect([await byReason('waiting'), (await read('pauses'))?.[0]?.value]).toEqual([none, 0])
})

it('keep the totals of what is not watched any longer once, and count no pauses of command tasks', async () => {
  const { telemetry, metrics } = recordTelemetry()
  const counts = () => ({ running: 0, queued: 0, pauses: 3 })
  const totals = () => new Map([['firings', 2]])
  const stop = telemetry.watch({ kind: 'task', counts, totals })
  telemetry.watch({ kind: 'command_task', counts })
  stop()
  stop()
  const read = await metrics()
  expect(read.get('agent_tasks.firings')).toEqual([{ value: 2 }])
  expect(read.get('agent_tasks.pauses')).toEqual([{ 'agent_tasks.kind': 'task', value: 0 }])
})
