/**
 * The tasks of a running host, read through the page that the host serves. This source has tasks of both kinds. It is also the only source that can
 * cancel an async task from another process.
 */
import { TaskServerError } from '../../client/client-errors.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import type { CutValue, PageTask, PageTaskDetail } from '../../page/wire.js'
import { fromPage, type ListedTask, type TaskRef } from './listed-task.js'
import { connectPage, type PageConnection } from './page-connection.js'
import { matches, pickTask, type ShownTask, type TaskSource } from './task-source.js'

/** @param option the name of the option or of the variable, for errors */
export function pageSource(option: string, link: string): TaskSource {
  const page = connectPage(option, link)
  const list: TaskSource['list'] = async (limit, filter = {}) =>
    (await snapshot(page))
      .map(fromPage)
      .filter((task) => matches(task, filter))
      .sort((a, b) => b.createdAt - a.createdAt)
      .slice(0, limit)
  return {
    name: 'The host of the page',
    list,
    find: async (idOrPrefix, canBeMeant) => pickTask(await list(Infinity), idOrPrefix, canBeMeant),
    show: async (task) => shown(page, keyOf(task), await page.detail(keyOf(task))),
    cancel: async (task, reason) => {
      try {
        const stopsWithinMs = await page.cancel(keyOf(task), reason)
        return stopsWithinMs === undefined ? true : { stopsWithinMs }
      } catch (error) {
        if (error instanceof TaskServerError && error.code === 'TASK_ENDED') return false
        throw error
      }
    },
    act: (task, action, body) => page.act(keyOf(task), action, body),
    changes: ({ signal }) => changesOf(page, signal),
  }
}

const keyOf = ({ kind, task_id }: TaskRef): string => `${kind}:${task_id}`

async function snapshot(page: PageConnection): Promise<PageTask[]> {
  const tasks = new Map<string, PageTask>()
  const controller = new AbortController()
  try {
    for await (const event of page.events(controller.signal)) {
      if (event.type === 'ready') break
      for (const task of tasksOf(event)) tasks.set(task.key, task)
    }
  } finally {
    controller.abort()
  }
  return [...tasks.values()]
}

async function* changesOf(page: PageConnection, signal: AbortSignal): AsyncGenerator<readonly ListedTask[]> {
  let first: ListedTask[] | undefined = []
  for await (const event of page.events(signal)) {
    const tasks = tasksOf(event).map(fromPage)
    // The parts of the snapshot count as one change.
    if (first === undefined) yield tasks
    else if (event.type === 'ready') {
      yield first
      first = undefined
    } else first.push(...tasks)
  }
}

type StreamEvent = ReturnType<PageConnection['events']> extends AsyncGenerator<infer Event> ? Event : never

const tasksOf = (event: StreamEvent): readonly PageTask[] =>
  event.type === 'tasks' || event.type === 'changes' ? (event.data.tasks ?? []) : []

async function shown(page: PageConnection, key: string, detail: PageTaskDetail): Promise<ShownTask> {
  const { task, goal, result, error, questions, cancelReason, commands } = detail
  const whole = async (name: string, value: CutValue): Promise<unknown> => {
    const text = value.isCut ? await page.value(key, name) : value.text
    return value.type === 'json' ? parsed(text) : text
  }
  return {
    ...fromPage(task),
    ...(goal && { goal: String(await whole('goal', goal)) }),
    ...(result && { result: await whole('result', result) }),
    ...(error && { error: String(await whole('error', error.message)), ...omitUndefined({ errorCode: error.code }) }),
    ...omitUndefined({ questions, cancelReason }),
    ...(commands && {
      commands: await Promise.all(
        commands.map(async (command, index) => ({
          tool_name: command.tool,
          status: command.state,
          args: await whole(`args.${index}`, command.args),
          ...(command.result && { result: await whole(`result.${index}`, command.result) }),
          ...omitUndefined({ error: command.error }),
        })),
      ),
    }),
  }
}

/** A value that was cut is no valid JSON any more, so it is returned as text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
