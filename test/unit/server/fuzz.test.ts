// Thousands of random frames and requests: every answer is well formed, none is an internal error, and the server continues to serve.
// `npm run test:e2e` sends many more, and compares memory before and after. FC_SEED replays a run.
import { expect, it } from 'vitest'
import { fuzzRaw, fuzzRequests, fuzzSockets, fuzzWorkers, startFuzzTarget } from './fuzz-run.js'

const timeout = 30_000

it('answers 2,000 random client frames without an internal error', { timeout }, async () => {
  expect(await fuzzSockets(await startFuzzTarget(), 2000)).toBe(2000)
})

it('survives 1,000 random worker frames', { timeout }, async () => {
  expect(await fuzzWorkers(await startFuzzTarget(), 1000)).toBe(1000)
})

it('answers 500 random requests without an internal error', { timeout }, async () => {
  expect(await fuzzRequests(await startFuzzTarget(), 500)).toBe(500)
})

it('answers 300 random malformed requests without an internal error', { timeout }, async () => {
  expect(await fuzzRaw(await startFuzzTarget(), 300)).toBe(300)
})
