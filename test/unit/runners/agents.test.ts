/** Coding agents as programs: what a preset reads from their output. The lines are those of the real programs (`test/agents`). */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, processRunner, type ProcessRunnerOptions } from '../../../src/index.js'
import { InvalidInputError } from '../../../src/errors.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { createRunContext, runInput } from '../../support/run-context.js'

/** A program that prints lines and its arguments, and exits. */
function standIn(lines: readonly (object | string)[], exitCode = 0, stderr = ''): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-agents-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  writeFileSync(join(folder, 'lines'), `${text}\n`)
  writeFileSync(join(folder, 'stderr'), stderr)
  const script = `#!/bin/sh\nprintf '%s\\n' "$@" > ${folder}/args\ncat ${folder}/lines\ncat ${folder}/stderr >&2\nexit ${exitCode}\n`
  writeFileSync(join(folder, 'agent'), script, { mode: 0o700 })
  return join(folder, 'agent')
}

const run = async (options: ProcessRunnerOptions) => {
  const context = createRunContext()
  const end = await Promise.resolve(processRunner(options).run(runInput('the goal'), context)).catch(
    (error: unknown) => error as Error,
  )
  return { end, context }
}

const init = { type: 'system', subtype: 'init', session_id: 's-1' }
const good = {
  type: 'result',
  subtype: 'success',
  is_error: false,
  result: 'done',
  total_cost_usd: 0.5,
  usage: { input_tokens: 100, output_tokens: 20 },
}

describe.skipIf(process.platform === 'win32')('Claude Code', () => {
  const claude = (lines: readonly object[], exitCode = 0, more: Partial<ProcessRunnerOptions> = {}) =>
    run({ command: standIn([init, ...lines], exitCode), agent: 'claude-code', ...more })

  it('completes with the last result, its usage, and what was denied', async () => {
    const denial = (tool_name: string) => ({ tool_name, tool_use_id: 'x', tool_input: {} })
    const last = { ...good, result: 'more', permission_denials: ['Write', 'Bash', 'Write'].map(denial) }
    const { end, context } = await claude([good, last])
    expect(end).toEqual({
      final_message: 'more',
      denied: ['Write', 'Bash'],
      usage: { input_tokens: 100, output_tokens: 20, cost_usd: 0.5 },
    })
    expect(context.output()).toContain('[denied: Write, Bash]')
    expect(context.sessions).toMatchObject([{ id: 's-1' }])
  })

  it('fails with the reason first, whatever the exit code is', async () => {
    const bad = { ...good, is_error: true, result: 'API Error: 400 no such model' }
    for (const exitCode of [0, 1]) {
      const { end } = await claude([bad], exitCode)
      expect(end).toMatchObject({ name: 'ProcessError', code: 'AGENT_FAILED', exitCode })
      expect((end as Error).message).toMatch(/^API Error: 400 no such model\. Command .* ended with exit code/)
    }
    const { end } = await claude([{ ...bad, result: 'API Error: Request rejected (429)' }], 1)
    expect(end).toMatchObject({ code: 'RATE_LIMITED' })
  })

  it('fails when its turns are used up, and when it prints no result', async () => {
    const { result: _, ...line } = good
    const used = await claude([{ ...line, subtype: 'error_max_turns', is_error: true, errors: ['Reached 1', 'End'] }])
    expect((used.end as Error).message).toMatch(/^Reached 1; End\. /)
    const none = await claude([])
    expect(none.end).toMatchObject({ code: 'AGENT_FAILED' })
    expect((none.end as Error).message).toContain('ended with exit code 0 and printed no result')
  })

  it('offers each result as it comes, however long it is, because it may go on after it', async () => {
    const long = 'x'.repeat(100_000)
    const results = [good, { ...good, is_error: true, result: 'bad' }, { ...good, result: long }]
    const { context } = await claude([results[0]!])
    expect(context.offered).toMatchObject([{ final_message: 'done', usage: { input_tokens: 100 } }])
    expect((await claude([{ type: 'assistant', result: 'no' }, results[1]!])).context.offered).toEqual([])
    expect((await claude(results)).context.offered.at(-1)).toMatchObject({ final_message: long })
  })

  it('completes with the printed result when its deadline comes, and its process is ended', async () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ clock })
    onTestFinished(() => manager.dispose())
    const command = standIn([init, good])
    const waits = readFileSync(command, 'utf8').replace('exit 0', () => 'echo $$ > "$0.pid"; exec sleep 600')
    writeFileSync(command, waits, { mode: 0o700 })
    const { id } = manager.launch(
      { subagentName: 's', goalPrompt: 'g', timeoutMs: 60_000 },
      processRunner({ command, agent: 'claude-code' }),
    )
    await expect.poll(() => manager.readOutput(id)?.text).toContain('"result":"done"')
    await expect.poll(() => existsSync(`${command}.pid`) && readFileSync(`${command}.pid`, 'utf8')).toMatch(/\d\n/)
    clock.advance(60_000)
    await manager.waitFor([id])
    expect(manager.getTask(id)).toMatchObject({
      status: 'completed',
      output: { final_message: 'done', terminate_reason: 'TASK_TIMEOUT' },
    })
    const pid = Number(readFileSync(`${command}.pid`, 'utf8'))
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  })

  it('completes when a result follows a failed one', async () => {
    expect((await claude([{ ...good, is_error: true }, good])).end).toMatchObject({ final_message: 'done' })
  })

  it.each([
    [undefined, 'dontAsk'],
    ['read', 'dontAsk'],
    ['write', 'acceptEdits'],
    ['full', 'bypassPermissions'],
  ] as const)('with access %s, its permission mode is %s', async (access, mode) => {
    const context = createRunContext()
    const lines = [init, good]
    const command = standIn(lines)
    const options = { command, agent: 'claude-code', args: ['--model', 'x'], ...(access && { access }) } as const
    await processRunner(options).run(runInput('--goal'), context)
    const args = readFileSync(join(command, '../args'), 'utf8').trim().split('\n')
    expect(args.slice(0, 4)).toEqual(['-p', '--output-format', 'stream-json', '--verbose'])
    expect(args.slice(4)).toEqual(['--permission-mode', mode, '--model', 'x', '--', '--goal'])
  })
})

