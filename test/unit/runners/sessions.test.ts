/** Programs whose sessions are kept, and resumed when a task is continued: U2. The programs are real. */
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, processRunner, type ProcessRunnerOptions } from '../../../src/index.js'
import { omitUndefined } from '../../../src/data/omit-undefined.js'
import { agentConfigSchema } from '../../../src/protocol/agent-config.js'
import { printedText } from '../../../src/runners/printed-session.js'
import { memoryStore, sqliteStore } from '../../../src/store/index.js'
import { createRunContext, runInput } from '../../support/run-context.js'

const program = fileURLToPath(new URL('../../support/programs/session-program.mjs', import.meta.url))
const page = readFileSync(new URL('../../../docs/subagents.md', import.meta.url), 'utf8')

function folder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-sessions-')))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

type Options = Partial<ProcessRunnerOptions>
const resume = ['{session}', '{message}']

/** The options that run the program of the tests as one of its agents. */
const options = (agent: string, args: readonly string[], more: Options = {}): ProcessRunnerOptions => ({
  command: process.execPath,
  args: [program, agent, ...args],
  ...more,
})

const run = async (given: ProcessRunnerOptions, context = createRunContext()) => {
  const output = await Promise.resolve(processRunner(given).run(runInput('the goal'), context)).catch(
    (error: unknown) => error as Error,
  )
  return { output, context, sessions: context.sessions }
}

describe('a field of what is printed', () => {
  const lines = ['{"type":"a","x":"1"}', 'text', '{"type":"b","x":"2"}', '{"type":"a","y":{"z":"3"}}', '{"type":"a"']
  it.each([
    ['json:id', '{"id":"one"}', 'one'],
    ['json:a.b', '{\n  "a": { "b": "two" }\n}\n', 'two'],
    ['json:id', 'a warning\n{"id":"last line"}\n', 'last line'],
    ['json:id', '{"id":7}', undefined],
    ['json:id', 'null', undefined],
    ['json:a.b', '{"a":null}', undefined],
    ['json:constructor', '{}', undefined],
    ['json:id', '', undefined],
    ['jsonl:a/x', lines.join('\n'), '1'],
    ['jsonl:a/y.z', lines.join('\r\n'), '3'],
    ['jsonl:b/x', lines.join('\n'), '2'],
    ['jsonl:c/x', lines.join('\n'), undefined],
    ['jsonl:x/type', '{"type":"y","x":"x"}', undefined],
    ['jsonl:a[x=1]/x', lines.join('\n'), '1'],
    ['jsonl:a[y.z=3]/y.z', lines.join('\n'), '3'],
    ['jsonl:a[x=2]/x', lines.join('\n'), undefined],
    ['jsonl:a[x=1][y.z=3]/x', lines.join('\n'), undefined],
    ['jsonl:a[ok=true]/x', '{"type":"a","ok":true,"x":"1"}', '1'],
  ])('U2: %s of %j is %j', (field, printed, expected) => {
    expect(printedText(field, printed)).toBe(expected)
  })
})

describe('the session of a program', () => {
  it('U2: is noted when its line is printed, with the working directory; the newest id counts', async () => {
    const cwd = folder()
    const ids = ['one', '-bad', 'two', 'two', 'x y'].map((id) => JSON.stringify({ type: 'init', id }))
    const { sessions } = await run(options('prints', ids, { cwd, session: { from: 'jsonl:init/id', resume } }))
    expect(sessions).toEqual([
      { id: 'one', cwd },
      { id: 'two', cwd },
    ])
  })

  it('U2: is kept of a program that fails, of one that is stopped, and from a line of 100,000 characters', async () => {
    const json = JSON.stringify({ id: 's-1', result: 'r' })
    const failed = await run(options('fails', [json], { session: { from: 'json:id', resume, result: 'json:result' } }))
    expect(failed.output).toMatchObject({ code: 'PROCESS_FAILED' })
    expect(failed.sessions).toEqual([{ id: 's-1', cwd: process.cwd() }])
    const context = createRunContext()
    const line = JSON.stringify({ type: 'init', id: 's-2' })
    const ended = run(options('hangs', [line], { session: { from: 'jsonl:init/id', resume } }), context)
    await context.printed('s-2')
    expect(context.sessions).toEqual([{ id: 's-2', cwd: process.cwd() }])
    context.controller.abort()
    expect((await ended).output).toMatchObject({ name: 'AbortError' })
    const long = JSON.stringify({ type: 'init', pad: 'p'.repeat(100_000), id: 's-3' })
    const wide = await run(options('prints', [long], { session: { from: 'jsonl:init/id', resume } }))
    expect(wide.sessions.map(({ id }) => id)).toEqual(['s-3'])
  })

  it('U2: leaves the result as parse says, unless the field of the result is there', async () => {
    const json = '{"id":"s-1","text":"the answer"}'
    const outputOf = async (more: Options) => (await run(options('prints', [json], more))).output
    expect(await outputOf({ session: { from: 'json:id', resume } })).toEqual({ final_message: json })
    const result = 'json:text'
    expect(await outputOf({ session: { from: 'json:id', resume, result } })).toEqual({ final_message: 'the answer' })
    const absent = { from: 'json:id', resume, result: 'json:nothing' }
    expect(await outputOf({ parse: 'json', session: absent })).toEqual({ emitted_vars: JSON.parse(json) as unknown })
  })

  it('U2: takes the place of all arguments when a task is continued, in the folder of the session', async () => {
    const cwd = folder()
    const context = {
      ...createRunContext(),
      previous: { id: 'a', goal: 'g', status: 'completed', session: { id: 's-1', cwd } } as const,
    }
    const session = {
      from: 'json:id',
      resume: [program, 'prints', '{session}', '[{message}]', '{goal} {name} {id} {x}'],
    }
    const { output } = await run({ ...options('fails', []), cwd: '/', session }, context)
    expect(output).toEqual({ final_message: 's-1\n[the goal]\nthe goal agent agent-1 {x}' })
    // Without a continuation these are no placeholders.
    const first = await run(options('prints', ['{session} {message}'], { session }))
    expect(first.output).toEqual({ final_message: '{session} {message}' })
  })

  it('U2: is needed to continue a task, and its folder too', () => {
    const previous = { id: 'a', goal: 'g', status: 'completed' } as const
    const why = (given: Options, session?: { id: string; cwd?: string }) =>
      processRunner(options('prints', [], given)).whyNotContinue?.({ ...previous, ...(session && { session }) })
    const session = { from: 'json:id', resume }
    expect(why({})).toBe('its program has no setting `session`')
    expect(why({}, { id: 's' })).toBe('its program has no setting `session`')
    expect(why({ session })).toBe('its run has named no session')
    expect(why({ session }, { id: 's', cwd: '/nowhere/at/all' })).toBe(
      'its working directory "/nowhere/at/all" is gone',
    )
    expect(why({ session }, { id: 's', cwd: program })).toBe(`its working directory ${JSON.stringify(program)} is gone`)
    expect(why({ session }, { id: 's', cwd: folder() })).toBeUndefined()
    expect(why({ session }, { id: 's' })).toBeUndefined()
  })

  it.each([
    [{ from: 'id', resume }, 'options.session.from'],
    [{ from: 'jsonl:id', resume }, 'options.session.from'],
    [{ from: 'json:id', resume: ['{session}'] }, 'options.session.resume'],
    [{ from: 'json:id', resume: ['{message}'] }, 'options.session.resume'],
    [{ from: 'json:id', resume: ['{session}{message}\0'] }, 'options.session.resume[0]'],
    [{ from: 'json:id', resume, result: 'text' }, 'options.session.result'],
    [{ from: 'json:id', resume, form: 1 }, 'options.session.form'],
  ])('U2: %j is refused at %s', (session, field) => {
    expect(() => processRunner({ command: 'x', session })).toThrow(`${field}: got`)
  })
})

