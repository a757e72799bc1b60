import { describe, expect, it } from 'vitest'
import { codex } from '../../../../src/features/hooks/codex.js'
import { gemini } from '../../../../src/features/hooks/gemini.js'
import { qwen } from '../../../../src/features/hooks/qwen.js'
import { opencode } from '../../../../src/features/hooks/opencode.js'
import { claude } from '../../../../src/features/hooks/claude.js'
import { memoryStore } from '../../../../src/store/index.js'
import { hasSettled, openStage, settle, tokenIn } from './stage.js'

describe('the end of a turn of a client that ends with it', () => {
  it('waits until a task has ended, and answers with its result', async () => {
    const { launch, end, ask, deliveryOf } = openStage()
    await launch('a')
    await launch('b')
    const stopped = ask({ event: 'stop' })
    expect(await hasSettled(stopped)).toBe(false)
    await end('a')
    const text = await stopped
    expect(text).toContain('the result of a')
    expect(text).toContain('1 async task(s) still running')
    expect(tokenIn(text)).toMatch(/^delivery-/)
    expect(deliveryOf('a')).toBe('leased')
  })

  it('says nothing if no task runs and nothing is owed', async () => {
    const { ask } = openStage()
    expect(await ask({ event: 'stop' })).toBeUndefined()
  })

  it('gives each of several results once', async () => {
    const { launch, end, ask, deliveryOf } = openStage()
    await launch('a')
    await launch('b')
    await end('a')
    const first = await ask({ event: 'stop' })
    await end('b')
    const second = await ask({ event: 'stop', isContinued: true })
    expect(deliveryOf('a')).toBe('delivered')
    expect(first).toContain('the result of a')
    expect(second).toContain('the result of b')
    expect(second).not.toContain('the result of a')
    expect(await ask({ event: 'stop', isContinued: true })).toBeUndefined()
    expect(deliveryOf('b')).toBe('delivered')
  })

  it('leases nothing when the client takes the call back', async () => {
    const { launch, end, call, deliveryOf, registry } = openStage()
    await launch('a')
    const esc = new AbortController()
    const stopped = call({ event: 'stop' }, esc.signal)
    await settle()
    esc.abort()
    expect((await stopped).text).toBeUndefined()
    await end('a')
    expect(deliveryOf('a')).toBe('owed')
    expect(registry.ledger.isOwing('main')).toBe(true)
  })

  it('is answered to the newest call alone', async () => {
    const { launch, end, ask } = openStage()
    await launch('a')
    const [older, newer] = [ask({ event: 'stop' }), ask({ event: 'stop' })]
    expect(await older).toBeUndefined()
    await end('a')
    expect(await newer).toContain('the result of a')
  })

  it('leaves no timer and no subscription behind', async () => {
    const { launch, end, ask, clock } = openStage()
    await launch('a')
    const timers = clock.pending
    const stopped = ask({ event: 'stop' })
    await settle()
    expect(clock.pending).toBe(timers + 1)
    await end('a')
    await stopped
    expect(clock.pending).toBe(timers)
  })

  it('goes on at the limit of the hook, and names what still runs', async () => {
    const { launch, ask, clock } = openStage()
    await launch('a')
    const stopped = ask({ event: 'stop' })
    await settle()
    clock.advance(claude.stopMs)
    expect(await stopped).toBe(
      '1 background task(s) still run: a. There is nothing to do for them: end your turn, and their results follow.',
    )
  })
})

