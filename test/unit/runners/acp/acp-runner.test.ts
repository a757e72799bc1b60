/** Agents that speak ACP as subagents. The agents are real programs. */
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { acpRunner } from '../../../../src/runners/acp/index.js'
import { AsyncTaskManager } from '../../../../src/async-tasks/manager.js'
import { memoryStore } from '../../../../src/store/index.js'
import { agentOptions, answering, failure, results, runAgent } from '../../../support/acp-stage.js'
import { createRunContext } from '../../../support/run-context.js'
import { waitFor } from '../../../support/wait-for.js'

const tool = { toolCallId: 'a', title: 'Run npm test', kind: 'execute' }
const chosen = (optionId: string) => ({ outcome: { outcome: 'selected', optionId } })
const cancelled = { outcome: { outcome: 'cancelled' } }
const permission = (more: object = {}) => ({ acts: [['permission', { ...tool, ...more }]] as const })

let exitListeners = 0
beforeEach(() => {
  exitListeners = process.listenerCount('exit')
})
afterEach(() => expect(process.listenerCount('exit')).toBe(exitListeners))

describe('a turn', () => {
  it('gets the goal, the folder and what the host can do, and returns the last message and the session', async () => {
    const output = await runAgent({ acts: [['prompt'], ['hello']] }, { cwd: '/tmp', permissions: { edit: 'deny' } })
    const [prompt, hello] = JSON.parse(output.final_message ?? '') as unknown[]
    expect(prompt).toEqual([{ type: 'text', text: 'goal' }])
    expect(hello).toMatchObject({
      cwd: '/tmp',
      clientCapabilities: {
        fs: { readTextFile: true, writeTextFile: false },
        terminal: false,
        elicitation: { form: {} },
      },
    })
    expect(output['session_id']).toBe('session-1')
    expect(output.terminate_reason).toBeUndefined()
  })

  it('shows messages and tools as output, and the plan as progress; the last message is the result', async () => {
    const context = createRunContext()
    const output = await runAgent(
      {
        acts: [
          ['say', 'I look.'],
          ['update', { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'secret' } }],
          ['update', { sessionUpdate: 'tool_call', toolCallId: 'a', title: 'Read\nx.ts', kind: 'read' }],
          ['update', { sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'in_progress' }],
          ['update', { sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'failed' }],
          [
            'update',
            {
              sessionUpdate: 'plan',
              entries: [
                { content: 'one', priority: 'low', status: 'completed' },
                { content: 'two', priority: 'low', status: 'in_progress' },
                { content: 'three', priority: 'low', status: 'pending' },
              ],
            },
          ],
          ['update', { sessionUpdate: 'plan', entries: [] }],
          ['say', 'All '],
          ['say', 'done.'],
          ['update', { sessionUpdate: 'tool_call', toolCallId: 'b', title: 'Think', kind: 'unheard' }],
          ['say', ' \n'],
        ],
      },
      {},
      context,
    )
    expect(output.final_message).toBe('All done.')
    expect(context.output()).toBe('I look.\n[read] Read x.ts\n[read] Read x.ts: failed\nAll done.\n[other] Think\n \n')
    expect(context.reported).toEqual([{ progress: 1, total: 3, message: 'two' }])
  })

  it('keeps its log out of the output', async () => {
    const context = createRunContext()
    await runAgent(
      {
        acts: [
          ['log', '[debug] x\n'],
          ['say', 'the answer'],
          ['log', '[debug] y\n'],
        ],
      },
      {},
      context,
    )
    expect(context.output()).toBe('the answer')
  })

  it('begins a new message with another id', async () => {
    const acts = [
      ['say', 'first', { messageId: '1' }],
      ['say', 'second', { messageId: '2' }],
    ] as const
    const context = createRunContext()
    expect((await runAgent({ acts }, {}, context)).final_message).toBe('second')
    expect(context.output()).toBe('first\nsecond')
  })

  it('shows the message after a refused tool on a line of its own, and a notice between two', async () => {
    const context = createRunContext()
    const tool = { sessionUpdate: 'tool_call', toolCallId: 'a', title: 'Terminal', kind: 'execute', status: 'pending' }
    const acts = [
      ['say', 'I ', { messageId: '1' }],
      ['say', 'look.', { messageId: '1' }],
      ['say', 'a notice'],
      ['say', 'More', { messageId: '1' }],
      ['update', tool],
      ['say', 'It was refused.', { messageId: '1' }],
    ] as const
    await runAgent({ acts }, {}, context)
    expect(context.output()).toBe('I look.\na notice\nMore\nIt was refused.')
  })

  it('keeps no session id that a command line could not take', async () => {
    expect(await runAgent({ sessionId: '--help' })).toEqual({ final_message: '' })
  })

  it('completes with the reason when it was cut short', async () => {
    expect(await runAgent({ stopReason: 'max_tokens', acts: [['say', 'half']] })).toMatchObject({
      final_message: 'half',
      terminate_reason: 'max_tokens',
    })
  })

  it('fails when the agent refuses the goal or gives up its turn', async () => {
    expect(await failure({ stopReason: 'refusal', acts: [['say', 'no']] })).toMatchObject({
      code: 'ACP_REFUSED',
      message: expect.stringContaining('refused the goal. The end of its stdout:\nno') as string,
    })
    expect(await failure({ stopReason: 'cancelled' })).toMatchObject({ code: 'ACP_FAILED' })
  })

  it('completes a task of a manager, whose question reaches its owner', async () => {
    const manager = new AsyncTaskManager()
    onTestFinished(() => manager.dispose())
    const { id } = manager.launch({ subagentName: 'coder', goalPrompt: 'goal' }, acpRunner(agentOptions(permission())))
    const question = await waitFor(() => {
      const [open] = manager.getTask(id)?.questions ?? []
      if (open === undefined) throw new Error('not asked')
      return open
    })
    expect(question.message).toBe('coder asks for permission to use a tool (execute): Run npm test')
    manager.answerTask(id, question.id, { action: 'accept', content: { answer: 'Yes' } })
    const { settled } = await manager.waitFor([id])
    expect(settled).toMatchObject([{ status: 'completed', output: { final_message: JSON.stringify([chosen('yes')]) } }])
  })
})

