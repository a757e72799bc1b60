// The small parts of the server. Each test owns its clock.
import { describe, expect, it, onTestFinished } from 'vitest'
import { toJson } from '../../../src/server/http/json.js'
import { parseJson } from '../../../src/data/parse-json.js'
import { createLog } from '../../../src/server/http/log.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../../../src/protocol/command-tasks.js'
import { createEventLog } from '../../../src/server/backend/event-log.js'
import { createHeartbeat } from '../../../src/server/heartbeat.js'
import { createConnectionCounts, createRateLimiter } from '../../../src/server/rates.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { startTestServer, taskOf } from './test-server.js'

const progress = (taskId: string, more: Partial<TaskProgressMessage> = {}): TaskProgressMessage => ({
  type: 'task_progress',
  taskId,
  instanceId: 'calc',
  commandId: 'cmd_1',
  commandIndex: 0,
  totalCommands: 1,
  status: 'running',
  timestamp: 0,
  tool_name: 'add',
  intention: '',
  ...more,
})
const complete = (taskId: string): TaskCompleteMessage => ({
  type: 'task_complete',
  taskId,
  instanceId: 'calc',
  status: 'completed',
  timestamp: 0,
  results: [],
  summary: { totalCommands: 1, successfulCommands: 1, duration: 0 },
})

function createLogOf(isKnown: (taskId: string) => boolean = () => true) {
  const log = createEventLog({ clock: createManualClock(), isKnown })
  onTestFinished(() => log.dispose())
  return log
}

describe('the event log', () => {
  it('S9: keeps every start and end of a live task, and the last 1,000 of its reports', () => {
    const log = createLogOf()
    log.append(progress('a'))
    for (let count = 0; count < 1500; count += 1) log.append(progress('a', { progress: count }))
    log.append(progress('a', { status: 'success' }))
    const kept = log.after('a', 0) ?? []
    expect(kept).toHaveLength(1002)
    expect(kept[0]).toMatchObject({ seq: 1 })
    expect(kept[1]).toMatchObject({ seq: 502, message: { progress: 500 } })
    expect(kept.at(-1)).toMatchObject({ seq: 1502, message: { status: 'success' } })
  })

  it('S9: removes an ended task after a time, and keeps a live one', () => {
    const clock = createManualClock()
    const log = createEventLog({ clock, isKnown: () => true, retentionMs: 1000 })
    log.append(progress('live'))
    log.append(complete('over'))
    clock.advance(999)
    expect(log.after('over', 0)).toHaveLength(1)
    clock.advance(1)
    expect(log.after('over', 1)).toBeUndefined()
    expect(log.lastSeq('over')).toBe(0)
    expect(log.after('live', 0)).toHaveLength(1)
    expect(clock.pending).toBe(0)
  })

  it('S9: removes the events of a task that clients cannot request any more', () => {
    const known = new Set(['a', 'b'])
    const log = createLogOf((taskId) => known.has(taskId))
    log.append(complete('a'))
    known.delete('a')
    expect(log.lastSeq('a')).toBe(1)
    log.append(complete('b'))
    expect([log.lastSeq('a'), log.lastSeq('b')]).toEqual([0, 1])
  })

  it('S9: keeps at most 50,000 events of ended tasks', () => {
    const log = createLogOf()
    for (let task = 0; task < 51; task += 1) {
      for (let count = 1; count < 1000; count += 1) log.append(progress(`t${task}`))
      log.append(complete(`t${task}`))
    }
    expect(log.lastSeq('t0')).toBe(0)
    expect(log.lastSeq('t1')).toBe(1000)
  })

  it('S9: bounds the texts of reports, of each task and of all ended ones', () => {
    const log = createLogOf()
    const message = 'x'.repeat(1024 * 1024)
    for (let task = 0; task < 40; task += 1) {
      log.append(progress(`t${task}`, { status: 'running' }))
      for (let count = 0; count < 3; count += 1) log.append(progress(`t${task}`, { progress: count, message }))
      expect(log.after(`t${task}`, 0)?.map(({ seq }) => seq)).toEqual([1, 4])
      log.append(complete(`t${task}`))
    }
    expect([7, 8].map((task) => log.lastSeq(`t${task}`))).toEqual([0, 5])
  })

  it('serialises an event once, for all subscribers', () => {
    let written = 0
    const result = { toJSON: () => (written += 1) }
    const event = createLogOf().append(progress('a', { result }))
    expect(event.frame).toBe(event.frame)
    expect(written).toBe(1)
  })

  it('frees the frame after delivery, and serialises it again for a later reader', () => {
    const event = createLogOf().append(progress('a'))
    const { frame } = event
    event.releaseFrame()
    expect(event.frame).not.toBe(frame)
    expect(event.frame).toEqual(frame)
  })
})

describe('rates', () => {
  it('limits each address on its own, and refills evenly', () => {
    const clock = createManualClock()
    const limiter = createRateLimiter(60, clock)
    for (let count = 0; count < 60; count += 1) expect(limiter.take('a')).toBe(0)
    expect(limiter.take('a')).toBe(1000)
    expect(limiter.take('b')).toBe(0)
    clock.advance(999)
    expect(limiter.take('a')).toBe(1)
    clock.advance(1)
    expect(limiter.take('a')).toBe(0)
    expect(limiter.take('a')).toBe(1000)
    clock.advance(3_600_000)
    for (let count = 0; count < 60; count += 1) expect(limiter.take('a')).toBe(0)
    expect(limiter.take('a')).toBe(1000)
  })

  it('allows each number of requests at once, and no more', () => {
    for (const perMinute of [1, 7, 13, 14, 18, 333, 997]) {
      const limiter = createRateLimiter(perMinute, createManualClock())
      const waits = Array.from({ length: perMinute + 1 }, () => limiter.take('a'))
      expect(waits.findIndex((waitMs) => waitMs > 0)).toBe(perMinute)
    }
  })

  it('counts the end of a connection once', () => {
    const counts = createConnectionCounts(2)
    const leave = counts.enter('a')
    counts.enter('a')
    expect(counts.enter('a')).toBeUndefined()
    expect(counts.enter('b')).toBeDefined()
    leave?.()
    leave?.()
    expect(counts.enter('a')).toBeDefined()
    expect(counts.enter('a')).toBeUndefined()
  })
})