describe('a result that was not written, or whose arrival is not proven', () => {
  it('is owed again, unmarked, if the answer was not written', async () => {
    const { launch, end, call, ask, deliveryOf } = openStage()
    await launch('a')
    await end('a')
    const { text, end: written } = await call({ event: 'stop' })
    expect(text).toContain('the result of a')
    written(false)
    expect(deliveryOf('a')).toBe('owed')
    const again = await ask({ event: 'stop' })
    expect(again).toContain('the result of a')
    expect(again).not.toContain('possible repeat')
  })

  it('is owed again, marked and with the same id, if the next turn begins without it', async () => {
    const { launch, end, ask } = openStage()
    await launch('a')
    await end('a')
    const first = await ask({ event: 'stop' })
    const again = await ask({ event: 'prompt', prompt: 'Hello' })
    expect(again).toContain('possible repeat')
    expect(tokenIn(again)).toBe(tokenIn(first))
  })

  it('is delivered if the transcript has it', async () => {
    const { launch, end, ask, transcript, deliveryOf } = openStage()
    await launch('a')
    await end('a')
    const text = await ask({ event: 'stop' })
    transcript.push(text ?? '')
    expect(await ask({ event: 'prompt', prompt: 'Hello' })).toBeUndefined()
    expect(deliveryOf('a')).toBe('delivered')
  })

  it('is delivered if it is the next prompt, which is then no prompt of a person', async () => {
    const { launch, end, ask, deliveryOf } = openStage({ client: gemini })
    await launch('a')
    await launch('b')
    await end('a')
    const text = await ask({ event: 'stop' })
    await end('b')
    expect(await ask({ event: 'prompt', prompt: text ?? '' })).toBeUndefined()
    expect([deliveryOf('a'), deliveryOf('b')]).toEqual(['delivered', 'owed'])
  })

  it('is not proven by the end of a turn that no hook has continued', async () => {
    const { launch, end, ask } = openStage()
    await launch('a')
    await end('a')
    await ask({ event: 'stop' })
    expect(await ask({ event: 'stop', isContinued: false })).toContain('possible repeat')
  })

  it('of a prompt is proven by the end of its turn', async () => {
    const { launch, end, ask, deliveryOf } = openStage()
    await launch('a')
    await end('a')
    expect(await ask({ event: 'prompt', prompt: 'Hello' })).toContain('the result of a')
    expect(await ask({ event: 'stop' })).toBeUndefined()
    expect(deliveryOf('a')).toBe('delivered')
  })
})

describe('a conversation with a transcript', () => {
  it('does not count the end of a turn, which others can call as well, as a proof', async () => {
    const { launch, end, ask, deliveryOf } = openStage({ hasTranscript: true })
    await launch('a')
    await end('a')
    await ask({ event: 'stop' })
    // A hook of a repository makes the same call.
    expect(await ask({ event: 'stop', isContinued: true })).toContain('possible repeat')
    expect(deliveryOf('a')).toBe('leased')
  })

  it('that leaves a message out gets it four times, and not for ever', async () => {
    const { launch, end, ask, deliveryOf } = openStage({ hasTranscript: true, client: codex })
    await launch('a')
    await end('a')
    const texts = [await ask({ event: 'stop' })]
    for (let n = 0; n < 5; n += 1) texts.push(await ask({ event: 'stop', isContinued: true }))
    expect(texts.map((text) => text !== undefined)).toEqual([true, true, true, true, false, false])
    expect(deliveryOf('a')).toBe('delivered')
  })
})

it('a turn that goes on after a call of a tool is no new prompt', async () => {
  const { launch, end, ask, deliveryOf, transcript } = openStage({ client: qwen, hasTranscript: true })
  await launch('a')
  await launch('b')
  await end('a')
  const text = await ask({ event: 'prompt', prompt: 'Hello' })
  expect(text).toContain('the result of a')
  await end('b')
  expect(await ask({ event: 'prompt', prompt: '' })).toBeUndefined()
  transcript.push(text ?? '')
  const last = await ask({ event: 'stop' })
  expect(last).toContain('the result of b')
  expect(last).not.toContain('possible repeat')
  expect(deliveryOf('a')).toBe('delivered')
})

