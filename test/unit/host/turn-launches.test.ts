/** A turn that is taken again after it was lost does not launch again what it has launched: H8. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, type AgentTasksOptions, type ConversationTurn } from '../../../src/index.js'
import { memoryStore, type MemoryStore } from '../../../src/store/index.js'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'
import { InstanceManager } from '../../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import { instanceTool } from '../../../src/protocol/instance-tools.js'
import { createManualClock } from '../../../src/testing/index.js'

type Respond = (turn: ConversationTurn) => unknown

/** A gate: code waits in it until the test opens it. */
function gate() {
  let open!: (value?: unknown) => void
  let entered!: () => void
  const opened = new Promise((resolve) => (open = resolve))
  const isIn = new Promise<void>((resolve) => (entered = resolve))
  const pass = async (): Promise<void> => {
    entered()
    await opened
  }
  return { pass, open, isIn }
}

function hostOn(store: MemoryStore, respond: Respond, options: Omit<AgentTasksOptions, 'respond'> = {}) {
  const begun: string[] = []
  const run = gate()
  const errors: unknown[] = []
  const tasks = createAgentTasks({
    subagents: {
      // Runs again after a crash, and waits in the gate.
      slow: {
        run: async ({ goal }) => {
          begun.push(goal)
          await run.pass()
          return `slow ${goal}`
        },
        retry: { attempts: 100, on: ['interrupted'] },
      },
      quick: ({ goal }) => {
        begun.push(goal)
        if (goal.startsWith('fail')) throw new Error('no luck')
        return `quick ${goal}`
      },
    },
    keepTurns: 100,
    graceMs: 0,
    onError: (error) => errors.push(error),
    store,
    ...options,
    respond,
  })
  onTestFinished(() => tasks.dispose())
  return { tasks, begun, errors, run, ann: tasks.conversation('ann') }
}

const launch = async ({ conversation }: ConversationTurn, args: object): Promise<string> => {
  const { llmContent } = await conversation.tools.task.execute({ subagent_name: 'slow', async: true, ...args } as never)
  return llmContent
}

/** Lets a turn be lost: after it has begun and done its work, the process ends without it. */
async function lost(store: MemoryStore, work: Respond, options: Parameters<typeof hostOn>[2] = {}) {
  const { pass, isIn } = gate()
  const host = hostOn(
    store,
    async (turn) => {
      await work(turn)
      await pass()
      return []
    },
    options,
  )
  host.ann.send('one', { id: 'm1' }).catch(() => undefined)
  await isIn
  await host.tasks.manager.stored()
  return store.copy()
}

const ids = (store: MemoryStore): string[] => store.contents().tasks.map(({ id }) => id)
const launchRows = (store: MemoryStore) =>
  store.contents().featureStates.filter(({ feature }) => feature === 'turnLaunches')

