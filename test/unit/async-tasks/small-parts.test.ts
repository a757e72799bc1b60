/** Parts that others build on: watchers, push subscribers, listed ids, the timer of deadlines, the files of a run. */
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { DeadlineTimer } from '../../../src/features/limits/deadline-timer.js'
import { ListedIds } from '../../../src/features/task-ids/listed-ids.js'
import { OpenQuestions } from '../../../src/features/questions/open-questions.js'
import { PrunedTasks } from '../../../src/features/history/pruned-tasks.js'
import { PushSubscribers } from '../../../src/features/delivery/push-subscribers.js'
import { folderName, RunFiles } from '../../../src/features/output/run-files.js'
import { TaskWatchers } from '../../../src/async-tasks/task-watchers.js'
import { QuestionWithdrawnError } from '../../../src/errors.js'
import { createManualClock } from '../../../src/testing/index.js'

const entryOf = (id: string): TaskEntry => ({ record: { id, owner: 'main', subagentName: 'agent' } }) as TaskEntry

describe('the watchers of tasks', () => {
  it('A10: are called for their own task, until they are removed, and all of them at the end', () => {
    const watchers = new TaskWatchers()
    const [a, b] = [entryOf('a'), entryOf('b')]
    const calls: string[] = []
    const note = (name: string) => () => void calls.push(`${name} ${watchers.isClosed}`)
    const [first, second, other] = [note('first'), note('second'), note('other')]
    watchers.add(a, first)
    watchers.add(a, second)
    watchers.add(b, other)
    watchers.changed(a)
    watchers.ended(b)
    watchers.remove(a, second)
    watchers.remove(b, second)
    watchers.changed(a)
    expect(calls.splice(0)).toEqual(['first false', 'second false', 'other false', 'first false'])
    watchers.remove(b, other)
    watchers.changed(b)
    watchers.add(b, second)
    watchers.disposed()
    expect(calls).toEqual(['first true', 'second true'])
  })
})

describe('push subscribers', () => {
  it('are there until the last of them has gone, or its owner; an earlier one removes no later one', () => {
    const subscribers = new PushSubscribers()
    const [first, second] = [subscribers.add('main'), subscribers.add('main')]
    first()
    first()
    expect(subscribers.has('main')).toBe(true)
    subscribers.released('main')
    expect(subscribers.has('main')).toBe(false)
    const third = subscribers.add('main')
    second()
    expect(subscribers.has('main')).toBe(true)
    third()
    expect(subscribers.has('main')).toBe(false)
    subscribers.noteTurn('main')
    expect([subscribers.has('main'), subscribers.has('other')]).toEqual([true, false])
  })
})

describe('the short ids that were shown', () => {
  it('A4: mean the last task that was shown under them, and go with it', () => {
    const listed = new ListedIds()
    listed.set('abcdefgh-1', 'abcdefgh')
    listed.set('abcdefgh', 'abcdefgh')
    expect([listed.idOf('abcdefgh'), listed.shortOf('abcdefgh-1')]).toEqual(['abcdefgh', 'abcdefgh'])
    listed.pruned(entryOf('abcdefgh-1'))
    expect([listed.idOf('abcdefgh'), listed.shortOf('abcdefgh-1')]).toEqual(['abcdefgh', undefined])
    listed.set('abcdefgh', 'longer')
    expect([listed.idOf('abcdefgh'), listed.idOf('longer')]).toEqual([undefined, 'abcdefgh'])
    listed.pruned(entryOf('abcdefgh'))
    listed.pruned(entryOf('unknown'))
    expect([listed.idOf('longer'), listed.shortOf('abcdefgh')]).toEqual([undefined, undefined])
  })
})

describe('the tasks that were pruned', () => {
  it('A7: are the latest thousand; one that is pruned again is the latest', () => {
    const pruned = new PrunedTasks()
    for (let nth = 0; nth < 1000; nth += 1) pruned.pruned(entryOf(`t${nth}.`), nth)
    pruned.pruned(entryOf('t0.'), 5_000)
    expect(pruned.find('t1.')).toMatchObject({ id: 't1.' })
    pruned.pruned(entryOf('new'), 5_001)
    expect([pruned.find('t0.')?.prunedAt, pruned.find('t1.'), pruned.find('t2.')?.id]).toEqual([
      5_000,
      undefined,
      't2.',
    ])
    expect([pruned.find(''), pruned.find('t'), pruned.find('ne')?.id]).toEqual([undefined, undefined, 'new'])
    expect([pruned.find('new', 'other'), pruned.find('ne', 'main')?.id]).toEqual([undefined, 'new'])
  })
})

