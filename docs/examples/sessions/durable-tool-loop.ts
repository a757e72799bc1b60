/**
 * A scripted session: a host whose model calls tools is killed (`kill -9`) at each point of a turn, and goes on. Its transcript has every message
 * and every result of a tool, each in one write with the ids of its deliveries. So no result is lost, and none is there twice.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createAgentTasks, disposeOnSignals } from 'agent-tasks'
import { createTurns } from 'agent-tasks/parts'
import { sqliteStore } from 'agent-tasks/store'

interface Message {
  readonly role: 'user' | 'tool' | 'assistant'
  readonly text: string
  /** The deliveries whose results the text contains. */
  readonly deliveryIds: readonly string[]
}

const [, , folder, killAt] = process.argv
if (folder === undefined) killRepeatedly()
else await host(folder, Number(killAt))

async function host(folder: string, killAt: number): Promise<void> {
  const file = join(folder, 'transcript.jsonl')
  let steps = 0
  /** A point at which this process may die. */
  const point = (): void => {
    steps += 1
    if (steps === killAt) process.kill(process.pid, 'SIGKILL')
  }

  const read = (): Message[] => {
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
    return lines.map((line) => JSON.parse(line) as Message)
  }
  const has = (deliveryId: string): boolean => read().some(({ deliveryIds }) => deliveryIds.includes(deliveryId))
  const append = (message: Message): void => {
    point()
    appendFileSync(file, `${JSON.stringify(message)}\n`, { flush: true })
    point()
  }

  const turns = createTurns(async (text, _signal, delivery) => {
    const { deliveryId, isRepeat = false } = delivery ?? {}
    const deliveryIds = deliveryId === undefined ? [] : [deliveryId]
    // A turn that goes on after a crash has no message. A repeated message may be in the transcript already, under the same id.
    const isKnown = text === '' || (isRepeat && deliveryIds.every(has))
    if (!isKnown) append({ role: 'user', text, deliveryIds })
    for (;;) {
      const { say, call } = askModel(read())
      if (call === undefined) {
        append({ role: 'assistant', text: say, deliveryIds: [] })
        return
      }
      const { name, args } = call
      const result = await tasks.tools[name].execute(args as never)
      append({ role: 'tool', text: `${name}: ${result.llmContent}`, deliveryIds: result.deliveryIds ?? [] })
    }
  })

  const tasks = createAgentTasks({
    store: sqliteStore(join(folder, 'tasks.db')),
    wasDelivered: has,
    isAgentBusy: turns.isBusy$,
    triggerAgentTurn: turns.triggerAgentTurn,
    subagents: {
      research: { run: ({ goal }) => `a report on ${goal}`, retry: { attempts: 9, on: ['interrupted'] } },
    },
  })
  disposeOnSignals(tasks)
  await tasks.recovered
  const [last] = read().slice(-1)
  if (last === undefined) await turns.take('Look into ice and snow.')
  else if (last.role !== 'assistant') await turns.take('')
  await tasks.manager.onIdle()
  await tasks.dispose()
}

/** The model: it launches two tasks, waits for one result, and comments on what it reads after that. */
function askModel(messages: readonly Message[]) {
  const calls = messages.filter(({ role }) => role === 'tool').length
  const goal = ['ice', 'snow'][calls]
  if (goal !== undefined) {
    return {
      say: '',
      call: { name: 'task', args: { subagent_name: 'research', goal_prompt: goal, async: true } },
    } as const
  }
  if (calls === 2) return { say: '', call: { name: 'wait_for_async_tasks', args: { mode: 'any' } } } as const
  return { say: 'I have read it.', call: undefined }
}

/** Kills one host after the other, each somewhat later in its work, and then lets one finish. */
function killRepeatedly(): void {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-loop-'))
  try {
    const program = fileURLToPath(import.meta.url)
    const run = (killAt: number) =>
      spawnSync(process.execPath, [...process.execArgv, program, folder, String(killAt)], { stdio: 'inherit' })
    // The first three die while the tasks are launched and read. Whether the others do depends on how much one wait has returned.
    const kills = [2, 3, 4, 3, 2].filter((killAt) => run(killAt).signal === 'SIGKILL').length
    assert.ok(kills >= 3)
    assert.equal(run(-1).status, 0)

    const lines = readFileSync(join(folder, 'transcript.jsonl'), 'utf8').split('\n').filter(Boolean)
    const messages = lines.map((line) => JSON.parse(line) as Message)
    const launched = messages.flatMap(({ text }) => /^task: .*\(ID: ([^)]+)\)/.exec(text)?.[1] ?? [])
    const told = messages.flatMap(({ text }) => [...text.matchAll(/"agent_id": "([^"]+)"/g)].map(([, id]) => id))
    assert.ok(launched.length >= 2)
    for (const id of launched) assert.equal(told.filter((each) => each === id).length, 1, `${id} was told once`)
    assert.equal(new Set(told).size, told.length)
    assert.equal(messages.at(-1)?.role, 'assistant')
    console.log(`${kills} kills, ${told.length} results, each told once`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