describe('H8: a turn that was lost and is taken again', () => {
  it('H8: gets the running task that it has launched', async () => {
    const copy = await lost(memoryStore(), (turn) => launch(turn, { goal_prompt: 'a' }))
    expect(launchRows(copy)).toHaveLength(1)
    const answers: string[] = []
    const next = hostOn(copy, async (turn) => {
      if (turn.text === 'one') answers.push(await launch(turn, { goal_prompt: 'a' }))
      return []
    })
    expect(await next.ann.send('one', { id: 'm1' })).toEqual([])
    expect(next.begun).toEqual(['a'])
    const [id = ''] = ids(copy)
    expect(ids(copy)).toEqual([id])
    expect(answers).toEqual([
      expect.stringMatching(`^Async task launched: subagent 'slow' \\(ID: ${id}\\)\\. Task is running`),
    ])
    expect(launchRows(copy)).toEqual([])
    next.run.open()
    await next.ann.onIdle()
    expect((await next.ann.messages()).filter(({ content }) => String(content).includes('slow a'))).toHaveLength(1)
  })

  it('H8: in the same process too, when it has failed', async () => {
    const clock = createManualClock()
    const store = memoryStore()
    let turns = 0
    const { ann, begun } = hostOn(
      store,
      async (turn) => {
        if (turn.text.includes('quick first')) {
          turns += 1
          await launch(turn, { subagent_name: 'quick', goal_prompt: 'second' })
          if (turns === 1) throw new Error('the model is away')
        }
        return []
      },
      { clock },
    )
    ann.launch('quick', 'first')
    await expect.poll(() => (clock.advance(100), turns)).toBe(2)
    await ann.onIdle()
    expect(begun).toEqual(['first', 'second'])
  })

  it('H8: launches what it has not launched before, and leaves what it does not launch again', async () => {
    const unlimited = { ownerLimits: { maxRunning: -1 } }
    const copy = await lost(memoryStore(), async (turn) => {
      await launch(turn, { goal_prompt: 'a' })
      await launch(turn, { goal_prompt: 'b' })
    })
    const next = hostOn(
      copy,
      async (turn) => {
        if (turn.text === 'one') {
          await launch(turn, { goal_prompt: 'b', context: { more: 1 } })
          await launch(turn, { goal_prompt: 'a' })
          await launch(turn, { goal_prompt: 'a' })
        }
        return []
      },
      unlimited,
    )
    await next.ann.send('one', { id: 'm1' })
    expect(next.ann.list().map(({ goalPrompt }) => goalPrompt)).toEqual(['a', 'b', 'b', 'a'])
    next.run.open()
    await next.ann.onIdle()
    const all = JSON.stringify(await next.ann.messages())
    for (const id of ids(copy)) expect(all.split(`Output of task ${id} `)).toHaveLength(2)
  })

  it('H8: compares what is launched by its content, not by the order of its fields', async () => {
    const copy = await lost(memoryStore(), (turn) =>
      launch(turn, { goal_prompt: 'a', context: { x: 1, y: { b: 1, a: 2 } } }),
    )
    const next = hostOn(copy, async (turn) => {
      await launch(turn, { context: { y: { a: 2, b: 1 }, x: 1 }, goal_prompt: 'a' })
      return []
    })
    await next.ann.send('one', { id: 'm1' })
    expect(ids(copy)).toHaveLength(1)
  })

  it('H8: gets all of many tasks that have ended, although their results were delivered before', async () => {
    const goals = Array.from({ length: 30 }, (_, n) => `goal-${n}.`)
    const work = (turn: ConversationTurn) =>
      Promise.all(goals.map((goal_prompt) => launch(turn, { subagent_name: 'quick', goal_prompt })))
    let copy = await lost(memoryStore(), work, { maxAsyncTasks: -1 })
    const { pass, isIn, open } = gate()
    const next = hostOn(copy, async (turn) => {
      if (turn.text !== 'one') return []
      await pass()
      throw new Error('the model is away')
    })
    await isIn
    open()
    await next.ann.onIdle()
    await next.tasks.manager.stored()
    copy = copy.copy()
    const last = hostOn(copy, async (turn) => {
      if (turn.text === 'one') await work(turn)
      return []
    })
    await last.ann.send('one', { id: 'm1' })
    await last.ann.onIdle()
    expect(last.begun).toEqual([])
    expect(last.ann.list().length).toBeLessThan(20)
    expect(launchRows(copy)).toEqual([])
  })

  it('H8: gets a task that has ended, whose result is delivered once', async () => {
    const copy = await lost(memoryStore(), (turn) => launch(turn, { subagent_name: 'quick', goal_prompt: 'a' }))
    const answers: string[] = []
    const next = hostOn(copy, async (turn) => {
      if (turn.text === 'one') answers.push(await launch(turn, { subagent_name: 'quick', goal_prompt: 'a' }))
      return []
    })
    await next.ann.send('one', { id: 'm1' })
    await next.ann.onIdle()
    expect(next.begun).toEqual([])
    expect(answers).toEqual([
      expect.stringMatching(/It has ended\. Its result (is in a message to you|was delivered)\.$/),
    ])
    expect((await next.ann.messages()).filter(({ content }) => String(content).includes('quick a'))).toHaveLength(1)
  })

  it('H8: learns once that a task has failed, and then launches it anew', async () => {
    const work = (turn: ConversationTurn) => launch(turn, { subagent_name: 'quick', goal_prompt: 'fail' })
    let copy = await lost(memoryStore(), work)
    const answers: string[] = []
    const again = async (turn: ConversationTurn): Promise<void> => {
      answers.push(await work(turn))
    }
    copy = await lost(copy, again)
    expect(ids(copy)).toHaveLength(1)
    copy = await lost(copy, again)
    expect(ids(copy)).toHaveLength(2)
    expect(answers).toEqual([
      expect.stringContaining('It has failed: no luck'),
      expect.stringContaining('Task is running'),
    ])
  })

  it('H8: launches anew what was cancelled', async () => {
    const copy = await lost(memoryStore(), async (turn) => {
      await launch(turn, { goal_prompt: 'a' })
      turn.conversation
        .list()
        .forEach(({ id }) => void turn.conversation.tools.check_async_tasks.execute({ action: 'cancel', task_id: id }))
    })
    const next = hostOn(copy, async (turn) => {
      if (turn.text === 'one') await launch(turn, { goal_prompt: 'a' })
      return []
    })
    await next.ann.send('one', { id: 'm1' })
    expect(next.begun).toEqual(['a'])
  })

  it('H8: waits for the task that a call in place has launched', async () => {
    const copy = await lost(memoryStore(), async (turn) => {
      void turn.conversation.tools.task.execute({ subagent_name: 'slow', goal_prompt: 'a' })
      await expect.poll(() => turn.conversation.list()[0]?.status).toBe('running')
    })
    const next = hostOn(copy, async (turn) => {
      const { llmContent } = await turn.conversation.tools.task.execute({ subagent_name: 'slow', goal_prompt: 'a' })
      return [{ role: 'tool', content: llmContent }]
    })
    const answer = next.ann.send('one', { id: 'm1' })
    await next.run.isIn
    next.run.open()
    expect(await answer).toEqual([{ role: 'tool', content: expect.stringContaining('slow a') as string }])
    expect(next.begun).toEqual(['a'])
    await next.ann.onIdle()
    expect(await next.ann.turns()).toHaveLength(1)
  })

  it('H8: gets a handle of the task that the code of the host has launched', async () => {
    const copy = await lost(memoryStore(), ({ conversation }) => {
      conversation.launch('slow', 'a', { id: 'mine' })
    })
    const next = hostOn(copy, async ({ conversation }) => {
      const { final_message } = await conversation.launch('slow', 'a', { id: 'mine' }).result
      return [{ role: 'tool', content: final_message }]
    })
    next.run.open()
    expect(await next.ann.send('one', { id: 'm1' })).toEqual([{ role: 'tool', content: 'slow a' }])
    expect(ids(copy)).toEqual(['mine'])
  })

  it('H8: needs no free slot for the task that has it', async () => {
    const options = { maxAsyncTasks: 1, whenFull: 'refuse' } as const
    const copy = await lost(memoryStore(), (turn) => launch(turn, { goal_prompt: 'a' }), options)
    const answers: string[] = []
    const next = hostOn(
      copy,
      async (turn) => {
        answers.push(await launch(turn, { goal_prompt: 'a' }))
        return []
      },
      options,
    )
    await next.ann.send('one', { id: 'm1' })
    expect(answers).toEqual([expect.stringContaining('Task is running')])
  })

  it('H8: is found again by any result that it delivers', async () => {
    const store = memoryStore()
    const { pass, isIn } = gate()
    const first = hostOn(store, async (turn) => {
      await launch(turn, { goal_prompt: 'next' })
      await pass()
      return []
    })
    first.ann.launch('quick', 'a', { id: 'a' })
    await isIn
    await first.tasks.manager.stored()
    const copy = store.copy()
    const texts: string[] = []
    const next = hostOn(copy, async (turn) => {
      texts.push(turn.text)
      if (turn.text.includes('quick a')) await launch(turn, { goal_prompt: 'next' })
      return []
    })
    next.ann.launch('quick', 'b', { id: 'b' })
    await expect.poll(() => texts.join('\n')).toMatch(/quick a/)
    await expect.poll(() => next.ann.isBusy).toBe(false)
    expect(next.begun.filter((goal) => goal === 'next')).toHaveLength(1)
    expect(ids(copy)).toHaveLength(3)
  })

  it('H8: a later turn launches the same again', async () => {
    const { ann, begun } = hostOn(memoryStore(), async (turn) => {
      if (/^(one|two)$/.test(turn.text)) await launch(turn, { subagent_name: 'quick', goal_prompt: 'a' })
      return []
    })
    await ann.send('one', { id: 'm1' })
    await ann.send('two', { id: 'm2' })
    await ann.send('one')
    expect(begun).toEqual(['a', 'a', 'a'])
  })

  it('H8: nor does another conversation get the task', async () => {
    const copy = await lost(memoryStore(), (turn) => launch(turn, { goal_prompt: 'a' }))
    const next = hostOn(copy, async (turn) => {
      await launch(turn, { goal_prompt: 'a' })
      return []
    })
    await next.tasks.conversation('bob').send('one', { id: 'm1' })
    expect(next.tasks.conversation('bob').list()).toHaveLength(1)
  })
})

