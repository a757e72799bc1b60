/** Which questions are asked by a form. */
import { AsyncTaskManager } from 'agent-tasks'
import { expect, it } from 'vitest'
import { Elicitations } from '../../../src/mcp/elicitations.js'

const ofType = (field: object) => ({ type: 'object', properties: { field } })

it.each([
  ['text', ofType({ type: 'string', format: 'email' }), true],
  ['choices', ofType({ type: 'string', enum: ['a', 'b'] }), true],
  ['numbers', ofType({ type: 'number', minimum: 0 }), true],
  ['integers', ofType({ type: 'integer' }), true],
  ['booleans', ofType({ type: 'boolean' }), true],
  ['nothing but consent', { type: 'object', properties: {} }, true],
  ['no properties', { type: 'object' }, false],
  ['objects', ofType({ type: 'object', properties: {} }), false],
  ['lists', ofType({ type: 'array', items: { type: 'string' } }), false],
  ['several types', ofType({ type: ['string', 'null'] }), false],
  ['no type', ofType({ enum: ['a', 1] }), false],
])('F6: a question for %s', async (_what, schema, isForm) => {
  const manager = new AsyncTaskManager()
  manager.launch({ subagentName: 'asks', goalPrompt: 'g' }, async (_input, context) => {
    await context.ask({ message: 'What?', schema })
    return {}
  })
  await new Promise(setImmediate)
  const [task] = manager.getRunningTasks()
  const sent: unknown[] = []
  const context = {
    mcpReq: {
      signal: new AbortController().signal,
      send: (message: unknown) => Promise.reject(new Error(String(sent.push(message)))),
    },
  }
  const asking = new Elicitations(manager).askerOf(context as never).begin(() => undefined)
  expect(asking.ask(task!)).toBe(isForm)
  await new Promise(setImmediate)
  expect(sent).toHaveLength(isForm ? 1 : 0)
  asking.end()
})
