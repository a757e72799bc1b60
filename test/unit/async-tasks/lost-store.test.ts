import { expect, it } from 'vitest'
import { createAgentTasks } from '../../../src/index.js'
import { memoryStore, StoreError, type Store } from '../../../src/store/index.js'

/** A store that the test loses, for example during a write. */
function losableStore() {
  const memory = memoryStore()
  const lost = new AbortController()
  const error = new StoreError('STORE_LOST', 'the store: another owner has taken over.')
  const state = { isHeld: false, writes: 0 }
  const held: (() => void)[] = []
  const store: Store = {
    ...memory,
    lost: lost.signal,
    write: async (changes) => {
      state.writes += 1
      if (state.isHeld && !lost.signal.aborted) await new Promise<void>((resolve) => held.push(resolve))
      lost.signal.throwIfAborted()
      await memory.write(changes)
    },
  }
  const lose = (): void => {
    lost.abort(error)
    for (const release of held.splice(0)) release()
  }
  return { store, state, lose }
}

const hanging = (_input: unknown, { signal }: { readonly signal: AbortSignal }) =>
  new Promise<{ final_message: string }>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')))
  })

const lostError = { code: 'STORE_LOST' }

async function losingHost() {
  const { store, state, lose } = losableStore()
  const reported: unknown[] = []
  const tasks = createAgentTasks({
    store,
    onError: (error) => reported.push((error as { readonly code?: unknown }).code),
    subagents: { quick: () => Promise.resolve({ final_message: 'x' }), hanging },
  })
  await tasks.recovered
  return { tasks, state, lose, reported }
}

it('K1: when the store is lost, all launches fail: those that run, those that are being stored, and later ones', async () => {
  const { tasks, state, lose, reported } = await losingHost()
  const running = tasks.launch('hanging', 'running')
  await tasks.manager.stored()
  state.isHeld = true
  const inFlight = tasks.launch('quick', 'in flight')
  const waits = [running.result, inFlight.result]
  await Promise.resolve()
  const next = tasks.launch('quick', 'next')
  waits.push(next.result)
  lose()
  for (const wait of waits) await expect(wait).rejects.toMatchObject(lostError)
  const later = tasks.launch('quick', 'later')
  await expect(later.result).rejects.toMatchObject(lostError)
  await expect(tasks.manager.waitFor([later.id])).rejects.toMatchObject(lostError)
  await expect(tasks.manager.stored()).rejects.toMatchObject(lostError)
  expect(later.record).toMatchObject({ status: 'failed', errorCode: 'NOT_STORED' })
  expect(reported).toContain('STORE_LOST')
  // No write is repeated to a lost store.
  const { writes } = state
  await new Promise((resolve) => setTimeout(resolve, 0))
  expect(state.writes).toBe(writes)
  await tasks.dispose()
})

it('K1: when the store is lost, streams end, and nobody waits until the host is idle', async () => {
  const { tasks, lose } = await losingHost()
  const running = tasks.launch('hanging', 'running')
  await tasks.manager.stored()
  const ends: string[] = []
  running.output$.subscribe({ complete: () => ends.push('output') })
  const events = (async () => {
    for await (const _event of running);
    ends.push('events')
  })()
  const idle = tasks.manager.onIdle()
  lose()
  await Promise.all([events, idle])
  for await (const _event of running);
  running.output$.subscribe({ complete: () => ends.push('later output') })
  await tasks.manager.onIdle()
  expect(ends).toEqual(['output', 'events', 'later output'])
  await tasks.dispose()
})

it('K1: tool calls fail when the store is lost', async () => {
  const { tasks, state, lose } = await losingHost()
  const { task } = tasks.tools
  const inPlace = task.execute({ subagent_name: 'hanging', goal_prompt: 'x' })
  await tasks.manager.stored()
  state.isHeld = true
  const inBackground = task.execute({ subagent_name: 'quick', goal_prompt: 'x', async: true })
  await Promise.resolve()
  lose()
  for (const call of [inPlace, inBackground, task.execute({ subagent_name: 'quick', goal_prompt: 'x', async: true })]) {
    expect((await call).error?.message).toContain('another owner has taken over')
  }
  await tasks.dispose()
})