describe('H8: a turn that has failed and is taken again', () => {
  /** Takes a turn twice: it fails after its work, and then it does not. Returns what the work has returned. */
  async function twice(
    work: (turn: ConversationTurn, host: ReturnType<typeof createAgentTasks>) => unknown,
    options: Parameters<typeof hostOn>[2] = {},
  ) {
    const answers: unknown[] = []
    const { ann, tasks } = hostOn(
      memoryStore(),
      async (turn) => {
        if (turn.text !== 'one') return []
        answers.push(await work(turn, tasks))
        if (answers.length === 1) throw new Error('the model is away')
        return []
      },
      options,
    )
    await expect(ann.send('one', { id: 'm1' })).rejects.toThrow('the model is away')
    await ann.send('one', { id: 'm1' })
    await ann.onIdle()
    return { answers, tasks, launched: ann.list() }
  }

  it('H8: submits its commands once', async () => {
    const instances = new InstanceManager()
    const calls: string[] = []
    const note = instanceTool({ name: 'note', execute: () => String(calls.push('note')) })
    instances.connect(localInstance({ id: 'calc', tools: [note] }))
    const taskManager = new TaskManager({ instances })
    onTestFinished(async () => {
      await taskManager.dispose()
      await instances.dispose()
    })
    const { answers, launched } = await twice(
      ({ conversation }) =>
        conversation.tools.submit_commands?.execute({ task_name: 'Note', commands: [{ tool_name: 'note' }] }),
      { taskManager },
    )
    expect([launched.length, calls.length]).toEqual([1, 1])
    const [id] = launched.map((task) => task.id)
    expect(answers).toMatchObject([{ metadata: { agentId: id } }, { metadata: { agentId: id, async: true } }])
  })

  it('H8: starts a command in the background once, and one that it waits for again', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'turn-launches-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const run = ({ conversation }: ConversationTurn, isAsync: boolean, cwd = folder) =>
      conversation.tools.run_command?.execute({ command: 'true', async: isAsync, cwd })
    const options = { commands: { allow: ['true'], cwd: [folder, tmpdir()] } }
    const inBackground = await twice((turn) => run(turn, true), options)
    expect(inBackground.launched).toHaveLength(1)
    const inPlace = await twice((turn) => run(turn, false), options)
    expect(inPlace.launched).toHaveLength(2)
    let turns = 0
    const elsewhere = await twice((turn) => run(turn, true, (turns += 1) === 1 ? folder : tmpdir()), options)
    expect(elsewhere.launched).toHaveLength(2)
  })

  it.each([
    { mode: 'always', calls: 1 },
    { mode: 'choice', calls: 2 },
  ] as const)('H8: calls a wrapped tool with the mode $mode $calls times', async ({ mode, calls }) => {
    let made = 0
    const tool = {
      name: 'count',
      inputSchema: { type: 'object', properties: {} },
      call: () => Promise.resolve({ content: [{ type: 'text', text: String((made += 1)) }] }),
    }
    const { answers } = await twice((turn, host) => host.background(tool, { mode, owner: turn.conversation.id }).call())
    expect(made).toBe(calls)
    if (mode === 'choice') expect(JSON.stringify(answers)).toContain('"2"')
  })

  it('H8: continues an ended task once', async () => {
    const { launched } = await twice(async ({ conversation }) => {
      const first = conversation.launch('quick', 'first', { id: 'first' })
      await first.result.catch(() => undefined)
      return conversation.tools.send_to_task.execute({ task_id: 'first', message: 'go on' })
    })
    expect(launched.map(({ goalPrompt }) => goalPrompt)).toEqual(['first', 'go on'])
  })
})