describe('with a store', () => {
  it('runs an agent and its terminals, of which the agent alone is stored', async () => {
    const store = memoryStore()
    const manager = new AsyncTaskManager({ store })
    onTestFinished(() => manager.dispose())
    const acts = [
      ['request', 'terminal/create', { command: 'echo', args: ['hi'] }],
      ['request', 'terminal/wait_for_exit', { terminalId: 'terminal-1' }],
      ['permission', tool],
    ] as const
    const runner = acpRunner(agentOptions({ acts }, { permissions: { default: 'ask' }, commands: { allow: ['echo'] } }))
    const { id } = manager.launch({ subagentName: 'coder', goalPrompt: 'goal' }, runner)
    await waitFor(() => expect(manager.getTask(id)?.questions).toHaveLength(1))
    const found = JSON.stringify(store.copy().open())
    expect(found.match(/"token":/g)).toHaveLength(1)
    const [question] = manager.getTask(id)?.questions ?? []
    manager.answerTask(id, question?.id ?? '', { action: 'decline' })
    const { settled } = await manager.waitFor([id])
    expect(settled).toMatchObject([
      {
        status: 'completed',
        output: {
          final_message: JSON.stringify([{ terminalId: 'terminal-1' }, { exitCode: 0, signal: null }, chosen('no')]),
          session_id: 'session-1',
        },
      },
    ])
  })
})

