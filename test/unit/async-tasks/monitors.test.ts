/** Monitors of tasks and files: F17. */
import fs, {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { AgentTasksError, AsyncTaskManager, type AsyncTaskManagerOptions } from '../../../src/index.js'
import { FollowedFile } from '../../../src/features/monitors/followed-file.js'
import { taskWatchers } from '../../../src/async-tasks/task-watchers.js'
import { MAX_OWED_NOTES } from '../../../src/features/notes/notes.js'
import { memoryStore, type MemoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'
import type { MonitorSource } from '../../../src/features/monitors/monitors.js'
import type { MonitorOptions } from '../../../src/protocol/monitors.js'
import { DisposedError, InvalidInputError } from '../../../src/errors.js'

const BATCH = 200

/** The texts of the notes that an owner is owed. */
const notesOf = (manager: AsyncTaskManager, owner = 'main'): string[] =>
  manager
    .getPendingNotifications(owner)
    .filter(({ isNote }) => isNote === true)
    .map(({ output }) => String(output?.final_message))

/** How many watchers of tasks are left. */
function watchersOf(manager: AsyncTaskManager): () => number {
  const watchers = manager.registry.use(taskWatchers)
  const added = vi.spyOn(watchers, 'add')
  const removed = vi.spyOn(watchers, 'remove')
  return () =>
    new Set(added.mock.calls.map(([, call]) => call)).size - new Set(removed.mock.calls.map(([, call]) => call)).size
}

function monitored(options: AsyncTaskManagerOptions = {}) {
  const tasks = limitedTasks({ maxAsyncTasks: 5, ...options })
  const append = (id: string, text: string): void => {
    tasks.runs.findLast((run) => run.id === id)?.context.append(text)
  }
  return { ...tasks, append, notes: (owner?: string) => notesOf(tasks.manager, owner) }
}

/** A folder with the file `app.log`, which monitors may read. */
function folderWithLog(text = '') {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'monitors-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const logs = join(folder, 'logs')
  mkdirSync(logs)
  const file = join(logs, 'app.log')
  writeFileSync(file, text)
  /** How many descriptors of this process are open on something in the folder. */
  const open = (): number =>
    readdirSync('/proc/self/fd').filter((descriptor) => {
      try {
        return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(folder)
      } catch {
        return false
      }
    }).length
  return { folder, logs, file, open }
}

describe('a monitor of a task', () => {
  it('F17: reports the lines that match within 200 ms as one note, and where the output goes on', async () => {
    const { manager, launch, append, pass, notes } = monitored()
    await launch('a')
    const { id } = manager.monitor({ taskId: 'a' }, { match: 'error', description: 'build\nerrors' })
    append('a', 'fine\nerror one\nerror')
    await pass(150)
    append('a', ' two\nfine\n')
    expect(notes()).toEqual([])
    await pass(50)
    expect(notes()).toEqual([
      `Monitor ${id} (build errors), task a: 2 matching line(s).\n\`\`\`\nerror one\nerror two\n\`\`\`\nThe output goes on at byte 30.`,
    ])
    expect(manager.getPendingNotifications()[0]).toMatchObject({ subagentName: 'monitor', goalPrompt: 'build\nerrors' })
    append('a', 'error three\n')
    await pass(BATCH)
    expect(notes()[1]).toContain('\nerror three\n')
    expect(manager.monitors()).toMatchObject([{ id, owner: 'main', taskId: 'a', events: 2, endsAt: 301_000 }])
  })

  it('F17: begins with the output that is kept', async () => {
    const { manager, launch, append, pass, notes } = monitored({ outputBytes: 20 })
    await launch('a')
    append('a', 'error that is dropped\nerror kept\n')
    manager.monitor({ taskId: 'a' }, { match: 'error' })
    await pass(BATCH)
    expect(notes()[0]).toContain('1 matching line(s).\n```\nerror kept\n```')
  })

  it.each([
    ['a text', 'b+', ['a b+ c', 'abbb'], 'a b+ c'],
    ['one of several texts', ['x', 'y'], ['axa', 'b', 'aya'], 'axa\naya'],
    ['a regular expression', { regex: '^b+$' }, ['bbb', 'abb'], 'bbb'],
    ['one with flags', { regex: '^B+$', flags: 'iu' }, ['bbb', 'abb'], 'bbb'],
    ['a RegExp', /^(?<word>\w+)[^]\u{41}$/iu, ['foo-a', 'bar-b'], 'foo-a'],
  ] as const)('F17: matches %s', async (_, match, lines, found) => {
    const { manager, launch, append, pass, notes } = monitored()
    await launch('a')
    manager.monitor({ taskId: 'a' }, { match })
    append('a', `${lines.join('\n')}\n`)
    await pass(BATCH)
    expect(notes()[0]).toContain(`\`\`\`\n${found}\n\`\`\``)
  })

  it('F17: searches lines without codes of terminals and line breaks of Windows, in their first 4096 characters', async () => {
    const { manager, launch, append, pass, notes } = monitored()
    await launch('a')
    manager.monitor({ taskId: 'a' }, { match: { regex: '^(error|x+y)( .*)?$' } })
    const link = '\u001b]8;;http://a\u0007'
    append(
      'a',
      `\u001b[1;31mer\u001b[0mror ${link}link\r\n${'x'.repeat(4095)}y\n${'x'.repeat(4096)}y\nerror 50%\rerror\n`,
    )
    await pass(BATCH)
    expect(notes()[0]).toMatch(
      /: 3 matching line\(s\)\.\n```\nerror link\nx+\n```\nThere was no room for the other lines\. /,
    )
    append('a', 'error a\u0007\u2028b\n')
    await pass(BATCH)
    expect(notes()[1]).toContain('error a  b')
  })

  it('F17: keeps an event within 2 KB, and its lines between fences that they cannot close', async () => {
    const { manager, launch, append, pass, notes } = monitored()
    await launch('a')
    manager.monitor({ taskId: 'a' }, { match: { regex: '.' }, description: 'ä'.repeat(100) })
    append('a', `${'`'.repeat(1500)}\n${'ü'.repeat(3000)}\n`)
    await pass(BATCH)
    append('a', '```\nThe monitor has ended: nonsense.\n')
    await pass(BATCH)
    const encoded = vi.spyOn(TextEncoder.prototype, 'encode')
    onTestFinished(() => encoded.mockRestore())
    for (let part = 0; part < 10; part += 1) {
      append('a', Array.from({ length: 500 }, (_, n) => `line ${500 * part + n}\n`).join(''))
    }
    const before = encoded.mock.calls.length
    await pass(BATCH)
    // A batch holds no more than the event may have, and one line.
    expect(Math.max(...encoded.mock.calls.slice(before).map(([text = '']) => text.length))).toBeLessThan(2048 + 4097)
    const sizes = notes().map((text) => Buffer.byteLength(text))
    expect(Math.max(...sizes)).toBeLessThanOrEqual(2048)
    expect(sizes[2]).toBeGreaterThan(1500)
    expect(notes()[1]).toContain('\n````\n```\nThe monitor has ended: nonsense.\n````\n')
    expect(notes()[2]).toContain(': 5000 matching line(s).\n```\nline 0\n')
  })

  it('M2: shows ten events at once and one more every 2 s, counts the others, and ends after 30 s of that', async () => {
    const { manager, launch, append, pass, notes } = monitored()
    await launch('a')
    manager.monitor({ taskId: 'a' }, { match: 'error' })
    for (let ms = 0; ms < 2000; ms += BATCH) {
      append('a', 'error\n')
      await pass(BATCH)
    }
    expect(notes()).toHaveLength(10)
    const shown: number[] = []
    for (let ms = 0; manager.monitors().length > 0 && ms < 60_000; ms += BATCH) {
      append('a', 'error\n')
      await pass(BATCH)
      if (notes().length > 10 + shown.length) shown.push(ms)
    }
    expect(notes()[11]).toContain(': 1 matching line(s), and 8 more that were not shown.')
    expect(notes().at(-1)).toMatch(
      /more that were not shown\.[^]*The monitor has ended: its events came too fast for 30 s\.$/,
    )
    expect(shown.length).toBeGreaterThan(14)
    expect(shown.length).toBeLessThan(18)
    expect(shown.at(-1)).toBeGreaterThanOrEqual(29_000)
    expect(shown.at(-1)).toBeLessThanOrEqual(31_000)
  })

  it('M2: goes on when the events come more slowly again', async () => {
    const { manager, launch, append, pass, notes } = monitored()
    await launch('a')
    manager.monitor({ taskId: 'a' }, { match: 'error', seconds: 1000 })
    for (let round = 0; round < 6; round += 1) {
      for (let ms = 0; ms < 6000; ms += BATCH) {
        append('a', 'error\n')
        await pass(BATCH)
      }
      await pass(6000)
    }
    expect(manager.monitors()).toHaveLength(1)
    // All lines are shown or counted.
    append('a', 'error\n')
    await pass(BATCH)
    const counts = notes().flatMap((text) =>
      Array.from(text.matchAll(/(\d+) (?:matching|more)/g), ([, n]) => Number(n)),
    )
    expect(counts.reduce((sum, n) => sum + n, 0)).toBe(181)
  })

  it.each([
    ['its time is over (2 s)', { seconds: 2 }, 2000],
    ['nothing was written for 1.5 s', { idleSeconds: 1.5 }, 2000],
    ['it has reached its limit of 1 events', { maxEvents: 1 }, 700],
  ] as const)('M3: ends because %s, with its last lines, and reports that once', async (why, options, at) => {
    const { manager, launch, append, pass, notes, clock } = monitored()
    await launch('a')
    manager.monitor({ taskId: 'a' }, { match: 'error', ...options })
    await pass(500)
    append('a', 'error\nerror without a line break')
    await pass(at - 501)
    expect(manager.monitors()).toHaveLength(1)
    await pass(1)
    expect(manager.monitors()).toEqual([])
    expect(notes().join('\n')).toMatch(/error\n[^]*error without a line break\n/)
    expect(notes().at(-1)).toContain(`The monitor has ended: ${why}.`)
    const count = notes().length
    append('a', '\nerror\n')
    await pass(10_000)
    expect(notes()).toHaveLength(count)
    expect(clock.pending).toBe(0)
  })

  it('M3: ends with its task, and its last lines are in the note of its end', async () => {
    const { manager, launch, append, runs, notes, clock, pass } = monitored()
    await launch('a')
    await launch('b')
    manager.monitor({ taskId: 'a' }, { match: 'error' })
    manager.monitor({ taskId: 'b' }, { match: 'error' })
    append('a', 'error\nlast error')
    await runs[0]?.end()
    manager.cancelTask('b')
    await pass(1000)
    expect(notes()[0]).toMatch(/error\nlast error\n```\n.* The monitor has ended: its task has ended \(completed\)\.$/)
    expect(notes()[1]).toMatch(
      /task b: 0 matching line\(s\)\. .* The monitor has ended: its task has ended \(cancelled\)\.$/,
    )
    expect(notes()).toHaveLength(2)
    expect(manager.monitors()).toEqual([])
    expect(clock.pending).toBe(0)
  })

  it('M3: ends when it is cancelled, and reports that only with a reason', async () => {
    const { manager, launch, append, notes, clock, pass } = monitored()
    const watchers = watchersOf(manager)
    await launch('a')
    const [one, two] = [1, 2].map(() => manager.monitor({ taskId: 'a' }, { match: 'error' }))
    append('a', 'error\n')
    expect([one?.cancel(), one?.cancel(), two?.cancel('by the\nuser'), two?.cancel('again')]).toEqual([
      true,
      false,
      true,
      false,
    ])
    append('a', 'error\n')
    await pass(1000)
    expect(notes()).toHaveLength(1)
    expect(notes()[0]).toMatch(/The monitor has ended: it was cancelled: by the user\.$/)
    expect(clock.pending).toBe(0)
    expect([manager.monitors(), watchers()]).toEqual([[], 0])
  })

  it('F17: is heard by an owner that is owed a hundred notes when it takes them, with the number of lines that it missed', async () => {
    const { manager, launch, append, notes, pass } = monitored()
    await launch('a')
    manager.monitor({ taskId: 'a' }, { match: 'error', seconds: 1800 })
    for (let count = 0; count < MAX_OWED_NOTES + 3; count += 1) {
      append('a', 'error\n')
      await pass(2000)
    }
    expect(notes()).toHaveLength(MAX_OWED_NOTES)
    // An end is owed all the same.
    manager.monitor({ taskId: 'a' }, { match: 'nothing' }).cancel('by the user')
    expect(notes()).toHaveLength(MAX_OWED_NOTES + 1)
    manager.lease()?.acknowledge()
    append('a', 'error\n')
    await pass(2000)
    expect(notes()[0]).toContain(': 1 matching line(s), and 3 more that were not shown.')
  })

  it('F17: wakes the owner of its options, passes to its heir, and ends with an owner that has none', async () => {
    const { manager, launch, append, notes, pass, clock } = monitored()
    await launch('a')
    manager.monitor({ taskId: 'a' }, { match: 'error', owner: 'one' })
    manager.monitor({ taskId: 'a' }, { match: 'error', owner: 'two' })
    manager.releaseOwner('one', { to: 'three' })
    manager.releaseOwner('two')
    await tick()
    expect(manager.monitors().map(({ owner }) => owner)).toEqual(['three'])
    append('a', 'error\n')
    await pass(BATCH)
    expect([notes('one'), notes('two'), notes()]).toEqual([[], [], []])
    expect(notes('three')).toHaveLength(1)
    manager.releaseOwner('three', { to: 'three' })
    expect(manager.monitors('three')).toHaveLength(1)
    manager.releaseOwner('three')
    await tick()
    expect(clock.pending).toBe(0)
  })

  it('F17: of a run passes to the owner of its task when the run ends', async () => {
    const { manager, launch, append, notes, pass, runs } = monitored()
    await launch('a')
    await launch('parent', { owner: 'one' })
    manager.monitor({ taskId: 'a' }, { match: 'error', owner: 'run:parent' })
    await runs[1]?.end()
    append('a', 'error\n')
    await pass(BATCH)
    expect(manager.monitors().map(({ owner }) => owner)).toEqual(['one'])
    expect(notes('one')).toHaveLength(1)
    expect(() => manager.monitor({ taskId: 'a' }, { match: 'error', owner: 'run:parent' })).toThrow(InvalidInputError)
  })

  it('F17: is refused at the limit of its owner, with nothing changed', async () => {
    const { manager, launch, clock } = monitored({ monitors: { maxPerOwner: 1 } })
    await launch('a')
    const before = clock.pending
    const { cancel } = manager.monitor({ taskId: 'a' }, { match: 'error' })
    expect(() => manager.monitor({ taskId: 'a' }, { match: 'error' })).toThrow(
      new AgentTasksError(
        'MONITOR_LIMIT',
        'Max monitors of one owner (1, monitors.maxPerOwner) reached. Cancel one that is no longer needed.',
      ),
    )
    manager.monitor({ taskId: 'a' }, { match: 'error', owner: 'other' }).cancel()
    cancel()
    expect(clock.pending).toBe(before)
    manager.monitor({ taskId: 'a' }, { match: 'error' })
  })

  it('F17: is refused while all owners together have 1000', async () => {
    const { manager, launch } = monitored()
    await launch('a')
    const monitor = (owner: string) => manager.monitor({ taskId: 'a' }, { match: 'error', owner })
    const [first] = Array.from({ length: 1000 }, (_, n) => monitor(`owner ${n % 100}`))
    expect(() => monitor('one more')).toThrow(
      new AgentTasksError('MONITOR_LIMIT', 'Max monitors of all owners (1000) reached.'),
    )
    first?.cancel()
    expect(() => monitor('one more')).not.toThrow()
  })

  it('F17: leaves nothing behind when the manager is disposed, and cannot be started then', async () => {
    const { manager, launch, clock } = monitored()
    await launch('a')
    manager.monitor({ taskId: 'a' }, { match: 'error' })
    await manager.dispose()
    expect(clock.pending).toBe(0)
    expect(() => manager.monitor({ taskId: 'a' }, { match: 'error' })).toThrow(DisposedError)
  })

  it.each([
    [{ taskId: 'b' }, {}, 'input.taskId: got "b", expected the id of a task that has not ended.'],
    [{ taskId: 'ended' }, {}, 'input.taskId: got "ended", expected the id of a task that has not ended.'],
    [{ taskId: 5 }, {}, 'input.taskId: got 5, expected a string.'],
    [{}, {}, 'expected either taskId or file.'],
    [undefined, {}, 'expected either taskId or file.'],
    [{ taskId: 'a', file: 'b' }, {}, 'expected either taskId or file.'],
    [{ command: 'ls' }, {}, 'input.command: got "ls", expected a known field'],
    [{ file: 'x' }, {}, 'input.file: got "x", expected a file within monitors.files (none).'],
    [{ file: '' }, {}, 'input.file: got "", expected at least 1 character(s).'],
    [{ file: 'x'.repeat(1025) }, {}, 'expected at most 1024 characters.'],
    [
      { taskId: 'a' },
      { match: undefined },
      'input.match: got undefined, expected a string or an array or an object or a RegExp.',
    ],
    [{ taskId: 'a' }, { match: '' }, 'input.match: got "", expected at least 1 character(s).'],
    [{ taskId: 'a' }, { match: 'x'.repeat(501) }, 'expected at most 500 characters.'],
    [{ taskId: 'a' }, { match: [] }, 'input.match: got an empty array, expected at least 1.'],
    [
      { taskId: 'a' },
      { match: Array.from({ length: 11 }, () => 'x') },
      'input.match: got an array of 11, expected at most 10.',
    ],
    [{ taskId: 'a' }, { match: ['x', 5] }, 'input.match[1]: got 5, expected a string.'],
    [
      { taskId: 'a' },
      { match: { regexp: 'x' } },
      'input.match.regexp: got "x", expected a known field; the nearest is regex.',
    ],
    [{ taskId: 'a' }, { match: { regex: 'x'.repeat(501) } }, 'expected at most 500 characters.'],
    [
      { taskId: 'a' },
      { match: { regex: 'x', flags: 'g' } },
      'input.match.flags: got "g", expected some of the flags i, m, s and u.',
    ],
    [{ taskId: 'a' }, { match: { regex: 'x', flags: 'ii' } }, 'input.match.flags: got "ii"'],
    [{ taskId: 'a' }, { match: /x/y }, 'input.match.flags: got "y"'],
    [{ taskId: 'a' }, { match: new RegExp('x', 'v') }, 'input.match.flags: got "v"'],
    [{ taskId: 'a' }, { match: /x/g }, 'input.match.flags: got "g"'],
    [{ taskId: 'a' }, { match: /a(?=b)/ }, 'expected a regular expression without look-arounds and back-references'],
    [{ taskId: 'a' }, { match: /(?<!a)b/ }, 'expected a regular expression without look-arounds and back-references'],
    [
      { taskId: 'a' },
      { match: { regex: '(a)\\1' } },
      'expected a regular expression without look-arounds and back-references',
    ],
    [{ taskId: 'a' }, { match: { regex: '(' } }, 'input.match.regex: got "(", expected a regular expression'],
    [
      { taskId: 'a' },
      { match: { regex: '(?:ab{0,90}){0,10}' } },
      'expected a regular expression of at most 1000 instructions',
    ],
    [{ taskId: 'a' }, { maxEvents: 0 }, 'input.maxEvents: got 0, expected at least 1.'],
    [{ taskId: 'a' }, { maxEvents: 6 }, 'input.maxEvents: got 6, expected at most 5.'],
    [{ taskId: 'a' }, { maxEvents: 1.5 }, 'input.maxEvents: got 1.5, expected an int.'],
    [{ taskId: 'a' }, { seconds: 0 }, 'input.seconds: got 0, expected more than 0.'],
    [{ taskId: 'a' }, { seconds: 1801 }, 'input.seconds: got 1801, expected at most 1800.'],
    [{ taskId: 'a' }, { seconds: '5' }, 'input.seconds: got "5", expected a number.'],
    [{ taskId: 'a' }, { idleSeconds: Infinity }, 'input.idleSeconds: got Infinity, expected a number.'],
    [{ taskId: 'a' }, { idleSeconds: -1 }, 'input.idleSeconds: got -1, expected more than 0.'],
    [{ taskId: 'a' }, { description: 'x'.repeat(101) }, 'expected at most 100 characters.'],
    [{ taskId: 'a' }, { owner: '' }, 'input.owner: got "", expected at least 1 character(s).'],
    [{ taskId: 'a' }, { owner: 'run:gone' }, 'input.owner: got "run:gone", expected an owner'],
    [{ taskId: 'a' }, { idle: 1 }, 'input.idle: got 1, expected a known field'],
  ])('F17: refuses %j with %j', async (source, options, message) => {
    const { manager, launch, runs, clock } = monitored({ monitors: { maxEvents: 5 } })
    await launch('a')
    await launch('ended')
    await runs[1]?.end()
    const start = () =>
      manager.monitor(source as unknown as MonitorSource, { match: 'x', ...options } as MonitorOptions)
    expect(start).toThrow(InvalidInputError)
    expect(start).toThrow(message)
    expect(manager.monitors()).toEqual([])
    expect(clock.pending).toBe(0)
  })

  it.each([
    [{ files: 'logs' }, 'options.monitors.files: got "logs", expected an array.'],
    [{ files: [''] }, 'options.monitors.files[0]: got "", expected'],
    [{ maxPerOwner: -1 }, 'monitors.maxPerOwner: got -1, expected an integer >= 0.'],
    [{ maxSeconds: 0 }, 'monitors.maxSeconds: got 0, expected a number >= 1.'],
    [{ maxEvents: 0.5 }, 'monitors.maxEvents: got 0.5, expected an integer >= 1.'],
    [{ max: 1 }, 'options.monitors.max: got 1, expected'],
  ])('F17: refuses the limits %j', (monitors, message) => {
    expect(() => new AsyncTaskManager({ monitors: monitors as never })).toThrow(message)
  })
})

describe('a monitor of a file', () => {
  const withLog = (text = '', options: AsyncTaskManagerOptions = {}) => {
    const log = folderWithLog(text)
    return { ...log, ...monitored({ monitors: { files: [log.logs] }, ...options }) }
  }

  it('F17: reports the lines that match in the end of it, and what is appended', async () => {
    const dropped = 'error that is too far back\n'
    const { manager, file, pass, notes, open, clock } = withLog(`${dropped}${'x'.repeat(65_530 - 8)}\nerror 1\n`)
    const { cancel } = manager.monitor({ file: 'app.log' }, { match: 'error' })
    await pass(2 * BATCH)
    expect(notes()[0]).toMatch(
      /file app\.log: 1 matching line\(s\)\.\n```\nerror 1\n```\nThe output goes on at byte 65558\.$/,
    )
    appendFileSync(file, 'error ä'.slice(0, 6))
    await pass(BATCH)
    const bytes = Buffer.from('ä 2\n')
    appendFileSync(file, bytes.subarray(0, 1))
    await pass(BATCH)
    appendFileSync(file, bytes.subarray(1))
    await pass(2 * BATCH)
    expect(notes()[1]).toContain('\nerror ä 2\n')
    expect(open()).toBe(1)
    cancel()
    expect(open()).toBe(0)
    expect(clock.pending).toBe(0)
  })

  it('F17: goes on when it is truncated, also when it is longer again by then', async () => {
    const { manager, file, pass, notes } = withLog('error 1\n')
    manager.monitor({ file }, { match: 'error' })
    await pass(2 * BATCH)
    truncateSync(file)
    appendFileSync(file, 'error 2\n')
    await pass(2 * BATCH)
    truncateSync(file)
    appendFileSync(file, 'error 3\nerror 4, longer than before\n')
    await pass(2 * BATCH)
    truncateSync(file)
    await pass(BATCH)
    appendFileSync(file, 'error 5\n')
    await pass(2 * BATCH)
    expect(notes().map((text) => text.split('\n').filter((line) => line.startsWith('error')))).toEqual([
      ['error 1'],
      ['error 2'],
      ['error 3', 'error 4, longer than before'],
      ['error 5'],
    ])
  })

  it('F17: reads a file that was replaced to its end, and then its successor, also where there was none for some time', async () => {
    const { manager, file, pass, notes, open } = withLog('error 1\n')
    manager.monitor({ file }, { match: 'error' })
    await pass(2 * BATCH)
    appendFileSync(file, 'error 2\nerror without a line break')
    renameSync(file, `${file}.1`)
    writeFileSync(file, 'error 3\n')
    await pass(3 * BATCH)
    renameSync(file, `${file}.2`)
    await pass(4000)
    appendFileSync(`${file}.2`, 'error 4\n')
    await pass(BATCH)
    writeFileSync(file, 'error 5\n')
    await pass(3 * BATCH)
    const lines = notes().flatMap((text) => text.split('\n').filter((line) => line.startsWith('error')))
    expect(lines).toEqual(['error 1', 'error 2', 'error without a line break', 'error 3', 'error 4', 'error 5'])
    expect(open()).toBe(1)
    rmSync(file)
    await pass(4999)
    expect(manager.monitors()).toHaveLength(1)
    await pass(3 * BATCH)
    expect(notes().at(-1)).toContain(
      'The monitor has ended: its file can no longer be read: expected a file that exists.',
    )
    expect([manager.monitors(), open()]).toEqual([[], 0])
  })

  it('F17: is refused outside of the allowed files, by its real path', async () => {
    const { manager, folder, logs, file, pass, notes, open } = withLog('error 1\n')
    writeFileSync(join(folder, 'secret'), 'error secret\n')
    symlinkSync(join(folder, 'secret'), join(logs, 'link'))
    symlinkSync(file, join(logs, 'current'))
    mkdirSync(join(folder, 'logs-2'))
    writeFileSync(join(folder, 'logs-2', 'other'), '')
    for (const name of [
      'link',
      '../secret',
      '../missing',
      join(folder, 'secret'),
      join(folder, 'logs-2', 'other'),
      '/etc/passwd',
    ]) {
      expect(() => manager.monitor({ file: name }, { match: 'error' })).toThrow(
        'expected a file within monitors.files (',
      )
    }
    expect(() => manager.monitor({ file: 'missing' }, { match: 'error' })).toThrow(
      'expected a regular file that can be read.',
    )
    expect(() => manager.monitor({ file: '.' }, { match: 'error' })).toThrow('expected a regular file')
    expect(open()).toBe(0)
    // A link that leads elsewhere later is not followed there.
    manager.monitor({ file: 'current' }, { match: 'error' })
    await pass(2 * BATCH)
    rmSync(join(logs, 'current'))
    symlinkSync(join(folder, 'secret'), join(logs, 'current'))
    await pass(6000)
    expect(notes()).toHaveLength(2)
    expect(notes().join()).not.toContain('secret\n')
    expect(notes()[1]).toContain('its file can no longer be read: expected a file within monitors.files (')
    expect(open()).toBe(0)
  })

  it('M3: ends when the file system fails, and says why', async () => {
    const { manager, logs, folder, pass, notes, open } = withLog()
    manager.monitor({ file: 'app.log' }, { match: 'error' })
    await pass(BATCH)
    // Looking at it fails now in another way than for a file that is missing.
    renameSync(logs, join(folder, 'moved'))
    symlinkSync('logs', logs)
    await pass(6000)
    expect(notes()).toEqual([
      expect.stringMatching(/The monitor has ended: it(s file is gone| cannot read any longer): .*\.$/),
    ])
    expect(open()).toBe(0)
  })

  it('F17: may be one of the allowed files itself', async () => {
    const { file } = folderWithLog('error\n')
    const { manager, pass, notes } = monitored({ monitors: { files: [file] } })
    manager.monitor({ file }, { match: 'error', maxEvents: 1 })
    await pass(2 * BATCH)
    expect(notes()).toHaveLength(1)
  })

  it('F17: ends when it is idle, and with the manager, and closes the file', async () => {
    const { manager, file, pass, notes, open, clock } = withLog()
    manager.monitor({ file }, { match: 'error', idleSeconds: 2 })
    await pass(1900)
    appendFileSync(file, 'fine\n')
    await pass(2000)
    expect(manager.monitors()).toHaveLength(1)
    await pass(BATCH)
    expect(notes()[0]).toMatch(/nothing was written for 2 s\.$/)
    expect(open()).toBe(0)
    manager.monitor({ file }, { match: 'error' })
    await manager.dispose()
    expect([open(), clock.pending]).toEqual([0, 0])
  })

  it('F17: reads a long file in parts, and holds no more of it than a part', async () => {
    const { manager, file, pass, notes } = withLog()
    manager.monitor({ file }, { match: 'error', maxEvents: 1 })
    await pass(BATCH)
    appendFileSync(file, `${'no line break '.repeat(100_000)}\n${'fine\n'.repeat(100_000)}error at the end\n`)
    await pass(2 * BATCH)
    expect(notes()[0]).toContain('error at the end')
  })
})

describe('a monitor when its process dies', () => {
  const restart = async (store: MemoryStore, options: AsyncTaskManagerOptions = {}) => {
    const clock = createManualClock(60_000)
    const errors: unknown[] = []
    const manager = new AsyncTaskManager({
      store,
      clock,
      maxAsyncTasks: 5,
      onError: (error) => errors.push(error),
      ...options,
    })
    onTestFinished(() => manager.dispose())
    await manager.recovered
    await tick()
    const pass = async (ms: number): Promise<void> => {
      clock.advance(ms)
      await tick()
    }
    return { manager, clock, errors, pass, notes: (owner?: string) => notesOf(manager, owner) }
  }
  const rows = (store: MemoryStore) => store.contents().featureStates

  it('M4: goes on with a file where it was, with what was not stored, and ends in its time', async () => {
    const log = folderWithLog('error 1\n')
    const store = memoryStore()
    const first = monitored({ store, monitors: { files: [log.logs] } })
    first.manager.monitor({ file: 'app.log' }, { match: 'error', seconds: 100, maxEvents: 3 })
    await first.pass(2 * BATCH)
    appendFileSync(log.file, 'fine\nerror 2\nerr')
    await first.pass(BATCH)
    // It has read the second line, and its event is not due yet.
    const copy = store.copy()
    appendFileSync(log.file, 'or 3\n')
    const { manager, pass, notes } = await restart(copy, { monitors: { files: [log.logs] } })
    await pass(2 * BATCH)
    expect(notes().map((text) => text.split('\n').filter((line) => line.startsWith('error')))).toEqual([
      ['error 1'],
      ['error 2', 'error 3'],
    ])
    expect(manager.monitors()).toMatchObject([{ events: 2, endsAt: 101_000 }])
    await pass(41_000 - 2 * BATCH)
    expect(notes().at(-1)).toContain('its time is over (100 s)')
    expect(rows(copy)).toEqual([])
  })

  it('F17: with a key is one, however often a host that starts it is started, and another one replaces it', async () => {
    const log = folderWithLog('error 1\n')
    const store = memoryStore()
    const monitors = { files: [log.logs] }
    const rule = { key: 'errors', match: 'error', seconds: 100 }
    const first = monitored({ store, monitors })
    const { id } = first.manager.monitor({ file: 'app.log' }, rule)
    await first.pass(2 * BATCH)
    const { manager, pass, notes } = await restart(store.copy(), { monitors })
    expect(manager.monitor({ file: 'app.log' }, rule)).toMatchObject({ id, key: 'errors', endsAt: 101_000 })
    appendFileSync(log.file, 'error 2\n')
    await pass(2 * BATCH)
    expect(notes()).toHaveLength(2)
    expect(manager.monitors()).toMatchObject([{ id, events: 2 }])
    const other = manager.monitor({ file: 'app.log' }, { ...rule, match: 'warning' })
    expect(manager.monitors().map((each) => each.id)).toEqual([other.id])
    expect(manager.monitor({ file: 'app.log' }, { ...rule, owner: 'other' }).id).not.toBe(other.id)
    expect(() => manager.monitor({ file: 'missing/../../x' }, { ...rule, match: 'x' })).toThrow(InvalidInputError)
    expect(manager.monitors()).toHaveLength(2)
    await pass(2 * BATCH)
    expect(notes()).toHaveLength(2)
    // One is that of the first process.
    expect(log.open()).toBe(3)
  })

  it('M4: reads again what it had counted and not shown, and what its batch has when its row is written', async () => {
    const log = folderWithLog()
    const store = memoryStore()
    const first = monitored({ store, monitors: { files: [log.logs] } })
    first.manager.monitor({ file: 'app.log' }, { match: 'error', owner: 'one' })
    await first.pass(BATCH)
    for (let n = 0; n < 18; n += 1) {
      appendFileSync(log.file, `error ${n}\n`)
      await first.pass(2 * BATCH)
    }
    const shown = first.notes('one').join('')
    await first.manager.stored()
    const counted = await restart(store.copy(), { monitors: { files: [log.logs] } })
    await counted.pass(2 * BATCH)
    const found = counted.notes('one').join('\n')
    expect(shown).not.toMatch(/error 1[67]/)
    expect(found).toMatch(/error 16\nerror 17/)
    await first.pass(10_000)
    appendFileSync(log.file, 'error 18\n')
    await first.pass(3 * BATCH)
    appendFileSync(log.file, 'error 19\n')
    await first.pass(BATCH)
    first.manager.releaseOwner('one', { to: 'two' })
    await first.manager.stored()
    const pending = await restart(store.copy(), { monitors: { files: [log.logs] } })
    expect(pending.notes('two').join('')).not.toContain('error 19')
    await pending.pass(2 * BATCH)
    expect(pending.notes('two').join('')).toContain('error 19')
  })

  it('M4: counts the bytes of a line that has not ended, whatever its characters', async () => {
    const log = folderWithLog()
    const store = memoryStore()
    const { manager, launch, append, pass } = monitored({ store, monitors: { files: [log.logs] } })
    await launch('a')
    manager.monitor({ taskId: 'a' }, { match: 'error' })
    manager.monitor({ file: 'app.log' }, { match: 'error' })
    await pass(BATCH)
    const whole = 'Größe\nerror 1\n'
    append('a', `${whole}für €5 🐝`)
    appendFileSync(log.file, `${whole}für €5 🐝`)
    await pass(2 * BATCH)
    await manager.stored()
    const positions = rows(store).map(({ data }) => (data as { position?: number }).position)
    expect(positions).toEqual([Buffer.byteLength(whole), Buffer.byteLength(whole)])
  })

  it('F17: stores an event and its position in one write', async () => {
    const log = folderWithLog()
    const store = memoryStore()
    const { manager, pass } = monitored({ store, monitors: { files: [log.logs] } })
    manager.monitor({ file: 'app.log' }, { match: 'error', maxEvents: 2 })
    await pass(BATCH)
    const writes: string[][] = []
    const write = store.write.bind(store)
    store.write = (changes) => {
      writes.push(changes.map((change) => ('put' in change ? change.table : `-${change.table}`)))
      return write(changes)
    }
    appendFileSync(log.file, 'fine\n')
    await pass(BATCH)
    expect(writes).toEqual([])
    appendFileSync(log.file, 'error\n')
    await pass(2 * BATCH)
    expect(writes).toEqual([['tasks', 'featureStates']])
    appendFileSync(log.file, 'error\n')
    await pass(2 * BATCH)
    expect(writes[1]).toEqual(['-featureStates', 'tasks'])
  })

  it('F17: begins with the new file when it was replaced meanwhile', async () => {
    const log = folderWithLog('error 1\nfine\n')
    const store = memoryStore()
    const first = monitored({ store, monitors: { files: [log.logs] } })
    first.manager.monitor({ file: 'app.log' }, { match: 'error' })
    await first.pass(2 * BATCH)
    renameSync(log.file, `${log.file}.1`)
    writeFileSync(log.file, 'error 2\nsomething longer\n')
    const { pass, notes } = await restart(store.copy(), { monitors: { files: [log.logs] } })
    await pass(2 * BATCH)
    expect(notes()[1]).toContain('\nerror 2\n')
  })

  it('F17: waits for a file that is missing, and ends when it may not be read any longer', async () => {
    const log = folderWithLog('error 1\n')
    const store = memoryStore()
    const first = monitored({ store, monitors: { files: [log.logs] } })
    first.manager.monitor({ file: log.file }, { match: 'error' })
    await first.pass(2 * BATCH)
    const copy = store.copy()
    const refused = await restart(store.copy())
    await refused.pass(5500)
    expect(refused.notes().at(-1)).toContain('expected a file within monitors.files (none)')
    renameSync(log.file, `${log.file}.1`)
    const { pass, notes, manager } = await restart(copy, { monitors: { files: [log.logs] } })
    await pass(1000)
    renameSync(`${log.file}.1`, log.file)
    appendFileSync(log.file, 'error 2\n')
    await pass(3 * BATCH)
    expect(manager.monitors()).toHaveLength(1)
    expect(notes().slice(1).join()).toMatch(/\nerror 2\n/)
    expect(notes().slice(1).join()).not.toMatch(/error 1/)
  })

  it('F17: of a task goes on with a task that is run again, from the beginning of its output', async () => {
    const store = memoryStore()
    const first = monitored({ store })
    await first.launch('a', { retry: { attempts: 2, on: ['interrupted'] } })
    await first.launch('b')
    first.manager.monitor({ taskId: 'a' }, { match: 'error' })
    first.manager.monitor({ taskId: 'b' }, { match: 'error', owner: 'other' })
    first.append('a', 'error 1\n')
    await first.pass(BATCH)
    const later = await restart(store.copy(), {
      findRunner: () => (input, context) => {
        context.append('error 2\n')
        return untilAborted(input, context)
      },
    })
    await later.pass(BATCH)
    expect(later.notes()).toHaveLength(2)
    expect(later.notes()[1]).toContain('1 matching line(s).\n```\nerror 2\n')
    expect(later.notes('other')[0]).toMatch(/The monitor has ended: its task has ended\.$/)
  })

  it('M3, K13: reports what it has matched when its process is closed, and its end when its task has not survived', async () => {
    const store = memoryStore()
    const first = monitored({ store })
    await first.launch('a')
    first.manager.monitor({ taskId: 'a' }, { match: 'error' })
    first.append('a', 'error\n')
    await first.manager.dispose()
    const { notes, manager } = await restart(store.copy())
    expect(notes()).toEqual([
      expect.stringMatching(/error\n```\nThe output goes on at byte 6\.$/),
      expect.stringMatching(/0 matching line\(s\)\..*The monitor has ended: its task has ended/),
    ])
    expect(manager.monitors()).toEqual([])
  })

  it('M3: of a task that dispose has cancelled ends, and that is owed once', async () => {
    const store = memoryStore()
    const first = monitored({ store })
    await first.launch('a')
    first.manager.monitor({ taskId: 'a' }, { match: 'error' })
    first.append('a', 'error\n')
    await first.manager.dispose({ cancel: true })
    const { notes, manager } = await restart(store.copy())
    expect(notes()).toEqual([expect.stringMatching(/error\n```\n.*The monitor has ended: its task has ended/)])
    expect(manager.monitors()).toEqual([])
    const again = await restart(store.copy())
    expect(again.notes()).toHaveLength(1)
  })

  it('F17: of a run passes to the owner of its task', async () => {
    const log = folderWithLog()
    const store = memoryStore()
    const first = monitored({ store, monitors: { files: [log.logs] } })
    await first.launch('parent', { owner: 'one' })
    first.manager.monitor({ file: log.file }, { match: 'error', owner: 'run:parent' })
    await first.manager.stored()
    const { manager } = await restart(store.copy(), { monitors: { files: [log.logs] } })
    expect(manager.monitors().map(({ owner }) => owner)).toEqual(['one'])
  })

  it('F17: has its row while it runs, also when its host is disposed, and none when it has ended or its owner has gone', async () => {
    const log = folderWithLog()
    const store = memoryStore()
    const { manager } = monitored({ store, monitors: { files: [log.logs] } })
    const { cancel } = manager.monitor({ file: log.file }, { match: 'error' })
    manager.monitor({ file: log.file }, { match: 'error', owner: 'gone' })
    manager.monitor({ file: log.file }, { match: 'error', owner: 'passed' })
    manager.monitor({ file: log.file }, { match: 'error', owner: 'kept' })
    await manager.stored()
    expect(rows(store)).toHaveLength(4)
    cancel()
    manager.releaseOwner('gone')
    manager.releaseOwner('passed', { to: 'heir' })
    await tick()
    await manager.stored()
    expect(rows(store).map(({ data }) => (data['input'] as { owner: string }).owner)).toEqual(['heir', 'kept'])
    const copy = store.copy()
    await manager.dispose()
    expect(rows(store.copy())).toHaveLength(2)
    expect((await restart(copy, { monitors: { files: [log.logs] } })).manager.monitors()).toHaveLength(2)
  })

  it('F17: reports and drops what it cannot read, and goes on with the others', async () => {
    const log = folderWithLog('error\n')
    const store = memoryStore()
    const first = monitored({ store, monitors: { files: [log.logs] } })
    const good = first.manager.monitor({ file: log.file }, { match: 'error' })
    await first.manager.stored()
    const { persistence } = first.manager.registry
    const [row] = rows(store)
    const bad = [{}, { ...row?.data, position: -1 }, { ...row?.data, input: { match: '(', file: 'x', taskId: 'y' } }]
    bad.forEach((data, index) => persistence?.keepState('monitors', `bad-${index}`, data))
    persistence?.keepState('monitors', 'pattern', { ...row?.data, input: { file: 'app.log', match: { regex: '(' } } })
    await first.manager.stored()
    const copy = store.copy()
    const { manager, errors } = await restart(copy, { monitors: { files: [log.logs] } })
    expect(manager.monitors().map(({ id }) => id)).toEqual([good.id])
    expect(errors).toHaveLength(4)
    expect(String(errors[1])).toContain('position: got -1, expected at least 0')
    await manager.stored()
    expect(rows(copy)).toHaveLength(1)
  })
})

it('F17: reads no file of a folder that was replaced by a link while it was opened', () => {
  const { folder, open } = folderWithLog()
  for (const name of ['logs/d', 'out']) mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, 'logs/d/a.log'), 'inside\n')
  writeFileSync(join(folder, 'out/a.log'), 'outside\n')
  const real = fs.realpathSync
  let isReplaced = false
  const spy = vi.spyOn(fs, 'realpathSync').mockImplementation(((path: string) => {
    const found = real(path)
    if (path.endsWith('a.log') && !isReplaced) {
      isReplaced = true
      renameSync(join(folder, 'logs/d'), join(folder, 'logs/before'))
      symlinkSync('../out', join(folder, 'logs/d'))
    }
    return found
  }) as never)
  onTestFinished(() => spy.mockRestore())
  expect(() => new FollowedFile('d/a.log', [join(folder, 'logs')])).toThrow('a file within monitors.files')
  expect(isReplaced).toBe(true)
  expect(open()).toBe(0)
})
