/** What is said about a task that was cancelled while its program is being stopped. The program is real; its grace period is on the test's clock. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager, runCommandLine } from '../../../src/index.js'
import { checkAsyncTasksTool, createCheckAsyncTasksTool } from '../../../src/tools/check-async-tasks.js'
import { createWaitForAsyncTasksTool } from '../../../src/tools/wait-for-async-tasks.js'
import { isAlive, until, type TreeProgram } from '../../support/lifelines.js'
import { GRACE_MS, stagePrograms } from '../../support/program-stage.js'
import { createTaskCommands } from '../../../src/parts.js'

const stage = stagePrograms()
const stubborn: TreeProgram = { name: 'leader', ignoresSigterm: true }
const STOPPING = 'stopping: its program may take up to 3 s to end'

/** Ends the tasks of a manager. A program is killed, so its run ends before the grace period of the task. */
function end(manager: AsyncTaskManager, ms = GRACE_MS): Promise<void> {
  const disposal = manager.dispose()
  stage.clock.advance(ms)
  return disposal
}

/** A cancelled task whose program ignores SIGTERM, and the tools of its host. */
async function cancelled() {
  const manager = new AsyncTaskManager({ clock: stage.clock, maxAsyncTasks: 1 })
  const input = { subagentName: 'node', goalPrompt: 'goal' }
  const { id } = manager.launch(input, stage.runnerOf(stubborn))
  const leader = await stage.program('leader')
  const check = createCheckAsyncTasksTool({ getAsyncTaskManager: () => manager })
  const answer = await check.execute({ action: 'cancel', task_id: id })
  await leader.heard('SIGTERM')
  return { manager, id, leader, check, answer }
}

it('F22: the answer to a cancellation says that the task is stopping, and how long that may take', async () => {
  const { manager, id, check, answer } = await cancelled()
  expect(answer.llmContent).toBe(
    `Cancelled task: ${id}. It is ${STOPPING}. To wait for that, call wait_for_async_tasks with its ID.`,
  )
  expect(answer.metadata).toEqual({ id, status: 'cancelled', cancelled: true, stopping: true, stopsWithinMs: 3000 })
  const again = await check.execute({ action: 'cancel', task_id: id })
  expect(again.llmContent).toContain(`is already cancelled. It is ${STOPPING}.`)
  await end(manager)
})

it('F22: lists and details show that a task is stopping, until its program has ended', async () => {
  const { manager, id, leader, check } = await cancelled()
  const commands = createTaskCommands({ getAsyncTaskManager: () => manager })
  const shown = async () => [
    (await check.execute({})).llmContent.includes(STOPPING),
    (await check.execute({ task_id: id })).llmContent.includes('"stopping": true'),
    runCommandLine(commands, '/tasks')?.text.includes(STOPPING),
    runCommandLine(commands, `/task end ${id}`)?.text.includes(STOPPING),
  ]
  expect(await shown()).toEqual([true, true, true, true])
  const { metadata = {} } = await check.execute({ task_id: id })
  expect(checkAsyncTasksTool.output().fieldsOf(metadata)).toMatchObject({ stopping: true })
  stage.clock.advance(GRACE_MS)
  await leader.gone
  await until(() => manager.canLaunchAsync().allowed)
  expect(await shown()).toEqual([false, false, false, false])
  await end(manager)
})

it('F22: a wait ends when the program has ended', async () => {
  const { manager, leader } = await cancelled()
  const wait = createWaitForAsyncTasksTool({ getAsyncTaskManager: () => manager })
  let hasEnded = false
  const waited = wait.execute({}).finally(() => (hasEnded = true))
  stage.clock.advance(GRACE_MS - 1)
  await Promise.resolve()
  expect(hasEnded).toBe(false)
  stage.clock.advance(1)
  const { llmContent } = await waited
  expect(isAlive(leader.pid)).toBe(false)
  expect(llmContent).not.toContain(STOPPING)
  await end(manager)
})

