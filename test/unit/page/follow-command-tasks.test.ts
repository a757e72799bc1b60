/** The command tasks of the page: those that there were before it, and what happens to each. */
import { expect, it, onTestFinished } from 'vitest'
import { InstanceManager, localInstance, TaskManager } from 'agent-tasks/server'
import type { TaskProgress } from '../../../src/protocol/instance-tools.js'
import { startPage, type Reader } from './test-page.js'

/** An instance whose commands end when the test ends them. */
function withCommands() {
  const calls: { readonly progress: (progress: number | TaskProgress) => void; end(result: unknown): void }[] = []
  const instances = new InstanceManager()
  instances.connect(
    localInstance({
      id: 'calc',
      tools: [
        {
          name: 'hold',
          execute: (
            _input: unknown,
            { progress, signal }: { progress: (of: number | TaskProgress) => void; signal: AbortSignal },
          ) =>
            new Promise((resolve, reject) => {
              calls.push({ progress, end: resolve })
              signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
            }),
        },
        { name: 'break', execute: () => Promise.reject(new Error('it broke')) },
      ],
    }),
  )
  const taskManager = new TaskManager({ instances, abortGraceMs: 0 })
  onTestFinished(async () => {
    await taskManager.dispose()
    await instances.dispose()
  })
  const submit = (...tools: string[]): string => {
    const commands = tools.map((tool_name) => ({ tool_name, timeout: 60_000 }))
    const submitted = taskManager.submitTask({ type: 'task_submit', task_name: tools.join(), commands })
    return 'taskId' in submitted ? submitted.taskId : submitted.error
  }
  const ended = (id: string) => expect.poll(() => taskManager.getTask(id)?.completedAt).toBeDefined()
  return { taskManager, calls, submit, ended }
}

const row = ({ tasks }: Reader, id: string) => tasks.get(`command:${id}`)

it('has the tasks of before: ended, running and waiting', async () => {
  const { taskManager, submit, ended } = withCommands()
  const failed = submit('break')
  await ended(failed)
  const running = submit('hold')
  const waiting = submit('hold')
  const cancelled = submit('hold')
  taskManager.cancelTask(cancelled)
  await expect.poll(() => taskManager.getTask(running)?.startedAt).toBeDefined()
  const { read, get } = await startPage({ taskManager })
  const reader = await read()
  await reader.until(({ ready }) => ready !== undefined)
  expect([failed, running, waiting, cancelled].map((id) => row(reader, id)?.state)).toEqual([
    'failed',
    'running',
    'queued',
    'cancelled',
  ])
  const events = async (id: string) =>
    ((await get(`tasks/command:${id}`)).body['events'] as { event: string }[]).map(({ event }) => event)
  expect(await events(failed)).toEqual(['queued', 'started', 'failed'])
  expect(await events(running)).toEqual(['queued', 'started'])
  expect(await events(waiting)).toEqual(['queued'])
  expect(await events(cancelled)).toEqual(['queued', 'cancelled'])
  expect(row(reader, failed)?.error).toContain('it broke')
})

it('has what happens to a task, with the progress of its command until that has ended', async () => {
  const { taskManager, calls, submit } = withCommands()
  const { read, get } = await startPage({ taskManager })
  const reader = await read()
  const id = submit('hold', 'break')
  await reader.until((reader) => row(reader, id)?.state === 'running')
  calls[0]?.progress({ progress: 2, total: 5, message: 'x'.repeat(500) })
  await reader.until((reader) => row(reader, id)?.progress?.progress === 2)
  expect(row(reader, id)?.progress).toEqual({ progress: 2, total: 5, message: 'x'.repeat(200) })
  calls[0]?.progress(3)
  await reader.until((reader) => row(reader, id)?.progress?.progress === 3)
  expect(row(reader, id)?.progress).toEqual({ progress: 3 })
  calls[0]?.end('done')
  await reader.until((reader) => row(reader, id)?.state === 'failed')
  expect(row(reader, id)).not.toHaveProperty('progress')
  const { events } = (await get(`tasks/command:${id}`)).body as { events: { event: string; detail?: string }[] }
  expect(events.map(({ event, detail }) => `${event} ${detail ?? ''}`.trim())).toEqual([
    'queued',
    'started',
    'command running 1 of 2: hold',
    'command completed 1 of 2: hold',
    'command running 2 of 2: break',
    expect.stringMatching(/^command failed 2 of 2: break: .*it broke/),
    expect.stringMatching(/^failed .*it broke/),
  ])
})

it('forgets what ended first, and goes on with the others', async () => {
  const { taskManager, calls, submit, ended } = withCommands()
  const { read } = await startPage({ taskManager, maxTasks: 1 })
  const reader = await read()
  const first = submit('break')
  await ended(first)
  const second = submit('hold')
  await reader.until((reader) => row(reader, second)?.state === 'running')
  expect(row(reader, first)).toBeUndefined()
  calls[0]?.end('done')
  await reader.until((reader) => row(reader, second)?.state === 'completed')
  expect([...reader.tasks.keys()]).toEqual([`command:${second}`])
})

it('a task that timed out says so', async () => {
  const { taskManager } = withCommands()
  const { read } = await startPage({ taskManager })
  const reader = await read()
  const commands = [{ tool_name: 'hold', timeout: 1 }]
  const submitted = taskManager.submitTask({ type: 'task_submit', task_name: 'slow', commands })
  const id = 'taskId' in submitted ? submitted.taskId : ''
  await reader.until((reader) => row(reader, id)?.state === 'timed-out')
})