describe('after a crash', () => {
  it.each([
    { kept: true, what: 'is not repeated if the transcript has it' },
    { kept: false, what: 'is repeated, marked, if the transcript does not have it' },
  ])('a result $what', async ({ kept }) => {
    const store = memoryStore()
    const before = openStage({ store })
    await before.launch('a')
    await before.end('a')
    const text = await before.ask({ event: 'stop' })
    const left = store.copy()
    await before.manager.dispose()
    const after = openStage({ store: left, transcript: kept ? [text ?? ''] : [] })
    await after.manager.recovered
    const again = await after.ask({ event: 'prompt', prompt: 'Hello' })
    if (kept) expect(again).toBeUndefined()
    else expect(again).toContain('possible repeat')
    expect(left.contents().featureStates).toHaveLength(kept ? 0 : 1)
  })

  it('a result that was proven is not repeated', async () => {
    const store = memoryStore()
    const before = openStage({ store })
    await before.launch('a')
    await before.end('a')
    await before.ask({ event: 'stop' })
    await before.ask({ event: 'stop', isContinued: true })
    await before.manager.stored()
    const left = store.copy()
    await before.manager.dispose()
    const after = openStage({ store: left })
    await after.manager.recovered
    expect(await after.ask({ event: 'prompt', prompt: 'Hello' })).toBeUndefined()
    expect(left.contents().deliveries).toEqual([])
  })
})

describe('a client that lets hooks continue a turn eight times', () => {
  it('gets nine results: six alone, and the others together', async () => {
    const { launch, end, ask } = openStage()
    const ids = ['1', '2', '3', '4', '5', '6', '7', '8', '9']
    for (const id of ids) await launch(id)
    const texts: (string | undefined)[] = []
    for (const id of ids.slice(0, 6)) {
      await end(id)
      texts.push(await ask({ event: 'stop', isContinued: id !== '1' }))
    }
    await end('7')
    const last = ask({ event: 'stop', isContinued: true })
    expect(await hasSettled(last)).toBe(false)
    await end('8')
    expect(await hasSettled(last)).toBe(false)
    await end('9')
    texts.push(await last)
    expect(texts.map((text) => [...(text ?? '').matchAll(/the result of (\d)/g)].map(([, id]) => id))).toEqual([
      ['1'],
      ['2'],
      ['3'],
      ['4'],
      ['5'],
      ['6'],
      ['7', '8', '9'],
    ])
    expect(await ask({ event: 'stop', isContinued: true })).toBeUndefined()
  })

  it('is asked again after a call of a tool', async () => {
    const { launch, end, ask, session } = openStage({ client: { ...claude, maxContinuations: 1 } })
    await launch('a')
    await launch('b')
    await end('a')
    await end('b')
    expect(await ask({ event: 'stop' })).toContain('the result of a')
    await launch('c')
    await end('c')
    expect(await ask({ event: 'stop', isContinued: true })).toBeUndefined()
    session.toolCalled()
    expect(await ask({ event: 'stop', isContinued: true })).toContain('the result of c')
  })

  it('is informed in the last message about what is not waited for', async () => {
    const { launch, ask, clock } = openStage({ client: { ...claude, maxContinuations: 1 } })
    await launch('a')
    const stopped = ask({ event: 'stop' })
    await settle()
    clock.advance(claude.stopMs)
    expect(await stopped).toContain('They end with this client, and their results are lost.')
  })
})