it('F22: a wait has a limit of its own, and says that the program is still running', async () => {
  const { manager, id } = await cancelled()
  const wait = createWaitForAsyncTasksTool({ getAsyncTaskManager: () => manager })
  const waited = wait.execute({ task_ids: [id], timeout_seconds: 1 })
  await until(() => stage.clock.pending > 1)
  stage.clock.advance(1000)
  expect((await waited).llmContent).toContain(`Task ${id} is ${STOPPING}.`)
  await end(manager)
})

it('F22: a wait that is aborted while the program is stopping returns the results', async () => {
  const { manager, id } = await cancelled()
  const wait = createWaitForAsyncTasksTool({ getAsyncTaskManager: () => manager })
  const controller = new AbortController()
  const waited = wait.execute({ task_ids: [id] }, { signal: controller.signal })
  await until(() => stage.clock.pending > 1)
  controller.abort()
  expect((await waited).metadata).toMatchObject({ settled: [id] })
  await end(manager)
})

describe('a program whose grace period is longer than that of its task', () => {
  const LONG_MS = 60_000
  const TASK_MS = 5000

  /** A cancelled task with the usual grace period, whose program has a longer one and ignores SIGTERM. */
  async function longGrace() {
    const manager = new AsyncTaskManager({ clock: stage.clock, maxAsyncTasks: 1 })
    const runner = stage.runnerOf(stubborn, { graceMs: LONG_MS })
    const { id } = manager.launch({ subagentName: 'node', goalPrompt: 'goal', graceMs: 0 }, runner)
    const leader = await stage.program('leader')
    return { manager, id, leader }
  }

  it('F22: is waited for until it has ended, and every answer names its own time', async () => {
    const { manager, id, leader } = await longGrace()
    const check = createCheckAsyncTasksTool({ getAsyncTaskManager: () => manager })
    const answer = await check.execute({ action: 'cancel', task_id: id })
    await leader.heard('SIGTERM')
    expect(answer.metadata).toMatchObject({ stopping: true, stopsWithinMs: LONG_MS + 1000 })
    const wait = createWaitForAsyncTasksTool({ getAsyncTaskManager: () => manager })
    let hasEnded = false
    const waited = wait.execute({ timeout_seconds: 600 }).finally(() => (hasEnded = true))
    for (const ms of [TASK_MS, LONG_MS - TASK_MS - 1]) {
      stage.clock.advance(ms)
      await new Promise((resolve) => setImmediate(resolve))
      expect([hasEnded, manager.canLaunchAsync().allowed, isAlive(leader.pid)]).toEqual([false, false, true])
    }
    stage.clock.advance(1)
    expect((await waited).llmContent).not.toContain('stopping')
    expect(isAlive(leader.pid)).toBe(false)
    await end(manager)
  })

  it('F22: keeps it on a disposal', async () => {
    const { manager, leader } = await longGrace()
    let isDisposed = false
    const disposal = manager.dispose().finally(() => (isDisposed = true))
    await leader.heard('SIGTERM')
    stage.clock.advance(LONG_MS - 1)
    await new Promise((resolve) => setImmediate(resolve))
    expect([isDisposed, isAlive(leader.pid)]).toEqual([false, true])
    stage.clock.advance(1)
    await disposal
    expect(isAlive(leader.pid)).toBe(false)
  })
})

it('says nothing of the kind about a function', async () => {
  const manager = new AsyncTaskManager({ clock: stage.clock })
  const { id } = manager.launch({ subagentName: 'a', goalPrompt: 'b' }, () => new Promise(() => undefined))
  await Promise.resolve()
  const { llmContent } = await createCheckAsyncTasksTool({ getAsyncTaskManager: () => manager }).execute({
    action: 'cancel',
    task_id: id,
  })
  expect(llmContent).toBe(`Cancelled task: ${id}`)
  await end(manager, 60_000)
})
