/** The tests of every adapter. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import type { NeutralTools } from '../../../../src/tools/adapters/neutral-tools.js'
import type { RunFunction } from '../../../../src/engine/runner.js'
import { createAgentTasks } from '../../../../src/host/agent-tasks.js'
import type { AgentTasksOptions } from '../../../../src/host/agent-tasks-options.js'
import { defineTool, type ToolContext } from '../../../../src/tools/tool.js'
import { controlledRun, deferred } from '../tool-host.js'
import type { AdapterSubject, ModelCall } from './adapter-subject.js'

function setUp(subagents: Record<string, RunFunction>, options: AgentTasksOptions = {}) {
  const agent = createAgentTasks({ subagents, onError: vi.fn(), ...options })
  onTestFinished(() => agent.dispose())
  return { agent, tools: agent.tools, manager: agent.getAsyncTaskManager() }
}

const call = (id: string, name: string, args: ModelCall['args']): ModelCall => ({ id, name, args })
const echo: RunFunction = ({ goal }) => Promise.resolve({ final_message: `echo ${goal}` })

/** Runs that stop when they are aborted, and record it. */
function stoppableRun() {
  const started = deferred<AbortSignal>()
  const run: RunFunction = (_input, { signal }) => {
    started.resolve(signal)
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true })
    })
  }
  return { run, started: started.promise }
}