describe('questions of Qwen Code, which come as permissions', () => {
  const questions = [
    { question: 'Which colour?', header: 'Colour', options: [{ label: 'red' }, { label: 'blue' }], multiSelect: false },
    { question: 'Which sizes?', header: 'Sizes', options: [{ label: 'S' }, { label: 'L' }], multiSelect: true },
    { question: 'Which name?' },
  ]
  const asks = {
    acts: [
      [
        'permission',
        { ...tool, rawInput: { questions }, _meta: { qwenInteractionKind: 'user_question', toolName: 'x' } },
        [
          { optionId: 'proceed_once', name: 'Submit', kind: 'allow_once' },
          { optionId: 'cancel', name: 'Cancel', kind: 'reject_once' },
        ],
      ],
    ],
  } as const

  it.each(['allow', 'deny', 'ask'] as const)(
    'reach the owner with the policy %s, and the answers the agent',
    async (policy) => {
      const content = { 0: 'blue', 1: ['S', 'L'], 2: 'x' }
      const { context, questions: asked } = answering({ action: 'accept', content })
      const [answer] = await results(asks, { permissions: policy }, context)
      expect(answer).toEqual({
        outcome: { outcome: 'selected', optionId: 'proceed_once' },
        answers: { 0: 'blue', 1: 'S, L', 2: 'x' },
      })
      expect(asked).toEqual([
        {
          message: 'Which colour?\nWhich sizes?\nWhich name?',
          schema: {
            type: 'object',
            properties: {
              0: { type: 'string', enum: ['red', 'blue'], title: 'Colour', description: 'Which colour?' },
              1: {
                type: 'array',
                items: { type: 'string', enum: ['S', 'L'] },
                title: 'Sizes',
                description: 'Which sizes?',
              },
              2: { type: 'string', title: 'Question 3', description: 'Which name?' },
            },
            required: ['0', '1', '2'],
          },
        },
      ])
    },
  )

  it('are cancelled when the owner declines', async () => {
    const { context } = answering({ action: 'decline' })
    expect(await results(asks, {}, context)).toEqual([{ outcome: { outcome: 'selected', optionId: 'cancel' } }])
  })
})

describe('permissions', () => {
  it('follow a policy for all tools or by kind, and allow once at most', async () => {
    expect(await results(permission(), { permissions: 'allow' })).toEqual([chosen('yes')])
    expect(await results(permission(), { permissions: 'deny' })).toEqual([chosen('no')])
    expect(await results(permission(), { permissions: { execute: 'allow', default: 'deny' } })).toEqual([chosen('yes')])
    expect(
      await results(permission({ kind: undefined }), { permissions: { execute: 'allow', default: 'deny' } }),
    ).toEqual([chosen('no')])
  })

  it('ask the owner by default, and also where a policy could only allow for ever', async () => {
    const { context, questions } = answering('Always', 'For ever')
    const forever = [{ optionId: 'f', name: 'For ever', kind: 'allow_always' }]
    const acts = [
      ['permission', { ...tool, kind: 'fetch', rawInput: { url: 'x' } }],
      ['permission', tool, forever],
    ] as const
    expect(await results({ acts }, { permissions: { execute: 'allow' } }, context)).toEqual([
      chosen('always'),
      chosen('f'),
    ])
    expect(questions).toEqual([
      {
        message: 'agent asks for permission to use a tool (fetch): Run npm test\n{"url":"x"}',
        choices: ['Always', 'Yes', 'No'],
      },
      { message: 'agent asks for permission to use a tool (execute): Run npm test', choices: ['For ever'] },
    ])
  })

  it('know the kind and the title from an earlier update', async () => {
    const acts = [
      ['update', { sessionUpdate: 'tool_call', toolCallId: 'a', title: 'Read', kind: 'read' }],
      ['permission', { toolCallId: 'a' }],
    ] as const
    expect(await results({ acts }, { permissions: { read: 'allow', default: 'deny' } })).toEqual([null, chosen('yes')])
  })

  it('are refused when the owner declines, and cancelled without any option', async () => {
    const { context } = answering({ action: 'decline' })
    const acts = [
      ['permission', tool],
      ['permission', tool, []],
    ] as const
    expect(await results({ acts }, {}, context)).toEqual([chosen('no'), cancelled])
  })

  it('tell options of the same name apart', async () => {
    const same = ['a', 'b'].map((optionId) => ({ optionId, name: 'Yes', kind: 'allow_once' }))
    const { context, questions } = answering('Yes (2)')
    expect(await results({ acts: [['permission', tool, same]] }, {}, context)).toEqual([chosen('b')])
    expect(questions).toMatchObject([{ choices: ['Yes', 'Yes (2)'] }])
  })

  it('are answered one after the other without a limit', async () => {
    const acts = Array.from({ length: 40 }, () => ['permission', tool] as const)
    expect(await results({ acts }, { permissions: 'allow' })).toEqual(acts.map(() => chosen('yes')))
  })

  it('are answered up to 16 at once', async () => {
    const { context } = answering()
    const asked = results(
      {
        acts: [
          [
            'many',
            17,
            'session/request_permission',
            { toolCall: tool, options: [{ optionId: 'y', name: 'Y', kind: 'allow_once' }] },
          ],
        ],
      },
      {},
      context,
    )
    await waitFor(() => expect(context.output()).toContain('asked'.repeat(16)))
    context.controller.abort()
    await expect(asked).rejects.toMatchObject({ name: 'AbortError' })
    expect(context.output()).not.toContain('asked'.repeat(17))
  })
})

