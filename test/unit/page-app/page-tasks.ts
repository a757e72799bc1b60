/** Tasks as the server of the page tells them. */
import type { PageTask } from '../../../src/page/wire.js'

let made = 0

export function pageTask(more: Partial<PageTask> = {}): PageTask {
  made += 1
  const id = more.id ?? `t${made}`
  return {
    key: `async:${id}`,
    kind: 'async',
    id,
    title: `Task ${id}`,
    group: 'main',
    state: 'running',
    createdAt: made * 1000,
    startedAt: made * 1000,
    seq: made,
    ...more,
  }
}
