// Following a task: what is printed of its results, and what is left of its connection.
import { BehaviorSubject } from 'rxjs'
import { expect, it } from 'vitest'
import { followTask } from '../../../src/cli/follow.js'
import type { Terminal } from '../../../src/cli/terminal.js'
import { ConnectionError } from '../../../src/client/client-errors.js'
import type { TaskClient } from '../../../src/client/index.js'

const text = (value: string) => ({ content: [{ type: 'text', text: value }] })

function createSubject(events: readonly object[], failure?: Error) {
  const connection$ = new BehaviorSubject('connected')
  const [printed, said, json]: [string[], string[], unknown[]] = [[], [], []]
  const asked: unknown[] = []
  const terminal = {
    printResult: (line: string) => printed.push(line),
    printJson: (value: unknown) => json.push(value),
    say: (line: string) => said.push(line),
    live: undefined,
  } as unknown as Terminal
  const client = {
    connection$,
    watch: async function* () {
      for (const event of events) yield await Promise.resolve(event)
      connection$.next('reconnecting')
      connection$.next('connected')
      if (failure !== undefined) throw failure
    },
    result: (...which: unknown[]) => {
      asked.push(which)
      return Promise.resolve(text('large'))
    },
  } as unknown as TaskClient
  const follow = (isJson = false) =>
    followTask(client, 't1', { terminal, isJson, signal: new AbortController().signal })
  return { follow, connection$, printed, said, json, asked }
}

const complete = (status: string, results: readonly object[]) => ({
  type: 'task_complete',
  taskId: 't1',
  status,
  results,
  summary: { totalCommands: 1, successfulCommands: 1, duration: 5 },
})

it('the results of commands that succeeded are printed in order, a large one when it was fetched', async () => {
  const results = [
    { status: 'success', result: text('first') },
    { status: 'success', resultRef: { path: '/x', bytes: 1 } },
    { status: 'error', result: text('of a failure') },
    { status: 'skipped' },
    { status: 'success' },
  ]
  const { follow, connection$, printed, said, asked } = createSubject([complete('failed', results)])
  expect(await follow()).toBe(1)
  expect([printed, asked]).toEqual([['first', 'large'], [['t1', 1]]])
  expect(said).toContain('The connection to the server was lost. Trying again.')
  expect(connection$.observed).toBe(false)
})

it.each([
  ['completed', 0],
  ['failed', 1],
  ['cancelled', 5],
])('a task that is %s ends it with %d, and as JSON only its events are printed', async (status, exitCode) => {
  const event = complete(status, [{ status: 'success', result: text('no') }])
  const { follow, connection$, printed, said, json } = createSubject([event])
  expect(await follow(true)).toBe(exitCode)
  expect([json, printed, said, connection$.observed]).toEqual([[event], [], [], false])
})

it('a connection that is lost for good says how to go on, and other errors are as they are', async () => {
  const lost = new ConnectionError('CONNECTION_LOST', 'It was lost.')
  const { follow, connection$ } = createSubject([], lost)
  await expect(follow()).rejects.toMatchObject({
    code: 'CONNECTION_LOST',
    message: 'It was lost. t1 may still run: agent-tasks tasks watch t1',
    cause: lost,
  })
  expect(connection$.observed).toBe(false)
  await expect(createSubject([], new Error('other')).follow()).rejects.toThrow(/^other$/)
})