describe.skipIf(process.platform === 'win32')('Codex', () => {
  const started = { type: 'thread.started', thread_id: 't-1' }
  const codex = (lines: readonly object[], exitCode = 0, stderr = 'Reading additional input from stdin...\n') =>
    run({ command: standIn([started, ...lines], exitCode, stderr), agent: 'codex' })
  const message = (text: string) => ({ type: 'item.completed', item: { id: 'i', type: 'agent_message', text } })
  const completed = { type: 'turn.completed', usage: { input_tokens: 300, cached_input_tokens: 30, output_tokens: 60 } }

  it('completes with its last message, and the usage of the whole session', async () => {
    const other = { type: 'item.completed', item: { id: 'i', type: 'reasoning', text: 'thinking' } }
    const { end } = await codex([message('one'), message('two'), other, completed])
    expect(end).toEqual({
      final_message: 'two',
      usage: { input_tokens: 300, cached_input_tokens: 30, output_tokens: 60, of: 'session' },
    })
    expect((await codex([completed])).end).toMatchObject({ final_message: '' })
  })

  it('shows the reason of turn.failed, not stderr, also when it is JSON', async () => {
    const fails = (reason: string) => ({ type: 'turn.failed', error: { message: reason } })
    for (const reason of ['too bad', '{"error":{"message":"too bad","code":"400"}}']) {
      const { end } = await codex([message('before'), fails(reason)], 1)
      expect(end).toMatchObject({ code: 'AGENT_FAILED' })
      expect((end as Error).message).toMatch(/^too bad\. Command/)
    }
    expect((await codex([fails('last status: 429 Too Many Requests')], 0)).end).toMatchObject({ code: 'RATE_LIMITED' })
  })

  it('says which commands its sandbox has stopped, each once and in order', async () => {
    const command = (name: string, status: string, aggregated_output: string) => ({
      type: 'item.completed',
      item: { id: 'i', type: 'command_execution', command: name, aggregated_output, exit_code: 1, status },
    })
    const { end, context } = await codex([
      command('touch a', 'failed', 'touch: a: Read-only file system\n'),
      command('make', 'failed', 'no rule to make target\n'),
      command('grep x', 'completed', 'Read-only file system\n'),
      command(`touch ${'b'.repeat(1000)}`, 'failed', 'Operation not permitted'),
      command('touch a', 'failed', 'touch: a: Read-only file system\n'),
      message('done'),
      completed,
    ])
    expect(end).toMatchObject({ final_message: 'done', denied: ['touch a', `touch ${'b'.repeat(294)}`] })
    expect(context.output()).toContain('[denied: touch a, touch b')
    expect((await codex([command('make', 'failed', 'no rule'), message('x'), completed])).end).not.toHaveProperty(
      'denied',
    )
  })

  it('names the option `trust` in a folder that it does not trust', async () => {
    const { end } = await codex([], 1, 'Not inside a trusted directory and --skip-git-repo-check was not specified.\n')
    expect((end as Error).message).toContain('The option `trust: true`')
  })
})

