import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { callContext } from '../../../src/isolation/call-context.js'
import { currentTurn, outsideOfTurns, runInTurn, TurnMarker } from '../../../src/isolation/current-turn.js'

const user = new AsyncLocalStorage<string>()

describe('a captured context', () => {
  it('H5: has the stores of the code that captured it, and restores those of the caller', () => {
    const alice = user.run('alice', callContext)
    user.run('bob', () => {
      expect(alice.runInAsyncScope(() => user.getStore())).toBe('alice')
      expect(user.getStore()).toBe('bob')
    })
    expect(callContext().runInAsyncScope(() => user.getStore())).toBeUndefined()
  })

  it('H5: passes on the result and the exception of its function', async () => {
    const context = user.run('alice', callContext)
    const seen = await context.runInAsyncScope(async () => {
      await Promise.resolve()
      return user.getStore()
    })
    expect(seen).toBe('alice')
    expect(() =>
      context.runInAsyncScope(() => {
        throw new Error('broken')
      }),
    ).toThrow('broken')
    expect(user.getStore()).toBeUndefined()
  })

  it('H5: belongs to no turn', async () => {
    await runInTurn(new TurnMarker(), () => {
      expect(callContext().runInAsyncScope(currentTurn)).toBeUndefined()
      expect(outsideOfTurns(currentTurn)).toBeUndefined()
      expect(currentTurn()).toBeInstanceOf(TurnMarker)
    })
  })
})

describe('the marker of a turn', () => {
  it.each([
    ['resolves', () => Promise.resolve('done')],
    ['rejects', () => Promise.reject(new Error('refused'))],
  ])('H5: is that of the innermost turn, and ends with its function, which %s', async (_, end) => {
    const [outer, inner] = [new TurnMarker(), new TurnMarker()]
    let later: Promise<unknown> = Promise.resolve()
    const over = runInTurn(outer, async () => {
      expect(currentTurn()).toBe(outer)
      await runInTurn(inner, () => {
        expect(currentTurn()).toBe(inner)
        later = new Promise((resolve) => setImmediate(() => resolve(currentTurn())))
        return end()
      }).catch(() => undefined)
      expect(inner.isOver).toBe(true)
      expect(currentTurn()).toBe(outer)
    })
    await over
    expect(outer.isOver).toBe(true)
    // Code that the turn has left behind is no longer part of it.
    await expect(later).resolves.toBeUndefined()
    expect(currentTurn()).toBeUndefined()
  })
})