describe('a form', () => {
  const form = (schema: object): { acts: [[string, ...unknown[]]] } => ({
    acts: [['request', 'elicitation/create', { mode: 'form', message: 'Which port?', requestedSchema: schema }]],
  })
  const schema = { type: 'object', title: null, properties: { port: { type: 'integer' } }, required: ['port'] }

  it('is a question with its schema', async () => {
    const { context, questions } = answering({ action: 'accept', content: { port: 80 } })
    expect(await results(form(schema), {}, context)).toEqual([{ action: 'accept', content: { port: 80 } }])
    expect(questions).toMatchObject([{ message: 'Which port?', schema: { properties: { port: { type: 'integer' } } } }])
    expect(await results(form(schema), {}, answering({ action: 'decline' }).context)).toEqual([{ action: 'decline' }])
  })

  it('with an address is declined', async () => {
    const acts = [
      ['request', 'elicitation/create', { mode: 'url', message: 'Go', url: 'https://x.test', elicitationId: 'e' }],
    ] as const
    expect(await results({ acts })).toEqual([{ action: 'decline' }])
  })

  it('that a question cannot have is refused with the reason', async () => {
    const manager = new AsyncTaskManager()
    onTestFinished(() => manager.dispose())
    const bad = form({ type: 'object', properties: { a: { type: 'string', pattern: '(a+)+$' } } })
    const { id } = manager.launch({ subagentName: 'a', goalPrompt: 'g' }, acpRunner(agentOptions(bad)))
    const { settled } = await manager.waitFor([id])
    expect(JSON.stringify(settled)).toContain('-32602')
  })
})

describe('a cancellation', () => {
  it('sends session/cancel, answers open permissions as cancelled, and ends the agent', async () => {
    const { context } = answering()
    const run = failure({ acts: [['permission', tool], ['untilCancelled']] }, {}, context)
    await context.printed('asked')
    context.controller.abort(new Error('enough'))
    const error = await run
    expect(error).toMatchObject({ name: 'AbortError', code: 'PROCESS_ABORTED', cause: new Error('enough') })
    expect(error.message).toContain('its turn was cancelled')
    expect(context.output()).toContain(JSON.stringify([cancelled, null]))
  })

  it('stops an agent that goes on after the grace period, and kills one that ignores the signal', async () => {
    const context = createRunContext()
    const run = failure({ acts: [['ignoreSigterm'], ['say', 'ready'], ['never']] }, { graceMs: 150 }, context)
    await context.printed('ready')
    context.controller.abort()
    expect((await run).message).toContain('it was still running 150 ms after SIGTERM and was killed')
  })

  it('stops an agent without a session at once', async () => {
    const context = createRunContext()
    const run = failure({ silent: true }, { graceMs: 60_000 }, context)
    context.controller.abort()
    expect(await run).toMatchObject({ code: 'PROCESS_ABORTED' })
  })

  it('before the start starts nothing', async () => {
    const context = createRunContext()
    context.controller.abort()
    expect((await failure({}, {}, context)).message).toContain('was not started: the run had been aborted')
  })
})