describe.skipIf(process.platform === 'win32')('Gemini CLI', () => {
  const started = { type: 'init', session_id: '51375ab8-11dd-478d-b81b-f33558adc4d6', model: 'gemini-2.5-flash' }
  const asked = { type: 'message', role: 'user', content: 'the goal' }
  const part = (content: string) => ({ type: 'message', role: 'assistant', content, delta: true })
  const tool = { type: 'tool_use', tool_name: 'run_shell_command', tool_id: 't', parameters: { command: 'true' } }
  const stats = { total_tokens: 120, input_tokens: 100, output_tokens: 20, cached: 7, input: 93, tool_calls: 0 }
  const success = { type: 'result', status: 'success', stats }
  const gemini = (lines: readonly (object | string)[], exitCode = 0) =>
    run({ command: standIn([started, asked, ...lines], exitCode), agent: 'gemini' })

  it('joins the parts of its last message', async () => {
    const { end, context } = await gemini([
      part('I will '),
      part('look.'),
      tool,
      part('It '),
      'a note',
      part('is.'),
      success,
    ])
    expect(end).toEqual({
      final_message: 'It is.',
      usage: { input_tokens: 100, cached_input_tokens: 7, output_tokens: 20 },
    })
    expect(context.sessions).toMatchObject([{ id: started.session_id }])
  })

  // It exits with the HTTP status modulo 256: 400 gives 144, and 429 gives 173.
  it.each([
    [400, 'AGENT_FAILED'],
    [429, 'RATE_LIMITED'],
  ])('fails for the status %i with the reason, and its session is known', async (status, code) => {
    const refusal = { error: { code: status, message: 'the scripted model refuses', status: 'INVALID_ARGUMENT' } }
    const message = `[API Error: ${JSON.stringify(refusal)}]`
    const failed = { type: 'result', status: 'error', error: { type: 'Error', message }, stats }
    const { end, context } = await gemini([part('before'), failed], status % 256)
    expect(end).toMatchObject({ code, exitCode: status % 256 })
    expect((end as Error).message).toMatch(/^\[API Error: .*the scripted model refuses.*\]\. Command /)
    expect(context.sessions).toMatchObject([{ id: started.session_id }])
  })

  it('names the option `trust` in a folder that it does not trust', async () => {
    const stderr =
      '\u001b[31mGemini CLI is not running in a trusted directory. To proceed, either use `--skip-trust`, …'
    const { end } = await run({ command: standIn([], 55, stderr), agent: 'gemini' })
    expect((end as Error).message).toContain('The option `trust: true`')
  })

  it('trusts the folder only if the options say so', async () => {
    for (const trust of [false, true]) {
      const command = standIn([started, part('done'), success])
      await processRunner({ command, agent: 'gemini', trust }).run(runInput('--goal'), createRunContext())
      const args = readFileSync(join(command, '../args'), 'utf8').trim().split('\n')
      expect(args).toEqual([
        ...['--output-format', 'stream-json', '--approval-mode', 'plan'],
        ...(trust ? ['--skip-trust'] : []),
        '--prompt=--goal',
      ])
    }
  })
})

