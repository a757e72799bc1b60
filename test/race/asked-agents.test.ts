/** An agent whose `isAgentBusy` answers with a promise (A6). */
import { expect, it } from 'vitest'
import { setUpTrigger } from '../unit/async-tasks/trigger-host.js'

it('A6: an agent that answers late that it is idle is told at once what is owed', async () => {
  const answers: ((isBusy: boolean) => void)[] = []
  const { clock, complete, createTrigger, turns, deliveryOf } = setUpTrigger({
    isAgentBusy: () => new Promise<boolean>((resolve) => answers.push(resolve)),
  })
  createTrigger().subscribe()
  complete('a')
  await clock.advance(0)
  expect(turns).toHaveLength(0)
  answers.shift()?.(true)
  await clock.advance(1000)
  answers.shift()?.(false)
  await clock.advance(0)
  expect(turns).toHaveLength(1)
  turns[0]!.accept()
  await clock.advance(0)
  expect(deliveryOf('a')).toBe('delivered')
})
