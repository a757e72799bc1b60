/** The lists that `agent-tasks tasks` reads: page by page from a server, and as a stream from a page. */
import { expect, it, onTestFinished, vi } from 'vitest'
import type { TaskClient, TaskListOptions } from '../../../src/client/task-client.js'
import { doneText, fromPage } from '../../../src/cli/tasks/listed-task.js'
import { connectPage } from '../../../src/cli/tasks/page-connection.js'
import { findTaskId, listTasks } from '../../../src/cli/tasks/task-list.js'
import type { PageTask } from '../../../src/page/wire.js'

/** A server that has so many tasks, and answers with at most 1,000 of them. */
function serverWith(count: number) {
  const asked: TaskListOptions[] = []
  const client = {
    get: () => Promise.resolve(undefined),
    list: (options: TaskListOptions) => {
      asked.push(options)
      const from = Number(options.cursor ?? 0)
      const end = Math.min(count, from + Math.min(1000, options.limit ?? 0))
      const tasks = Array.from({ length: end - from }, (_, at) => ({ id: `t${from + at}`, status: 'running' }))
      return Promise.resolve({ tasks, ...(end < count && { nextCursor: String(end) }) })
    },
  } as unknown as TaskClient
  return { client, asked }
}

it('a list goes on to the next page until there are enough tasks, or no more', async () => {
  const { client, asked } = serverWith(2500)
  const ids = (await listTasks(client, Infinity, { status: 'running' })).map(({ id }) => id)
  expect([ids.length, new Set(ids).size]).toEqual([2500, 2500])
  expect(asked).toEqual([
    { status: 'running', limit: 1000 },
    { status: 'running', limit: 1000, cursor: '1000' },
    { status: 'running', limit: 1000, cursor: '2000' },
  ])
  asked.length = 0
  expect(await listTasks(client, 1200)).toHaveLength(1200)
  expect(asked.map(({ limit }) => limit)).toEqual([1000, 200])
})

it('a prefix is looked up among all tasks', async () => {
  const { client } = serverWith(2500)
  await expect(findTaskId(client, 't240')).rejects.toThrow('t240 could be t240')
  expect(await findTaskId(client, 't2499')).toBe('t2499')
})

it('a character that is cut between two pieces of the stream is whole', async () => {
  const bytes = new TextEncoder().encode(
    `event: tasks\ndata: {"tasks":[{"title":"\u00e4\u{1f980}"}]}\n\nevent: ready\ndata: {}\n\n`,
  )
  for (let at = 1; at < bytes.length; at += 1) {
    const body = new ReadableStream({
      start(stream) {
        stream.enqueue(bytes.slice(0, at))
        stream.enqueue(bytes.slice(at))
        stream.close()
      },
    })
    vi.stubGlobal('fetch', () => Promise.resolve(new Response(body)))
    onTestFinished(() => void vi.unstubAllGlobals())
    const page = connectPage('--page', 'http://127.0.0.1:1/#token=abc')
    for await (const event of page.events(new AbortController().signal)) {
      if (event.type === 'tasks') expect(event.data).toEqual({ tasks: [{ title: '\u00e4\u{1f980}' }] })
      if (event.type === 'ready') break
    }
  }
  expect.assertions(bytes.length - 1)
})

it('how many commands have ended is unknown when the page lists only the first ones', () => {
  const task = { id: 'c1', kind: 'command', title: 'many', group: 'desk', state: 'running', createdAt: 1 }
  const commands = [{ state: 'completed' }, { state: 'running' }]
  const listed = (commandCount: number) => fromPage({ ...task, commands, commandCount } as unknown as PageTask)
  expect(listed(2)).toMatchObject({ currentCommandIndex: 1, totalCommands: 2 })
  expect(doneText(listed(2))).toBe('1/2')
  expect(listed(50)).not.toHaveProperty('currentCommandIndex')
  expect(doneText(listed(50))).toBe('?/50')
})