describe.skipIf(process.platform === 'win32')('opencode', () => {
  const sessionID = 'ses_dd18fd256ffe7Fh5Olgn21hv4O'
  const start = { type: 'step_start', sessionID, part: { type: 'step-start' } }
  const text = (words: string) => ({ type: 'text', sessionID, part: { type: 'text', text: words } })
  const finish = (reason: string) => {
    const tokens = { total: 120, input: 100, output: 20, reasoning: 0, cache: { write: 0, read: 3 } }
    return { type: 'step_finish', sessionID, part: { reason, type: 'step-finish', tokens, cost: 0.25 } }
  }

  it('completes with its last text, and the sum of the usage of its steps', async () => {
    const lines = [start, text('I will look.'), finish('tool-calls'), start, text('It is.'), finish('stop')]
    const { end, context } = await run({ command: standIn(lines), agent: 'opencode' })
    expect(end).toEqual({
      final_message: 'It is.',
      usage: { input_tokens: 200, cached_input_tokens: 6, output_tokens: 40, cost_usd: 0.5 },
    })
    expect(context.sessions).toMatchObject([{ id: sessionID }])
  })

  it('fails with the message of the API', async () => {
    const data = { message: 'the scripted model refuses', statusCode: 400, isRetryable: false }
    const failed = { type: 'error', sessionID, error: { name: 'APIError', data } }
    const { end } = await run({ command: standIn([failed], 1), agent: 'opencode' })
    expect(end).toMatchObject({ code: 'AGENT_FAILED' })
    expect((end as Error).message).toMatch(/^the scripted model refuses\. Command/)
  })

  it('gets the words of the goal as arguments, and may not run commands with access `read`', async () => {
    const goal = '-x  "two {name}" \t{goal:words}'
    for (const access of ['read', 'write', 'full'] as const) {
      const denies = JSON.stringify(text('denies'))
      const permissions = `[ -n "$OPENCODE_PERMISSION" ] && echo '${denies}'`
      const command = standIn([text('done'), finish('stop')])
      writeFileSync(command, `${readFileSync(command, 'utf8').replace('exit 0', '')}${permissions}\nexit 0\n`)
      const output = await processRunner({ command, agent: 'opencode', access }).run(runInput(goal), createRunContext())
      expect(output).toMatchObject({ final_message: access === 'read' ? 'denies' : 'done' })
      const args = readFileSync(join(command, '../args'), 'utf8').slice(0, -1).split('\n')
      const before = ['run', '--format', 'json', ...(access === 'full' ? ['--auto'] : []), '--']
      expect(args).toEqual([...before, '-x', '', '"two', '{name}"', '\t{goal:words}'])
    }
  })
})

describe.skipIf(process.platform === 'win32')('Qwen Code', () => {
  const session_id = '74c85d8c-5d3d-4795-bb96-decced9f2629'
  const started = { type: 'system', subtype: 'init', session_id, permission_mode: 'default' }
  const result = {
    type: 'result',
    subtype: 'success',
    session_id,
    is_error: false,
    num_turns: 1,
    permission_denials: [],
  }
  const qwen = (lines: readonly object[], exitCode = 0) =>
    run({ command: standIn([started, ...lines], exitCode), agent: 'qwen-code' })

  it('completes with its result and its usage', async () => {
    const usage = { input_tokens: 200, output_tokens: 40, cache_read_input_tokens: 0, total_tokens: 240 }
    const { end, context } = await qwen([{ ...result, result: 'hello', usage }])
    expect(end).toEqual({
      final_message: 'hello',
      usage: { input_tokens: 200, cached_input_tokens: 0, output_tokens: 40 },
    })
    expect(context.sessions).toMatchObject([{ id: session_id }])
  })

  it('fails with the message of its error', async () => {
    const error = { message: '[API Error: 400 the scripted model refuses]' }
    const { end } = await qwen([{ ...result, subtype: 'error_during_execution', is_error: true, error }], 1)
    expect(end).toMatchObject({ code: 'AGENT_FAILED', exitCode: 1 })
    expect((end as Error).message).toMatch(/^\[API Error: 400 the scripted model refuses\]\. Command/)
  })

  it('gets the goal as one argument, which is no option', async () => {
    const command = standIn([started, { ...result, result: 'hello' }])
    await processRunner({ command, agent: 'qwen-code' }).run(runInput('--goal'), createRunContext())
    const args = readFileSync(join(command, '../args'), 'utf8').trim().split('\n')
    expect(args).toEqual(['--output-format', 'stream-json', '--approval-mode', 'default', '--prompt=--goal'])
  })
})