describe('H8: the launches of a turn that is not taken again', () => {
  const away = async (turn: ConversationTurn): Promise<unknown> => {
    if (!turn.text.startsWith('goal')) return []
    await launch(turn, { subagent_name: 'quick', goal_prompt: turn.text })
    throw new Error('the model is away')
  }

  it('H8: are forgotten with the records of their tasks', async () => {
    const store = memoryStore()
    const { ann, tasks } = hostOn(store, away)
    for (let n = 1; n <= 20; n += 1) {
      await expect(ann.send(`goal ${n}`, { id: `m${n}` })).rejects.toThrow('the model is away')
      await ann.onIdle()
    }
    await tasks.manager.stored()
    const kept = tasks.manager.getAllTasks().map(({ id }) => id)
    expect(kept.length).toBeLessThan(20)
    expect(launchRows(store).map(({ id }) => id)).toEqual(kept.map((id) => `turnLaunches/${id}`))
  })

  it('H8: are forgotten when the conversation is closed', async () => {
    const store = memoryStore()
    const { ann, tasks } = hostOn(store, away)
    await expect(ann.send('goal', { id: 'm1' })).rejects.toThrow('the model is away')
    await expect(tasks.conversation('bob').send('goal', { id: 'm1' })).rejects.toThrow('the model is away')
    await ann.onIdle()
    await ann.close()
    const [bobs] = tasks.conversation('bob').list()
    expect(launchRows(store).map(({ id }) => id)).toEqual([`turnLaunches/${bobs?.id}`])
  })
})