describe('an interactive client', () => {
  it('is answered at once at the end of a turn', async () => {
    const { launch, ask } = openStage({ isHeadless: false })
    await launch('a')
    expect(await ask({ event: 'stop' })).toBeUndefined()
  })

  it('is woken while it is idle', async () => {
    const { launch, end, ask, deliveryOf } = openStage({ isHeadless: false })
    await launch('a')
    const [stopped, woken] = [ask({ event: 'stop' }), ask({ event: 'wake' })]
    expect(await stopped).toBeUndefined()
    expect(await hasSettled(woken)).toBe(false)
    await end('a')
    const text = await woken
    expect(text).toContain('the result of a')
    expect(await ask({ event: 'prompt', prompt: text ?? '' })).toBeUndefined()
    expect(deliveryOf('a')).toBe('delivered')
  })

  it('is woken with its own command when something is owed, which the next prompt brings', async () => {
    const { session, launch, end, ask } = openStage({ client: codex, isHeadless: false })
    expect(await session.isOwedWhileIdle()).toBe(false)
    await launch('a')
    expect(await ask({ event: 'stop' })).toBeUndefined()
    const owed = session.isOwedWhileIdle()
    expect(await hasSettled(owed)).toBe(false)
    await end('a')
    expect(await owed).toBe(true)
    expect(await ask({ event: 'prompt', prompt: 'A background task has ended.' })).toContain('the result of a')
  })

  it('is not woken with its own command when a person writes first', async () => {
    const { session, launch, end, ask, clock } = openStage({ client: codex, isHeadless: false })
    await launch('a')
    await ask({ event: 'stop' })
    const owed = session.isOwedWhileIdle()
    await ask({ event: 'prompt', prompt: 'Hello' })
    await end('a')
    expect(await owed).toBe(false)
    expect(clock.nextDue).toBeUndefined()
  })

  it('is not woken while a turn runs, which a person has begun', async () => {
    const { launch, end, ask } = openStage({ isHeadless: false })
    await launch('a')
    const woken = ask({ event: 'wake' })
    await settle()
    await ask({ event: 'prompt', prompt: 'Hello' })
    await end('a')
    expect(await woken).toBeUndefined()
    expect(await ask({ event: 'stop' })).toContain('the result of a')
  })

  it('that has no such hook is not woken, and neither is a client that ends with its turn', async () => {
    for (const [client, isHeadless] of [
      [codex, false],
      [claude, true],
    ] as const) {
      const { launch, ask } = openStage({ client, isHeadless })
      await launch('a')
      expect(await ask({ event: 'wake' })).toBeUndefined()
    }
  })

  it('gets nothing with a prompt if its hook can add nothing to one', async () => {
    const { launch, end, ask, deliveryOf } = openStage({ client: opencode, isHeadless: false })
    await launch('a')
    await end('a')
    expect(await ask({ event: 'prompt', prompt: 'Hello' })).toBeUndefined()
    expect(deliveryOf('a')).toBe('owed')
  })
})

describe('another conversation of the same client', () => {
  it('gets the results of the one before, which says so', async () => {
    const { launch, end, ask } = openStage()
    await launch('a')
    await ask({ event: 'start', sessionId: 'two' })
    await end('a')
    const text = await ask({ event: 'stop', sessionId: 'two' })
    expect(text).toContain('Launched in an earlier conversation of this client: a.')
  })

  it('gets nothing with an id that is not the newest', async () => {
    const { launch, end, ask, deliveryOf } = openStage()
    await launch('a')
    await end('a')
    await ask({ event: 'start', sessionId: 'two' })
    expect(await ask({ event: 'stop', sessionId: 'one' })).toBeUndefined()
    expect(await ask({ event: 'wake', sessionId: 'three' })).toBeUndefined()
    expect(deliveryOf('a')).toBe('owed')
  })
})

it('a result is owed again whose answer was lost while another call leased something', async () => {
  const store = memoryStore()
  const writes: (() => void)[] = []
  let isSlow = false
  const slow = {
    ...store,
    write: async (...changes: Parameters<typeof store.write>) => {
      if (isSlow) await new Promise<void>((resolve) => writes.push(resolve))
      await store.write(...changes)
    },
  }
  const { launch, end, call, ask, manager } = openStage({ store: slow, isHeadless: false })
  await launch('a')
  await launch('b')
  await end('a')
  await manager.stored()
  isSlow = true
  const first = call({ event: 'prompt', prompt: 'Hello' })
  await end('b')
  const second = call({ event: 'stop' })
  isSlow = false
  for (const write of writes.splice(0)) write()
  const [lost, other] = [await first, await second]
  lost.end(false)
  other.end(true)
  const texts = [await ask({ event: 'prompt', prompt: 'again' }), await ask({ event: 'prompt', prompt: 'again' })]
  expect(texts.join('\n')).toContain('the result of a')
  expect(texts.join('\n')).toContain('the result of b')
})

it('answers nothing when the lease cannot be stored, and owes the result again', async () => {
  const store = memoryStore()
  const { launch, end, call, manager, deliveryOf } = openStage({ store })
  await launch('a')
  await manager.stored()
  await end('a')
  store.close()
  const { text } = await call({ event: 'stop' })
  expect(text).toBeUndefined()
  expect(deliveryOf('a')).toBe('owed')
})