describe.skipIf(process.platform === 'win32')('Copilot CLI', () => {
  const loaded = { type: 'session.skills_loaded', data: { skills: [] }, id: '4270ec9a', parentId: '44cfad14' }
  const message = (content: string, ...toolRequests: object[]) => ({
    type: 'assistant.message',
    data: { messageId: '459ccbc8', model: 'gpt-5.4', content, toolRequests, turnId: '0' },
  })
  const call = (toolCallId: string, toolName: string) => ({
    type: 'tool.execution_start',
    data: { toolCallId, toolName, arguments: { command: 'true' }, turnId: '0', toolTitle: 'Running command' },
  })
  const refused = (toolCallId: string) => ({
    type: 'tool.execution_complete',
    data: { toolCallId, success: false, error: { message: 'Permission denied because …', code: 'denied' } },
  })
  const result = (exitCode = 0) => ({
    type: 'result',
    sessionId: 'da9a6c3d-7666-4a8d-9773-9ad0b5afa79e',
    exitCode,
    usage: { premiumRequests: 0, totalApiDurationMs: 166 },
  })

  it('completes with its last message, and the tools that it was denied', async () => {
    const bash = { toolCallId: 'call_2', name: 'bash' }
    const good = { type: 'tool.execution_complete', data: { toolCallId: 'call_3', success: true } }
    const steps = [call('call_1', 'create'), refused('call_1'), message('', bash), call('call_2', 'bash')]
    const more = [refused('call_2'), call('call_3', 'view'), good, call('call_4', 'bash'), refused('call_4')]
    const lines = [loaded, message('I will look.', {}), ...steps, ...more, message('It is.'), result()]
    const { end, context } = await run({ command: standIn(lines), agent: 'copilot' })
    expect(end).toEqual({ final_message: 'It is.', denied: ['create', 'bash'] })
    expect(context.output()).toContain('[denied: create, bash]')
  })

  it.each([
    ['400 the scripted model refuses with 400', 'AGENT_FAILED'],
    ['Failed to get response from the AI model; retried 5 times. Last error: 429 too many', 'RATE_LIMITED'],
  ])('fails with the message of its error: %s', async (text, code) => {
    const error = { type: 'session.error', data: { errorType: 'query', message: text, statusCode: 400 } }
    const { end } = await run({ command: standIn([loaded, message('before'), error, result(1)], 1), agent: 'copilot' })
    expect(end).toMatchObject({ code, exitCode: 1 })
    expect((end as Error).message.startsWith(`${text}. Command`)).toBe(true)
  })

  it('gives each new session an id, which is known although the agent names it only at its end', async () => {
    const command = standIn([loaded], 1)
    const ids: string[] = []
    for (let count = 0; count < 2; count += 1) {
      const { context } = await run({ command, agent: 'copilot' })
      const [session] = context.sessions
      expect(readFileSync(join(command, '../args'), 'utf8')).toContain(
        `--session-id=${session?.id}\n--prompt=the goal\n`,
      )
      ids.push(session?.id ?? '')
    }
    expect(new Set(ids).size).toBe(2)
    expect(ids[0]).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  })

  it('names no session when it has printed nothing', async () => {
    const command = standIn([], 1)
    writeFileSync(command, '#!/bin/sh\nexit 1\n', { mode: 0o700 })
    expect((await run({ command, agent: 'copilot' })).context.sessions).toEqual([])
  })

  it.each([
    ['read', '--deny-tool=write', 'false'],
    ['write', '--allow-tool=write', 'false'],
    ['full', '--allow-all', 'unset'],
  ] as const)('with access %s, it gets %s, and COPILOT_ALLOW_ALL is %s', async (access, flag, allowAll) => {
    const command = standIn([loaded, message('done'), result()])
    const prints = `echo "${JSON.stringify(message('$V')).replaceAll('"', '\\"')}"`
    const script = readFileSync(command, 'utf8').replace('exit 0', () => `V=\${COPILOT_ALLOW_ALL:-unset}\n${prints}\n`)
    writeFileSync(command, script, { mode: 0o700 })
    const { end } = await run({ command, agent: 'copilot', access, trust: access === 'full', args: ['--model', 'x'] })
    expect(end).toMatchObject({ final_message: allowAll })
    const args = readFileSync(join(command, '../args'), 'utf8').split('\n')
    const trusts = access === 'full' ? ['--add-dir=.'] : []
    expect(args.slice(0, -3)).toEqual(['--output-format', 'json', flag, ...trusts, '--model', 'x'])
  })

  it('continues a session by its id', async () => {
    const command = standIn([loaded, message('done'), result()])
    const previous = { id: 'a', goal: 'g', status: 'completed', session: { id: 's-1' } } as const
    const context = { ...createRunContext(), previous }
    await processRunner({ command, agent: 'copilot' }).run(runInput('more'), context)
    expect(readFileSync(join(command, '../args'), 'utf8')).toContain('--resume=s-1\n--prompt=more\n')
    expect(context.sessions).toMatchObject([{ id: 'da9a6c3d-7666-4a8d-9773-9ad0b5afa79e' }])
  })
})