describe.skipIf(process.platform === 'win32')('the documented agents', () => {
  /** The subagents of the configuration in docs/subagents.md. */
  const block = /```json\n(\{\n {2}"subagents": [^]*?)```/.exec(page)?.[1] ?? ''
  const config = agentConfigSchema.parse(JSON.parse(block))

  it.each(['claude', 'codex', 'gemini'])(
    'U2: %s continues its session, in its folder, after a restart too',
    async (name) => {
      const { command, args, agent, access, trust, session } = config.subagents.find((each) => each.name === name)!
      expect(command).toBe(name)
      const standIn = join(folder(), name)
      writeFileSync(standIn, `#!/bin/sh\nexec ${process.execPath} ${program} ${name} "$@"\n`, { mode: 0o700 })
      const how = agent === undefined ? { args, session: session! } : omitUndefined({ agent, access, trust })
      const runner = (cwd: string) => processRunner({ command: standIn, cwd, ...how })
      const cwd = folder()
      const store = memoryStore()
      const first = new AsyncTaskManager({ store })
      onTestFinished(() => first.dispose())
      first.launch({ id: 'a', subagentName: name, goalPrompt: '--first', owner: 'alice' }, runner(cwd))
      await first.waitFor(['a'])
      expect(first.getTask('a')).toMatchObject({ output: { final_message: '--first' }, session: { cwd } })
      await first.stored()
      const second = new AsyncTaskManager({ store: store.copy(), findRunner: () => runner(folder()) })
      onTestFinished(() => second.dispose())
      await second.recovered
      const { id } = second.continueTask('a', '--second {goal}')
      const { settled } = await second.waitFor([id])
      expect(settled[0]).toMatchObject({
        owner: 'alice',
        status: 'completed',
        output: { final_message: '--first | --second {goal}' },
        session: second.getTask('a')?.session,
      })
      const third = second.continueTask(id, 'third')
      expect((await second.waitFor([third.id])).settled[0]?.output?.final_message).toMatch(/ \| third$/)
    },
  )
})

describe.skipIf(process.platform === 'win32')('a program that survives its host', () => {
  it('U2: has its session noted, and is resumed with it', async () => {
    const file = join(folder(), 'tasks.db')
    const cwd = folder()
    const session = { from: 'json:id', resume: [program, 'prints', '{"id":"s-2"}', '{session} {message}'] }
    const runner = processRunner(options('prints', ['{"id":"s-1"}'], { cwd, survivesHost: true, session }))
    const manager = new AsyncTaskManager({ store: sqliteStore(file) })
    onTestFinished(() => manager.dispose())
    manager.launch({ id: 'a', subagentName: 's', goalPrompt: 'g' }, runner)
    await manager.waitFor(['a'])
    expect(manager.getTask('a')?.session).toEqual({ id: 's-1', cwd })
    const { id } = manager.continueTask('a', 'more')
    await manager.waitFor([id])
    expect(manager.getTask(id)?.output).toEqual({ final_message: '{"id":"s-2"}\ns-1 more' })
  })
})