describe('the open questions of a run', () => {
  it('F6: are answered once, and withdrawn when the record has them no longer', async () => {
    const questions = new OpenQuestions()
    const ended: unknown[] = []
    for (const id of ['q1', 'q2', 'q3']) {
      questions.wait(id).then(
        (answer) => ended.push([id, answer]),
        (error: unknown) => ended.push([id, error instanceof QuestionWithdrawnError]),
      )
    }
    questions.answer('q2', { action: 'decline' } as never)
    questions.withdraw({ id: 'a', questions: [{ id: 'q1' }] } as never)
    await new Promise((resolve) => setImmediate(resolve))
    expect(ended.splice(0)).toEqual([
      ['q2', { action: 'decline' }],
      ['q3', true],
    ])
    questions.answer('q3', { action: 'decline' } as never)
    questions.withdraw({ id: 'a' })
    await new Promise((resolve) => setImmediate(resolve))
    expect(ended).toEqual([['q1', true]])
  })
})

describe('the timer of deadlines', () => {
  it('is one: an earlier time replaces a later one, and a later one waits until it has fired', () => {
    const clock = createManualClock(1_000)
    const due = vi.fn()
    const timer = new DeadlineTimer(clock, due)
    const label = () => ({ name: 'd' })
    const set = (at: number | undefined) => timer.set(at, label)
    set(1_500)
    set(1_200)
    set(1_800)
    expect(clock.pending).toBe(1)
    clock.advance(199)
    expect(due).not.toHaveBeenCalled()
    clock.advance(1)
    expect(due).toHaveBeenCalledTimes(1)
    expect(clock.pending).toBe(0)
    set(1_800)
    set(undefined)
    set(undefined)
    expect(clock.pending).toBe(0)
    set(1_100)
    clock.advance(0)
    expect(due).toHaveBeenCalledTimes(2)
  })
})

describe('the files of a run', () => {
  const setUp = () => {
    const folder = fs.mkdtempSync(join(tmpdir(), 'run-files-'))
    onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }))
    const remove = vi.spyOn(fs, 'rm').mockImplementation(() => undefined)
    onTestFinished(() => remove.mockRestore())
    /** The folder is removed at once where a program is ended, and later otherwise. */
    const isThere = (): boolean =>
      fs.existsSync(folder) &&
      !remove.mock.calls.some(([path, options]) => path === folder && typeof options === 'object')
    const program = vi.fn(() => undefined)
    return { files: new RunFiles(folder, program), isThere, program }
  }
  const RETURNED = { type: 'returned', value: {} } as const

  it.each(['the run settles', 'its end is stored'])('K6: go when %s last, and not before', (last) => {
    const { files, isThere, program } = setUp()
    const steps = [() => files.setStored(), () => files.setSettled(RETURNED, false)]
    if (last === 'its end is stored') steps.reverse()
    steps[0]!()
    expect(isThere()).toBe(true)
    steps[1]!()
    expect(isThere()).toBe(false)
    expect(program).not.toHaveBeenCalled()
  })

  it.each([
    ['a run that did not stop', { type: 'abandoned' }, false, true],
    ['a run that was to go on, and was not followed', { type: 'skipped' }, true, true],
    ['a run that never started', { type: 'skipped' }, false, false],
    ['a run that was followed to its end', RETURNED, true, false],
  ] as const)('K6: %s', (_what, outcome, isResumed, ends) => {
    const { files, isThere, program } = setUp()
    files.setSettled(outcome, isResumed)
    expect(program).toHaveBeenCalledTimes(ends ? 1 : 0)
    expect(isThere()).toBe(!ends)
  })

  it('K6: have a name of their own for each launch and each attempt, whatever characters the id has', () => {
    const names = [
      folderName({ id: 'a', launchedAt: 1 }),
      folderName({ id: 'a', launchedAt: 2 }),
      folderName({ id: 'a', launchedAt: 1, attempt: 2 }),
      folderName({ id: '../\uD800', launchedAt: 1 }),
    ]
    expect(new Set(names).size).toBe(4)
    expect(folderName({ id: 'a', launchedAt: 1, attempt: 1 })).toBe(names[0])
    for (const name of names) expect(name).toMatch(/^[0-9a-f]{32}-\d+-\d+$/)
  })
})
