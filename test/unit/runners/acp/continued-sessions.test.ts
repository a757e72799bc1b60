/** Sessions of agents that speak ACP, which a task that continues another one opens again: U2. The agents are real programs. */
import { tmpdir } from 'node:os'
import { realpathSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { acpRunner } from '../../../../src/runners/acp/index.js'
import { AsyncTaskManager } from '../../../../src/async-tasks/manager.js'
import { memoryStore } from '../../../../src/store/index.js'
import { agentOptions, failure, results, runAgent, type AgentScript } from '../../../support/acp-stage.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'
import { createRunContext } from '../../../support/run-context.js'

const folder = realpathSync(tmpdir())
const continuing = (session = { id: 's-7', cwd: folder }) => ({
  ...createRunContext(),
  previous: { id: 'a', goal: 'g', status: 'completed', session } as const,
})
const loads = { loadSession: true }
const resumes = { sessionCapabilities: { resume: {} } }

describe('the session of an agent', () => {
  it('U2: is noted with its folder, unless its id could be an option', async () => {
    const context = createRunContext()
    await runAgent({ acts: [['say', 'x']] }, { cwd: folder }, context)
    expect(context.sessions).toEqual([{ id: 'session-1', cwd: folder }])
    const other = createRunContext()
    await runAgent({ acts: [['say', 'x']], sessionId: '--yolo' }, {}, other)
    expect(other.sessions).toEqual([])
  })

  it('U2: is noted of a turn that fails, too', async () => {
    const context = createRunContext()
    await failure({ acts: [['throws', -32603, 'no']] }, { cwd: folder }, context)
    expect(context.sessions).toEqual([{ id: 'session-1', cwd: folder }])
  })

  it.each([
    ['session/resume where the agent has it', { ...resumes, ...loads }, 'resumed'],
    ['session/load where it has only that', loads, 'loaded'],
  ])('U2: is opened again with %s, in its folder', async (_, capabilities, opened) => {
    const context = continuing()
    const [prompt, hello] = await results({ acts: [['prompt'], ['hello']], capabilities }, { cwd: '/' }, context)
    expect(prompt).toEqual([{ type: 'text', text: 'goal' }])
    expect(hello).toHaveProperty(opened, { sessionId: 's-7', cwd: folder, mcpServers: [] })
    expect(Object.keys(hello as object).filter((name) => ['resumed', 'loaded', 'cwd'].includes(name))).toEqual([opened])
    expect(context.sessions).toEqual([{ id: 's-7', cwd: folder }])
  })

  it.each([false, true])(
    'U2: reports nothing again that the agent replays when it loads it, late: %s',
    async (replaysLate) => {
      const replay = [
        { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'the old answer' } },
        { sessionUpdate: 'tool_call', toolCallId: 'old', title: 'An old tool', kind: 'read' },
        { sessionUpdate: 'plan', entries: [{ content: 'old', priority: 'low', status: 'completed' }] },
      ]
      const context = continuing()
      const script: AgentScript = {
        capabilities: loads,
        replay,
        replaysLate,
        acts: [
          ['pause', 100],
          ['say', 'the new answer'],
        ],
      }
      const output = await runAgent(script, {}, context)
      expect(output.final_message).toBe('the new answer')
      expect(context.output()).toBe('the new answer')
      expect(context.reported).toEqual([])
    },
  )

  const gemini = {
    capabilities: loads,
    agentInfo: { name: 'gemini-cli', version: '0.61.0' },
    acts: [['hello']],
  } as const
  const ended = (endedAt: number, continues?: string) => {
    const context = continuing()
    return { ...context, previous: { ...context.previous, endedAt, ...(continues !== undefined && { continues }) } }
  }
  const later = (clock: ReturnType<typeof createManualClock>) => ({ clock, startTimeoutMs: 5000 })

  it('U2: of Gemini CLI is not loaded in the minute of its end: it would be lost', async () => {
    const clock = createManualClock(10 * 60_000 + 20_000)
    const context = ended(10 * 60_000 + 5000)
    const run = results(gemini, later(clock), context)
    await context.printed('[waits 40 s: ')
    clock.advance(39_999)
    let isOver = false
    void run.then(() => (isOver = true))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(isOver).toBe(false)
    clock.advance(1)
    const stop = setInterval(() => clock.advance(200), 20)
    onTestFinished(() => clearInterval(stop))
    expect(await run).toMatchObject([{ loaded: { sessionId: 's-7' } }])
  })

  it('U2: of Gemini CLI is loaded at once when it is older, and that of other agents always', async () => {
    for (const [script, endedAt, continues] of [
      [gemini, Date.now() - 60_000],
      [gemini, Date.now(), 'a'],
      [{ ...gemini, agentInfo: { name: 'other', version: '1' } }, Date.now()],
    ] as const) {
      const context = ended(endedAt, continues)
      expect(await results(script, {}, context)).toMatchObject([{ loaded: { sessionId: 's-7' } }])
      expect(context.output()).not.toContain('[waits')
    }
  })

  it('U2: is not loaded when the task is cancelled while it waits', async () => {
    const clock = createManualClock(10 * 60_000)
    const context = ended(10 * 60_000)
    const failed = failure(gemini, later(clock), context)
    await context.printed('[waits 60 s: ')
    context.controller.abort(new Error('no longer needed'))
    expect((await failed).message).toContain('was aborted')
  })

  it('U2: of an agent that can open none is an error', async () => {
    const error = await failure({ acts: [['say', 'x']] }, {}, continuing())
    expect(error.code).toBe('ACP_FAILED')
    expect(error.message).toMatch(
      / cannot continue a session: it supports neither session\/resume nor session\/load\.$/,
    )
  })

  it('U2: goes on for another task of a manager, with the answer to its owner', async () => {
    const store = memoryStore()
    const runner = acpRunner(agentOptions({ capabilities: resumes, acts: [['hello']] }, { cwd: folder }))
    const manager = new AsyncTaskManager({ store })
    onTestFinished(() => manager.dispose())
    manager.launch({ id: 'a', subagentName: 'agent', goalPrompt: 'g', owner: 'alice' }, runner)
    await manager.waitFor(['a'])
    const { id } = manager.continueTask('a', 'more')
    const { settled } = await manager.waitFor([id])
    expect(settled[0]).toMatchObject({ owner: 'alice', session: { id: 'session-1', cwd: folder } })
    expect(settled[0]?.output?.final_message).toContain('"resumed":{')
    expect(runner.whyNotContinue?.({ id: 'a', goal: 'g', status: 'completed' })).toBe('its run has named no session')
  })
})
