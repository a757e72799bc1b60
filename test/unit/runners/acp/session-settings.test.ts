/** Modes and options of ACP sessions, and notices between messages. The agent is a real program. */
import { describe, expect, it } from 'vitest'
import { createRunContext } from '../../../support/run-context.js'
import { failure, results, runAgent } from '../../../support/acp-stage.js'

const modes = (currentModeId: string, ...ids: string[]) => ({
  currentModeId,
  availableModes: ids.map((id) => ({ id, name: id })),
})
const claude = modes('auto', 'plan', 'default', 'acceptEdits', 'auto', 'bypassPermissions')
const codex = modes('read-only', 'read-only', 'auto', 'full-access')
const model = {
  id: 'model',
  name: 'Model',
  type: 'select',
  currentValue: 'small',
  options: ['small', 'large'].map((value) => ({ value, name: value })),
}
const url = 'https://agentclientprotocol.com/protocol/session-modes#'
const copilot = modes(`${url}agent`, `${url}agent`, `${url}plan`, `${url}autopilot`)
const modeOption = (currentValue: string, ...values: string[]) => ({
  id: 'how',
  name: 'Mode',
  category: 'mode',
  type: 'select',
  currentValue,
  options: values.map((value) => ({ value, name: value })),
})
const hello = [['hello']] as const

describe('the mode of a session', () => {
  it.each([
    ['ask', undefined, claude, 'default'],
    [{ read: 'allow' }, undefined, claude, 'default'],
    ['allow', undefined, claude, undefined],
    ['allow', 'bypassPermissions', claude, 'bypassPermissions'],
    ['ask', 'plan', claude, 'plan'],
    ['ask', undefined, codex, undefined],
    ['ask', 'read-only', codex, undefined],
    ['ask', undefined, null, undefined],
    ['ask', undefined, copilot, undefined],
    ['ask', undefined, { ...copilot, currentModeId: `${url}autopilot` }, `${url}agent`],
  ] as const)(
    'with permissions %j and the mode %j, of %j, is set to %j',
    async (permissions, mode, offered, expected) => {
      const more = { permissions, ...(mode !== undefined && { mode }) }
      const [seen] = await results({ acts: hello, offer: { modes: offered } }, more)
      expect((seen as { mode?: string }).mode).toBe(expected)
    },
  )

  it('is an option where the agent has no modes of their own', async () => {
    const does = { acts: hello, offer: { configOptions: [model, modeOption('build', 'build', 'plan')] } }
    expect(await results(does, { mode: 'plan' })).toMatchObject([{ how: 'plan' }])
    expect((await results(does))[0]).not.toHaveProperty('how')
    const unasking = { acts: hello, offer: { configOptions: [modeOption('yolo', 'yolo', 'plan', 'default')] } }
    expect(await results(unasking)).toMatchObject([{ how: 'default' }])
    const unknown = await failure(does, { mode: 'ask' })
    expect(unknown.message).toContain('has no mode "ask". It offers: build, plan.')
  })

  it('is set again when the session is continued', async () => {
    const context = { ...createRunContext(), previous: { session: { id: 's-9', cwd: process.cwd() } } as never }
    const does = { acts: hello, offer: { modes: claude }, capabilities: { sessionCapabilities: { resume: {} } } }
    const [seen] = await results(does, {}, context)
    expect(seen).toMatchObject({ resumed: { sessionId: 's-9' }, mode: 'default' })
  })

  it('fails with the list when the agent has no such mode, or none that asks', async () => {
    const unknown = await failure({ acts: [], offer: { modes: codex } }, { mode: 'ask' })
    expect(unknown).toMatchObject({ code: 'ACP_FAILED' })
    expect(unknown.message).toContain('has no mode "ask". It offers: read-only, auto, full-access.')
    const unasking = await failure({ acts: [], offer: { modes: modes('yolo', 'yolo', 'plan') } })
    expect(unasking.message).toContain('has no mode in which it asks for permission')
  })
})

describe('the options of a session', () => {
  it('are set, or refused with the list', async () => {
    const does = { acts: hello, offer: { configOptions: [model] } }
    expect(await results(does, { configOptions: { model: 'large' } })).toMatchObject([{ model: 'large' }])
    const value = await failure(does, { configOptions: { model: 'huge' } })
    expect(value.message).toContain('has no value "huge" of its option "model". It offers: small, large.')
    const option = await failure(does, { configOptions: { speed: 'high' } })
    expect(option.message).toContain('has no option "speed". It offers: model.')
  })
})

describe('updates', () => {
  it('a notice without an id does not replace the answer, and stays in the output', async () => {
    const context = createRunContext()
    const acts = [
      ['say', 'the answer', { messageId: '1' }],
      ['say', '\n**Warning:** something'],
    ] as const
    expect(await runAgent({ acts }, {}, context)).toMatchObject({ final_message: 'the answer' })
    expect(context.output()).toContain('**Warning:** something')
  })

  it('what the agent says of its mode before the prompt is no part of the answer', async () => {
    const acts = [['say', 'the answer']] as const
    const does = { acts, offer: { modes: claude }, reportsMode: true }
    const context = createRunContext()
    expect(await runAgent(does, { mode: 'plan' }, context)).toMatchObject({ final_message: 'the answer' })
    expect(context.output()).toBe('[MODE_UPDATE] plan\nthe answer')
  })

  it('agents are asked for notices as updates of their own', async () => {
    expect(await results({ acts: hello })).toMatchObject([{ clientCapabilities: { session: { notices: {} } } }])
  })

  it('a pending call is shown with the title that follows', async () => {
    const context = createRunContext()
    const call = { toolCallId: 'a', kind: 'execute' }
    const acts = [
      ['update', { sessionUpdate: 'tool_call', ...call, title: 'Terminal', status: 'pending' }],
      ['update', { sessionUpdate: 'tool_call_update', ...call, title: 'touch x' }],
      ['update', { sessionUpdate: 'tool_call_update', ...call, status: 'completed' }],
      ['say', 'done'],
    ] as const
    await runAgent({ acts }, {}, context)
    expect(context.output()).toBe('[execute] touch x\ndone')
  })

  it('a pending call with a command is shown at once, with the command that its title lacks', async () => {
    const context = createRunContext()
    const call = { toolCallId: 'a', kind: 'execute', title: 'Makes a file', rawInput: { command: 'touch x' } }
    const acts = [
      ['update', { sessionUpdate: 'tool_call', ...call, status: 'pending' }],
      ['update', { sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'completed' }],
      ['say', 'done'],
    ] as const
    await runAgent({ acts }, {}, context)
    expect(context.output()).toBe('[execute] Makes a file: touch x\ndone')
  })
})

describe('an error of the API', () => {
  it.each([
    ['API Error: Request rejected (429)', 'RATE_LIMITED'],
    ['API Error: 400', 'ACP_FAILED'],
  ])('%s has the code %s', async (message, code) => {
    expect(await failure({ acts: [['throws', -32603, message]] })).toMatchObject({ code })
  })
})
