/** Questions of durable runs across a crash, answered by each kind of next process (F20). */
import { expect, it } from 'vitest'
import type { RunContext } from '../../src/index.js'
import { durableProcess, settle } from '../unit/async-tasks/steps/durable-host.js'

it('F20: a question is answered once, whether its task waits for the answer or has started again', async () => {
  const answers: unknown[] = []
  const run = async ({ ask }: RunContext): Promise<unknown> => {
    const [one, two] = await Promise.all([ask('One?', { name: 'one' }), ask('Two?', { name: 'two' })])
    answers.push(one.content, two.content)
    return 'done'
  }
  const answer = (text: string) => ({ action: 'accept', content: { answer: text } }) as const
  const first = durableProcess(run)
  await first.launch()
  const second = await first.next()
  expect(second.task()).toMatchObject({ status: 'queued', questions: [{ id: 'question-1' }, { id: 'question-2' }] })
  expect(second.manager.answerTask('task', 'question-1', answer('a'))).toBe(true)
  await settle()
  expect(second.task()).toMatchObject({ status: 'running', questions: [{ id: 'question-2' }] })
  const third = await second.next()
  expect(third.manager.answerTask('task', 'question-1', answer('again'))).toBe(false)
  expect(third.manager.answerTask('task', 'question-2', answer('b'))).toBe(true)
  await settle()
  expect(third.task()).toMatchObject({ status: 'completed' })
  expect(answers).toEqual([{ answer: 'a' }, { answer: 'b' }])
})
