// `FUZZ=1`: 100,000 random frames and 20,000 random requests, after which a valid task is still served. FC_SEED replays a run.
import { expect, it } from 'vitest'
import { fuzzRequests, fuzzSockets, fuzzWorkers } from '../unit/server/fuzz-run.js'

const isWanted = process.env['FUZZ'] === '1'
const timeout = 900_000

it.runIf(isWanted)('answers 80,000 random frames of clients, and serves on', { timeout }, async () => {
  expect(await fuzzSockets(80_000)).toBe(80_000)
})

it.runIf(isWanted)('survives 20,000 random frames of a worker, and serves on', { timeout }, async () => {
  expect(await fuzzWorkers(20_000)).toBe(20_000)
})

it.runIf(isWanted)('answers 20,000 random requests, and serves on', { timeout }, async () => {
  expect(await fuzzRequests(20_000)).toBe(20_000)
})
