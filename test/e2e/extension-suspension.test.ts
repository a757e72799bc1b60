/** The browser ends the service worker of the extension while commands run (`npm run suspend` does it more often). */
import { expect, it } from 'vitest'
import { suspendAgainAndAgain } from '../support/suspension.js'

it('E3: when its service worker is ended, the command in flight fails once, nothing runs twice, and it connects again', async () => {
  const { tasks, lost, doubled, wrong, failed, lives } = await suspendAgainAndAgain({ times: 10 })
  expect({ lost, doubled, wrong }).toEqual({ lost: [], doubled: [], wrong: [] })
  expect([lives, tasks > 10, failed > 0]).toEqual([11, true, true])
})
