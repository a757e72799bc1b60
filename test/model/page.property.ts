/**
 * Tasks come, change and end while readers of the page come, go and come back. Each has what there is in the end, as it is, and a request without the
 * token has nothing.
 */
import type { IncomingMessage } from 'node:http'
import fc from 'fast-check'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { createAccess, type Access } from '../../src/server/http/access.js'
import { PageState } from '../../src/page/page-state.js'
import type { PageTask } from '../../src/page/wire.js'
import { createManualClock } from '../../src/testing/manual-clock.js'

/** Changes the parts of a page. */
export interface AlterPage {
  readonly state?: (state: PageState) => void
  readonly access?: (access: Access) => Access
}

const MAX_TASKS = 4

const goals = fc.oneof(
  fc.constantFrom(
    '<script>alert(1)</script>',
    '</style><img src=x onerror=alert(1)>',
    '\u001b[2J\u0000',
    '& &amp; &lt;',
    ' x ',
  ),
  fc.string({ maxLength: 20 }),
)

type Action =
  | { readonly type: 'register'; readonly goal: string }
  | { readonly type: 'complete' | 'fail' | 'cancel' | 'progress'; readonly task: number }
  | { readonly type: 'read' | 'leave'; readonly reader: number }

const actions = fc.array(
  fc.oneof<fc.Arbitrary<Action>[]>(
    fc.record({ type: fc.constant('register' as const), goal: goals }),
    fc.record({ type: fc.constantFrom('complete', 'fail', 'cancel', 'progress'), task: fc.nat(9) }),
    fc.record({ type: fc.constantFrom('read', 'leave'), reader: fc.nat(2) }),
  ),
  { minLength: 1, maxLength: 40 },
)

/** A page, with the version that its last event had. */
interface Reader {
  readonly tasks: Map<string, PageTask>
  version: number | undefined
}

/** What a stream sends when it is opened, or goes on. */
function read(state: PageState, reader: Reader): void {
  const changes = reader.version === undefined ? undefined : state.since(reader.version)
  if (changes === undefined) reader.tasks.clear()
  for (const entry of changes?.tasks ?? state.journal.newestFirst()) {
    // As it is on the wire.
    const row = JSON.parse(JSON.stringify(state.rowOf(entry))) as PageTask
    reader.tasks.set(row.key, row)
  }
  for (const key of changes?.rest.removed ?? []) reader.tasks.delete(key)
  reader.version = state.version
}

const request = (headers: Readonly<Record<string, string>>): IncomingMessage =>
  ({ headers: { host: '127.0.0.1:3320', ...headers } }) as unknown as IncomingMessage

/** G1 to G4. */
export function pageProperty({ state: alterState, access: alterAccess }: AlterPage = {}): fc.IRawProperty<unknown> {
  return fc.property(actions, fc.string(), (script, guess) => {
    checkAccess(alterAccess ?? ((access) => access), guess)
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock, onError: () => undefined })
    const state = new PageState({
      manager,
      taskManager: undefined,
      maxTasks: MAX_TASKS,
      maxBytes: 1024 * 1024,
      now: () => clock.now(),
    })
    alterState?.(state)
    const expected = new Map<string, { readonly goal: string; status: string }>()
    const ended: string[] = []
    const readers = Array.from({ length: 3 }, (): Reader => ({ tasks: new Map(), version: undefined }))
    const end = (id: string, status: string): void => {
      const task = expected.get(id)
      if (task === undefined) return
      task.status = status
      ended.push(id)
    }
    const forget = (): void => {
      while (expected.size > MAX_TASKS && ended.length > 0) expected.delete(ended.shift() ?? '')
    }
    let registered = 0
    for (const action of script) {
      const id = 'task' in action ? `t${action.task}` : ''
      switch (action.type) {
        case 'register':
          expected.set(`t${registered}`, { goal: action.goal, status: 'running' })
          manager.registerTask({ id: `t${registered}`, subagentName: 'helper', goalPrompt: action.goal })
          registered += 1
          break
        case 'complete':
          if (manager.completeTask(id, { text: action.type })) end(id, 'completed')
          break
        case 'fail':
          if (manager.failTask(id, 'no')) end(id, 'failed')
          break
        case 'cancel':
          if (manager.cancelTask(id)) end(id, 'cancelled')
          break
        case 'progress':
          manager.reportProgress(id, 1)
          break
        case 'read':
        case 'leave': {
          const reader = readers[action.reader]
          if (reader !== undefined) read(state, reader)
        }
      }
      forget()
    }
    for (const reader of readers) {
      read(state, reader)
      const had = Array.from(reader.tasks.values(), ({ id, title, state: status }) => ({ id, goal: title, status }))
      const there = Array.from(expected, ([id, task]) => ({ id, ...task }))
      const sorted = (tasks: readonly { readonly id: string }[]): string =>
        JSON.stringify([...tasks].sort((a, b) => (a.id < b.id ? -1 : 1)))
      if (sorted(had) !== sorted(there)) throw new Error(`a reader has ${sorted(had)}, expected ${sorted(there)}`)
    }
    state.stop()
    void manager.dispose()
  })
}

const TOKEN = 'the-token-of-the-link'

function checkAccess(alter: (access: Access) => Access, guess: string): void {
  const access = alter(
    createAccess({
      host: '127.0.0.1',
      allowedHosts: [],
      origins: [],
      tokens: [TOKEN],
      pages: () => ({ scheme: 'http', ports: [3320] }),
    }),
  )
  const wrong = [{}, { authorization: `Bearer ${guess}` }, { authorization: `Basic ${TOKEN}` }, { cookie: TOKEN }]
  if (guess !== TOKEN && wrong.some((headers) => access.isAuthorized(request(headers)))) {
    throw new Error('a wrong token is accepted')
  }
  if (!access.isAuthorized(request({ authorization: `Bearer ${TOKEN}` }))) throw new Error('the token is refused')
  const foreign = [{ host: 'evil.example' }, { origin: 'https://evil.example' }, { origin: 'http://127.0.0.1:1' }]
  if (foreign.some((headers) => access.checkSource(request(headers)) === undefined)) {
    throw new Error('a foreign page is let in')
  }
}