describe('an agent that fails', () => {
  it('says that it needs a sign-in, and which ways there are', async () => {
    const error = await failure({ fails: true })
    expect(error.code).toBe('ACP_AUTH_REQUIRED')
    expect(error.message).toContain(
      'needs a sign-in. Start it in a terminal and sign in there. It offers these ways to sign in: An API key.',
    )
  })

  it('fails with the error that it answers', async () => {
    expect(await failure({ acts: [['throws', -32_603, 'no\nmodel']] })).toMatchObject({
      code: 'ACP_FAILED',
      message: expect.stringContaining('answered session/prompt with the error -32603: no model') as string,
    })
  })

  it('fails when it dies half-way, with its exit code and stderr', async () => {
    expect(await failure({ acts: [['crash', 'out of memory']] })).toMatchObject({
      code: 'PROCESS_FAILED',
      exitCode: 3,
      stderr: 'out of memory',
    })
    expect((await failure({ acts: [['exit', 0]] })).message).toContain('ended before it had answered session/prompt')
  })

  it('fails when it is no agent, or there is no such program', async () => {
    const error = await failure({}, { command: '/bin/echo', args: ['usage: echo'] })
    expect(error.code).toBe('ACP_PROTOCOL')
    expect(error.message).toContain(
      'ended before it had answered initialize. Does the command speak ACP? Some agents need an option for it. The end of its stdout:\nusage: echo',
    )
    expect(await failure({}, { command: 'no-such-agent' })).toMatchObject({ code: 'PROCESS_NOT_STARTED' })
  })

  it('fails when it speaks another version', async () => {
    expect((await failure({ version: 7 })).message).toContain('speaks version 7 of ACP, expected 1')
  })

  it('fails when it does not start its session in time', async () => {
    const { code, message } = await failure({ silent: true }, { startTimeoutMs: 3000 })
    expect(code).toBe('ACP_PROTOCOL')
    expect(message).toMatch(/did not answer initialize within 3000 ms\. The end of its stderr:\nwaits for a network/)
  })

  it('is not ended by the time to start once its session has started', async () => {
    const { context } = answering('Yes')
    expect(await results(permission(), { startTimeoutMs: 60_000 }, context)).toEqual([chosen('yes')])
  })
})

describe('a hostile agent', () => {
  const log = vi.spyOn(console, 'error')
  afterEach(() => expect(log).not.toHaveBeenCalled())

  it('fails when a message is longer than maxMessageBytes', async () => {
    const error = await failure({ acts: [['raw', 'x'.repeat(5000)], ['never']] }, { maxMessageBytes: 4000 })
    expect(error).toMatchObject({ code: 'ACP_PROTOCOL' })
    expect(error.message).toContain('sent a message of more than maxMessageBytes (4000 bytes)')
  })

  it('is stopped when it does not read the answers to its requests', async () => {
    const error = await failure({ acts: [['deaf', 20_000, 'no/such']] }, { maxMessageBytes: 4096 })
    expect(error.message).toContain('was stopped: it does not read')
  })

  it('floods neither the log nor the memory with lines that mean nothing', async () => {
    const lines = [
      '{"jsonrpc":"2.0","id":0,"result":{}}',
      '{"jsonrpc":"2.0","id":99,"error":{}}',
      '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"plan","entries":4}}}',
      '{"jsonrpc":"2.0","method":"no/such"}',
      '{"jsonrpc":"2.0","method":"session/update"}',
    ]
    const acts = [
      ['flood', `${lines.join('\n')}\n`, 500],
      ['say', 'done'],
    ] as const
    expect(await runAgent({ acts })).toMatchObject({ final_message: 'done' })
  })

  it('has the start of a long message left out', async () => {
    const { final_message = '' } = await runAgent(
      {
        acts: [
          [
            'flood',
            `${JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'x'.repeat(3000) } } } })}\n`,
            4,
          ],
        ],
      },
      { maxMessageBytes: 4096 },
    )
    expect(final_message).toBe(`[7904 bytes are left out here]\n${'x'.repeat(4096)}`)
  })

  it('is ended when it goes on after its turn', async () => {
    expect(await runAgent({ acts: [['hang'], ['say', 'done']] })).toMatchObject({ final_message: 'done' })
  })
})