describe('the heartbeat', () => {
  it('calls all that is open, and has no timer when nothing is', () => {
    const clock = createManualClock()
    const heartbeat = createHeartbeat(clock, 100)
    const beats: string[] = []
    const kept = (name: string) => ({ beat: () => beats.push(name), end: () => beats.push(`end ${name}`) })
    const releaseA = heartbeat.keep(kept('a'))
    const releaseB = heartbeat.keep(kept('b'))
    clock.advance(100)
    releaseA()
    clock.advance(100)
    heartbeat.endAll()
    expect(beats).toEqual(['a', 'b', 'b', 'end b'])
    releaseB()
    expect(clock.pending).toBe(0)
  })

  it('beats for what is open after nothing was, from then on', () => {
    const clock = createManualClock()
    const heartbeat = createHeartbeat(clock, 100)
    const beats: string[] = []
    const keep = (name: string) => heartbeat.keep({ beat: () => beats.push(name), end: () => undefined })
    keep('a')()
    clock.advance(60)
    const release = keep('b')
    clock.advance(99)
    expect(beats).toEqual([])
    clock.advance(1)
    clock.advance(100)
    expect(beats).toEqual(['b', 'b'])
    release()
    release()
    expect(clock.pending).toBe(0)
  })

  it('terminates a client that does not answer a ping, and keeps one that does', async () => {
    const clock = createManualClock(1_000_000)
    const server = await startTestServer({ clock })
    const alive = await server.client()
    const dead = await server.client()
    dead.socket.pause()
    const answered = new Promise((resolve) => alive.socket.once('ping', resolve))
    clock.advance(30_000)
    await answered
    // Its pong is before this request on the same connection.
    await alive.ask({ type: 'task_list' })
    clock.advance(30_000)
    dead.socket.resume()
    expect(await dead.closed).toMatchObject({ code: 1006 })
    expect(await alive.ask({ type: 'task_list' })).toMatchObject({ tasks: [] })
  })
})

describe('JSON', () => {
  it('counts levels outside strings only', () => {
    expect(parseJson('["[[[[", "\\"[[[", {"a":[1]}]', 3)).toEqual({ value: ['[[[[', '"[[[', { a: [1] }] })
    expect(parseJson('[[[1]]]', 2)).toMatchObject({ code: 'TOO_DEEP' })
    expect(parseJson('[[1],[1],[1]]', 2)).toEqual({ value: [[1], [1], [1]] })
    expect(parseJson('', 2)).toMatchObject({ code: 'MALFORMED_JSON' })
  })

  it('writes what JSON cannot represent as something readable', () => {
    const circular: Record<string, unknown> = { big: 12n }
    circular['self'] = circular
    expect(toJson(circular)).toBe('{"big":"12","self":"[circular]"}')
  })
})

describe('the log', () => {
  it('writes the lines of its level and above, with the message of an error', () => {
    const lines: string[] = []
    const log = createLog('warn', (line) => lines.push(line))
    log('error', 'This failed', new Error('for a reason'))
    log('warn', 'This is odd')
    log('info', 'This is so')
    createLog('silent', (line) => lines.push(line))('error', 'Not written')
    expect(lines).toEqual(['agent-tasks error: This failed: for a reason', 'agent-tasks warn: This is odd'])
  })

  it('is one line for each entry, without control characters, whatever a message has in it', () => {
    const lines: string[] = []
    createLog('warn', (line) => lines.push(line))('warn', 'Odd', new Error('a\nagent-tasks info: forged\u001b[2J'))
    expect(lines).toEqual(['agent-tasks warn: Odd: a\\u000aagent-tasks info: forged\\u001b[2J'])
  })
})

describe('GET /metrics', () => {
  it('counts tasks, lanes, commands and connections', async () => {
    const server = await startTestServer()
    const client = await server.client()
    await client.ask({ type: 'task_submit', ...taskOf('add', 'blow') })
    await client.skipTo('task_complete')
    await client.ask({ type: 'task_submit', ...taskOf('hold') })
    await client.ask({ type: 'task_submit', ...taskOf('add') })
    await server.held()
    const { body, headers } = await server.call('/metrics')
    expect(headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    const lines = String(body['text']).split('\n')
    expect(lines).toEqual(
      expect.arrayContaining([
        'agent_tasks_queued 1',
        'agent_tasks_running 1',
        'agent_tasks_settled_total{status="completed"} 0',
        'agent_tasks_settled_total{status="failed"} 1',
        'agent_tasks_lane_depth{instance="calc"} 2',
        'agent_tasks_command_duration_seconds_bucket{outcome="success",le="+Inf"} 1',
        'agent_tasks_command_duration_seconds_count{outcome="error"} 1',
        'agent_tasks_late_results_total 0',
        'agent_tasks_dropped_frames_total 0',
        'agent_tasks_connections{kind="client"} 1',
        'agent_tasks_connections{kind="worker"} 0',
      ]),
    )
    const pattern = /^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{([a-z_]+="([^"\\\n]|\\.)*",?)+\})? [0-9.e+-]+|)$/
    expect(lines.filter((line) => !pattern.test(line))).toEqual([])
  })
})