describe.skipIf(process.platform === 'win32')('a preset of the user', () => {
  const preset = {
    start: ['{access}', '{goal}'],
    resume: ['{session}', '{message}'],
    access: { read: ['r'], write: ['w'], full: ['f'] },
    session: 'jsonl:start/id',
    result: 'jsonl:end/text',
  }

  it('works like those of the package', async () => {
    const { end } = await run({ command: standIn([{ type: 'end', text: 'own' }]), agent: preset })
    expect(end).toEqual({ final_message: 'own' })
    const failed = await run({ command: standIn([], 3, 'went wrong'), agent: preset })
    expect(failed.end).toMatchObject({ code: 'PROCESS_FAILED', exitCode: 3 })
  })

  it.each([
    [{ agent: 'cobol' }, 'options.agent'],
    [{ agent: { ...preset, untrusted: '(' } }, 'options.agent'],
    [{ access: 'read' }, 'options.access'],
    [{ trust: true }, 'options.trust'],
    [{ agent: 'codex', access: 'all' }, 'options.access'],
    [{ agent: 'codex', parse: 'json' }, 'options.parse'],
    [{ agent: 'codex', session: { from: 'json:id', resume: ['{session}', '{message}'] } }, 'options.session'],
  ])('refuses %j', (options, field) => {
    const make = () => processRunner({ command: 'x', ...options } as ProcessRunnerOptions)
    expect(make).toThrow(InvalidInputError)
    expect(make).toThrow(field)
  })
})

describe.skipIf(process.platform === 'win32')('the retry reason agent-error', () => {
  it.each([
    [['agent-error'], 0, 2],
    [['exit-code'], 1, 2],
    [['exit-code'], 0, 1],
    [['rate-limited'], 1, 1],
  ] as const)('of a policy on %j and an exit code %i gives %i runs', async (on, exitCode, runs) => {
    const manager = new AsyncTaskManager()
    onTestFinished(() => manager.dispose())
    const command = standIn([{ ...good, is_error: true, result: 'bad' }], exitCode)
    const retry = { attempts: 2, on, backoff: { initialMs: 0 } }
    manager.launch(
      { id: 'a', subagentName: 's', goalPrompt: 'g' },
      {
        ...processRunner({ command, agent: 'claude-code' }),
        retry,
      },
    )
    await manager.waitFor(['a'])
    const { status, attempt = 1 } = manager.getTask('a') as { status: string; attempt?: number }
    expect({ status, attempt }).toEqual({ status: 'failed', attempt: runs })
  })
})
