// A few thousand random frames and requests: every answer is well formed, none is an internal error, and the server serves on.
// `FUZZ=1 npm run test:e2e` sends many more. FC_SEED replays a run.
import { expect, it } from 'vitest'
import { fuzzRequests, fuzzSockets, fuzzWorkers } from './fuzz-run.js'

const timeout = 30_000

it('answers 2,000 random frames of clients without an internal error, and serves on', { timeout }, async () => {
  expect(await fuzzSockets(2000)).toBe(2000)
})

it('survives 1,000 random frames of a worker, and serves on', { timeout }, async () => {
  expect(await fuzzWorkers(1000)).toBe(1000)
})

it('answers 500 random requests without an internal error, and serves on', { timeout }, async () => {
  expect(await fuzzRequests(500)).toBe(500)
})