export function describeAdapter(name: string, subject: AdapterSubject): void {
  describe(`the adapter for ${name}`, () => {
    it('offers every tool with its name, description, and parameters as JSON Schema', async () => {
      const { tools } = setUp({})
      const { offered } = await subject.turn(tools, [])
      expect(offered.map((tool) => tool.name)).toEqual(Object.keys(tools))
      expect(offered.map((tool) => tool.description)).toEqual(Object.values(tools).map((tool) => tool.description))
      expect(offered[0]?.parameters).toMatchObject({
        type: 'object',
        properties: {
          subagent_name: { type: 'string', description: 'The name of the subagent to run.' },
          behaviour_prompts: { type: 'array', items: { type: 'string' } },
          expected_outputs: { type: 'object', additionalProperties: { type: 'string' } },
          context: { type: 'object', additionalProperties: {} },
          async: { type: 'boolean' },
        },
        required: ['subagent_name', 'goal_prompt'],
        additionalProperties: false,
      })
      expect(offered[1]?.parameters).toMatchObject({
        properties: {
          action: { enum: ['list', 'peek', 'cancel', 'output', 'answer'] },
          cursor: { type: 'integer', minimum: 0 },
        },
      })
      // Keywords that providers reject or models do not need.
      expect(JSON.stringify(offered)).not.toMatch(/propertyNames|9007199254740991|~standard/)
      for (const { parameters } of offered) expect(structuredClone(parameters)).toEqual(parameters)
    })

    it('gives the model the text of each result', async () => {
      const { tools, manager } = setUp({ echo })
      const { shown, end } = await subject.turn(tools, [
        call('c1', 'task', { subagent_name: 'echo', goal_prompt: 'one' }),
        call('c2', 'task', { subagent_name: 'echo', goal_prompt: 'two', async: true }),
        call('c3', 'check_async_tasks', {}),
      ])
      expect(shown.map(({ id }) => id)).toEqual(['c1', 'c2', 'c3'])
      expect(shown[0]?.text).toContain('echo one')
      expect(shown[0]?.text).not.toContain('returnDisplay')
      expect(shown[1]?.text).toMatch(
        /^Async task launched: subagent 'echo' \(ID: echo-\w+\)\. Task is running in background\./,
      )
      expect(shown.some(({ isError }) => isError === true)).toBe(false)
      expect(end).toBe('done')
      await manager.waitFor([manager.getAllTasks().find((task) => task.goalPrompt === 'two')!.id], { mode: 'all' })
    })

    it('waits for a task that another call of the same step launches', async () => {
      const { tools } = setUp({ echo })
      const { shown } = await subject.turn(tools, [
        call('c1', 'task', { subagent_name: 'echo', goal_prompt: 'one', async: true }),
        call('c2', 'wait_for_async_tasks', {}),
      ])
      expect(shown[1]?.text).toContain('echo one')
    })

    it('passes the id and the signal of a call to the tool', async () => {
      const seen: ToolContext[] = []
      const spy = defineTool({
        name: 'spy',
        description: 'Looks at its call.',
        inputSchema: z.strictObject({}),
        run: (_input, context) => {
          seen.push(context)
          return { llmContent: 'seen', returnDisplay: 'seen' }
        },
      })
      const controller = new AbortController()
      await subject.turn({ spy }, [call('call-7', 'spy', {})], controller.signal)
      expect(seen.map(({ toolCallId }) => toolCallId)).toEqual(['call-7'])
      expect(seen[0]?.signal).toBeInstanceOf(AbortSignal)
    })

    it.each([
      [
        'a missing parameter',
        { subagent_name: 'echo' },
        /Invalid parameters for task: params\.goal_prompt: got undefined, expected a string/,
      ],
      ['a wrong type', { subagent_name: 'echo', goal_prompt: 7 }, /params\.goal_prompt: got 7, expected .*string/],
      ['an unknown parameter', { subagent_name: 'echo', goal_prompt: 'x', colour: 'red' }, /colour/],
      [
        'a blank goal',
        { subagent_name: 'echo', goal_prompt: ' ' },
        /params\.goal_prompt: got " ", expected a goal, in words/,
      ],
      [
        'an unknown subagent',
        { subagent_name: 'nobody', goal_prompt: 'x' },
        /expected the name of a subagent\. Known: echo\./,
      ],
    ])('gives the model the error of the tool for %s, and goes on', async (_what, args, words) => {
      const run = vi.fn(echo)
      const { tools } = setUp({ echo: run })
      const { shown, end } = await subject.turn(tools, [call('c1', 'task', args)])
      expect(shown[0]?.text).toMatch(words)
      expect(shown[0]?.text).not.toMatch(/ToolFailure|\n +at /)
      expect(shown[0]?.isError ?? true).toBe(true)
      expect(end).toBe('done')
      expect(run).not.toHaveBeenCalled()
    })

    if (subject.takesText) {
      it('reports arguments that are not JSON to the model', async () => {
        const run = vi.fn(echo)
        const { tools } = setUp({ echo: run })
        const { shown, end } = await subject.turn(tools, [call('c1', 'task', '{"subagent_name":')])
        expect(shown[0]?.text).toMatch(/JSON/)
        expect(end).toBe('done')
        expect(run).not.toHaveBeenCalled()
      })
    }

    it('reports a failed run, a tool that threw and a limit to the model, and goes on', async () => {
      const broken = defineTool({
        name: 'broken',
        description: 'Throws.',
        inputSchema: z.strictObject({}),
        run: () => {
          throw new TypeError('no such thing')
        },
      })
      const { tools } = setUp({ clumsy: () => Promise.reject(new Error('it slipped')) }, { maxAsyncTasks: 0 })
      const { shown, end } = await subject.turn({ ...tools, broken }, [
        call('c1', 'task', { subagent_name: 'clumsy', goal_prompt: 'x' }),
        call('c2', 'broken', {}),
        call('c3', 'task', { subagent_name: 'clumsy', goal_prompt: 'x', async: true }),
      ])
      expect(shown[0]?.text).toContain('it slipped')
      expect(shown[1]?.text).toBe('broken failed: no such thing')
      expect(shown[2]?.text).toMatch(/^Max async tasks \(0\) reached\. Run the task synchronously/)
      expect(shown.map(({ isError }) => isError ?? true)).toEqual([true, true, true])
      expect(end).toBe('done')
    })

    it('cancels a synchronous task when the turn is aborted', async () => {
      const { run, started } = stoppableRun()
      const { tools, manager } = setUp({ slow: run })
      const ended = vi.fn()
      manager.onTaskCancelled(ended)
      const controller = new AbortController()
      const turn = subject.turn(
        tools,
        [call('c1', 'task', { subagent_name: 'slow', goal_prompt: 'x' })],
        controller.signal,
      )
      const outcome = Promise.allSettled([turn])
      const signal = await started
      controller.abort()
      const [{ status }] = await outcome
      expect(status).toBe(subject.rejectsAborted ? 'rejected' : 'fulfilled')
      expect(signal.aborted).toBe(true)
      await manager.onIdle()
      expect(ended).toHaveBeenCalledTimes(1)
      expect(manager.getRunningTasks()).toEqual([])
    })

    it('does not cancel a background task when the turn that launched it is aborted', async () => {
      const { run, finish } = controlledRun()
      const { run: blocker, started } = stoppableRun()
      const { tools, manager } = setUp({ quiet: run, blocker })
      const controller = new AbortController()
      const turn = subject.turn(
        tools,
        [
          call('c1', 'task', { subagent_name: 'quiet', goal_prompt: 'x', async: true }),
          call('c2', 'task', { subagent_name: 'blocker', goal_prompt: 'x' }),
        ],
        controller.signal,
      )
      const outcome = Promise.allSettled([turn])
      await started
      controller.abort()
      await outcome
      const [task] = manager.getRunningTasks()
      expect(task).toMatchObject({ subagentName: 'quiet', status: 'running' })
      finish({ final_message: 'still done' })
      const { settled } = await manager.waitFor([task!.id], { mode: 'all' })
      expect(settled).toMatchObject([{ status: 'completed' }])
    })

    it('A5: releases the results of an aborted wait', async () => {
      const { run, finish } = controlledRun()
      const { agent, tools, manager } = setUp({ slow: run })
      await tools.task.execute({ subagent_name: 'slow', goal_prompt: 'x', async: true })
      const called = deferred<unknown>()
      const { wait_for_async_tasks: wait } = tools
      const noted = {
        ...wait,
        execute: (input: Parameters<typeof wait.execute>[0], context?: ToolContext) => {
          const result = wait.execute(input, context)
          called.resolve(undefined)
          return result
        },
      }
      const controller = new AbortController()
      const outcome = Promise.allSettled([
        subject.turn(
          { ...tools, wait_for_async_tasks: noted },
          [call('c1', 'wait_for_async_tasks', {})],
          controller.signal,
        ),
      ])
      await called.promise
      controller.abort()
      await outcome
      const completed = deferred<unknown>()
      manager.onTaskCompleted(completed.resolve)
      finish({ final_message: 'late' })
      await completed.promise
      expect(agent.beforeTurn().reminder?.text).toContain('late')
    })

    it('does not start a task when the turn was aborted before the call', async () => {
      const run = vi.fn(echo)
      const { tools } = setUp({ echo: run })
      const turn = subject.turn(
        tools,
        [call('c1', 'task', { subagent_name: 'echo', goal_prompt: 'x' })],
        AbortSignal.abort(),
      )
      await Promise.allSettled([turn])
      expect(run).not.toHaveBeenCalled()
    })

    it('limits what the model reads of a task', async () => {
      const chatty: RunFunction = (_input, context) => {
        context.append('y'.repeat(1_000_000))
        return Promise.resolve({ final_message: 'x'.repeat(1_000_000) })
      }
      const { tools, manager } = setUp({ chatty }, { maxMessageChars: 2_000 })
      await tools.task.execute({ subagent_name: 'chatty', goal_prompt: 'x', async: true })
      const [task] = manager.getAllTasks()
      const { shown } = await subject.turn(tools, [
        call('c1', 'task', { subagent_name: 'chatty', goal_prompt: 'x' }),
        call('c2', 'wait_for_async_tasks', {}),
        call('c3', 'check_async_tasks', { task_id: task!.id }),
        call('c4', 'check_async_tasks', { task_id: task!.id, action: 'output', max_bytes: 900_000 }),
      ])
      expect(shown).toHaveLength(4)
      for (const { text } of shown) expect(text.length).toBeLessThan(4_000)
    })

    it('rejects a tool under another name', async () => {
      const { tools } = setUp({})
      const renamed: NeutralTools = { run: tools.task }
      await expect(subject.turn(renamed, [])).rejects.toThrow(
        'tools.run: got "task", expected the name of the tool as its key; the option names renames a tool.',
      )
    })

    it('offers a tool under another name, which the model calls, and says how other texts call it', async () => {
      const { tools } = setUp({ echo })
      const names = { task: 'delegate' }
      const calls = [call('c1', 'delegate', { subagent_name: 'echo', goal_prompt: 'one' })]
      const { offered, shown } = await subject.turn(tools, calls, undefined, { names })
      expect(offered.map(({ name }) => name)).toEqual(['delegate', ...Object.keys(tools).slice(1)])
      expect(offered[0]?.description).toBe(`${tools.task.description}\n\nOther texts call this tool task.`)
      expect(offered[1]?.description).toBe(tools.check_async_tasks.description)
      expect(shown[0]?.text).toContain('echo one')
      const failing = [call('c2', 'delegate', { subagent_name: 'nobody', goal_prompt: 'x' })]
      expect((await subject.turn(tools, failing, undefined, { names })).shown[0]?.text).toContain('Known: echo.')
    })

    it.each([
      [
        { names: { tusk: 'delegate' } },
        'options.names.tusk: got "delegate", expected a known name; the nearest is task.',
      ],
      [{ names: { task: 'my task' } }, 'options.names.task: got "my task", expected 1 to 64 letters, digits, _ and -.'],
      [{ names: { task: '' } }, 'options.names.task: got "", expected 1 to 64'],
      [{ names: { task: 'check_async_tasks' } }, 'task and check_async_tasks are both check_async_tasks'],
      [{ names: 'task' }, 'options.names: got "task", expected an object'],
      [{ name: {} }, 'options.name: got'],
    ])('refuses the options %j', async (options, message) => {
      const { tools } = setUp({})
      await expect(subject.turn(tools, [], undefined, options as never)).rejects.toThrow(message)
    })
  })
}
