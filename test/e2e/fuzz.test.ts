// 100,000 random frames and 24,000 random requests to a server in a process of its own: each is answered with a clear error or costs that
// one connection, a valid task is served afterwards, and the server weighs what it weighed before. FC_SEED replays a run.
//
// How it is weighed: bytes of the heap and of buffers after full collections, with everybody gone and five hours put forward on the server's
// clock, so that whatever is kept for a while is due to be forgotten: what is left is what would be kept for ever. The first weighing
// comes after a small run of everything, when code is compiled and caches are filled. MOST_BYTES is what may have been added since, by
// code that was compiled late, say. It is 16 bytes for each input: an empty object that every frame left behind would be more, and so would
// an entry of a map with a short key that every request left behind.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'
import { fuzzRaw, fuzzRequests, fuzzSockets, fuzzWorkers, type FuzzTarget } from '../unit/server/fuzz-run.js'
import type { Weight } from './fuzz/server.js'

const MIB = 1024 * 1024
const MOST_BYTES = 2 * MIB

interface Volume {
  readonly clientFrames: number
  readonly workerFrames: number
  readonly requests: number
  readonly rawRequests: number
}

const warmUp: Volume = { clientFrames: 8000, workerFrames: 2000, requests: 2000, rawRequests: 400 }
const volume: Volume = { clientFrames: 80_000, workerFrames: 20_000, requests: 20_000, rawRequests: 4000 }

it(
  'survives 100,000 random frames and 24,000 random requests, serves on, and weighs what it did',
  { timeout: 600_000 },
  async () => {
    const begun = performance.now()
    const { target, weigh } = await startServer()
    await send(target, warmUp)
    const before = await weigh()
    expect(await send(target, volume)).toEqual(volume)
    const after = await weigh()
    const added = after.bytes - before.bytes
    console.info(
      `fuzz: ${volume.clientFrames} frames of clients, ${volume.workerFrames} of a worker, ${volume.requests} requests, ` +
        `${volume.rawRequests} raw requests in ${((performance.now() - begun) / 1000).toFixed(1)} s; ` +
        `${(before.bytes / MIB).toFixed(2)} MiB before, ${(after.bytes / MIB).toFixed(2)} MiB after (${(added / 1024).toFixed(0)} KiB more)`,
    )
    expect(after).toMatchObject({ inherited: [], gauges: [] })
    expect(added).toBeLessThan(MOST_BYTES)
  },
)

async function startServer(): Promise<{ target: FuzzTarget; weigh: () => Promise<Weight> }> {
  const child = fork('test/e2e/fuzz/server.ts', { execArgv: ['--expose-gc', '--import', 'tsx'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const died = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`The server has ended: ${String(code ?? signal)}`)
  })
  died.catch(() => undefined)
  const heard = async <T>(): Promise<T> => {
    const [message] = (await Promise.race([once(child, 'message'), died])) as [T]
    return message
  }
  const target = await heard<FuzzTarget>()
  return {
    target,
    weigh: () => {
      child.send('weigh')
      return heard<Weight>()
    },
  }
}

async function send(
  target: FuzzTarget,
  { clientFrames, workerFrames, requests, rawRequests }: Volume,
): Promise<Volume> {
  return {
    clientFrames: await fuzzSockets(target, clientFrames),
    workerFrames: await fuzzWorkers(target, workerFrames),
    requests: await fuzzRequests(target, requests),
    rawRequests: await fuzzRaw(target, rawRequests),
  }
}
