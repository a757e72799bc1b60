/** Tasks that run on workers: what goes both ways, and how they end. */
import { firstValueFrom, filter } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { SettledTaskInfo } from '../../machines/records.js'
import { startFleet } from '../support/fleet.js'

async function settled(manager: AsyncTaskManager, id: string): Promise<SettledTaskInfo> {
  const { settled: ended } = await manager.waitFor([id], { timeoutMs: 60_000 })
  const [task] = ended
  if (task === undefined) throw new Error(`task ${id} has not ended`)
  return task
}

const launch = { subagentName: 'research', goalPrompt: 'find out' }

describe('a task on a worker', () => {
  it('W1: returns what its run returns, with the input of its launch', async () => {
    const fleet = await startFleet()
    await fleet.worker((input, { attempt, owner, taskId }) => ({ ...input, attempt, owner, taskId }))
    const manager = fleet.manager()
    const { id } = manager.launch({ ...launch, owner: 'me', context: { depth: 2, text: 'ö\u2028"' } }, fleet.runnerOf())
    expect(await settled(manager, id)).toMatchObject({
      status: 'completed',
      output: { goal: 'find out', context: { depth: 2, text: 'ö\u2028"' }, attempt: 1, owner: 'me', taskId: id },
    })
  })

  it('W2: reports progress and writes output in order', async () => {
    const fleet = await startFleet()
    await fleet.worker(async (_input, context) => {
      for (let step = 1; step <= 50; step += 1) {
        context.append(`line ${step}\n`)
        context.report({ progress: step, total: 50 })
        if (step % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      }
      context.spend({ tokens: 7 })
      context.spend({ tokens: 3, cost: 0.5 })
      return { final_message: 'done' }
    })
    const manager = fleet.manager()
    const seen: number[] = []
    manager.progress$.subscribe(({ progress }) => seen.push(progress.progress))
    const { id } = manager.launch(launch, fleet.runnerOf())
    const task = await settled(manager, id)
    expect(task).toMatchObject({ status: 'completed', spent: { tokens: 10, cost: 0.5 } })
    expect(manager.readOutput(id)?.text).toBe(Array.from({ length: 50 }, (_, at) => `line ${at + 1}\n`).join(''))
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
    expect(seen.at(-1)).toBe(50)
  })

  it('W2, T9: offers an output, with which the task completes when its deadline comes', async () => {
    const fleet = await startFleet()
    await fleet.worker((_input, { offer, signal }) => {
      offer('so far')
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    })
    const manager = fleet.manager()
    const { id } = manager.launch({ ...launch, timeoutMs: 3000 }, fleet.runnerOf())
    expect(await settled(manager, id)).toMatchObject({
      status: 'completed',
      output: { final_message: 'so far', terminate_reason: 'TASK_TIMEOUT' },
    })
  })

  it('W2: asks questions, and gets their answers', async () => {
    const fleet = await startFleet()
    await fleet.worker(async (_input, context) => {
      context.append('before the question')
      const [one, other] = await Promise.all([context.ask('Which?'), context.ask('When?')])
      return { one, other }
    })
    const manager = fleet.manager()
    const { id } = manager.launch(launch, fleet.runnerOf())
    const { questions } = await firstValueFrom(manager.questions$.pipe(filter((event) => event.questions.length === 2)))
    expect(manager.readOutput(id)?.text).toBe('before the question')
    expect(questions.map(({ message }) => message)).toEqual(['Which?', 'When?'])
    const [which, when] = questions
    manager.answerTask(id, when?.id ?? '', { action: 'accept', content: { answer: 'now' } })
    manager.answerTask(id, which?.id ?? '', { action: 'decline' })
    expect((await settled(manager, id)).output).toEqual({
      one: { action: 'decline' },
      other: { action: 'accept', content: { answer: 'now' } },
    })
  })

  it('W2: takes messages, each once and in order', async () => {
    const fleet = await startFleet()
    await fleet.worker({
      run: async (_input: unknown, context: { messages: AsyncIterable<string> }) => {
        const taken: string[] = []
        for await (const message of context.messages) {
          taken.push(message)
          if (taken.length === 30) break
        }
        return { taken }
      },
      takesMessages: true,
    })
    const manager = fleet.manager()
    const { id } = manager.launch(launch, fleet.runnerOf({ takesMessages: true }))
    const messages = Array.from({ length: 30 }, (_, at) => `message ${at}`)
    for (const message of messages) expect(manager.sendToTask(id, message)).toMatchObject({})
    expect((await settled(manager, id)).output).toEqual({ taken: messages })
  })

  it('W1: fails as its run fails, with what policies and records read', async () => {
    const fleet = await startFleet()
    await fleet.worker(() => {
      throw Object.assign(new RangeError('out of range'), { code: 'FAR', exitCode: 3 })
    })
    const manager = fleet.manager()
    const { id } = manager.launch(launch, fleet.runnerOf())
    expect(await settled(manager, id)).toMatchObject({
      status: 'failed',
      error: 'out of range',
      errorName: 'RangeError',
      errorCode: 'FAR',
    })
  })
})
