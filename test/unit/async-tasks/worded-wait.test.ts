/** A wait whose result becomes a text for a model: nothing may be lost between the end of a task and the result. */
import { describe, expect, it, vi } from 'vitest'
import type { WordedWaitOptions } from '../../../src/async-tasks/waiting.js'
import { setUpHost, settle } from '../tools/tool-host.js'

describe('a wait with a text', () => {
  it('A7: calls onSettled before the tasks are acknowledged and may be pruned', async () => {
    const { manager, register } = setUpHost({ maxAsyncTasks: 0 })
    register('a')
    const seen: unknown[] = []
    const options: WordedWaitOptions = {
      onSettled: (ended) => {
        seen.push(...ended.map(({ id }) => [id, manager.getTask(id)?.delivery]))
        manager.registry.send({ type: 'text.cut', taskIds: ['a'] })
        return ended
      },
    }
    const waiting = manager.waitFor(['a'], options)
    manager.completeTask('a', { final_message: 'done' })
    expect((await waiting).settled).toMatchObject([{ id: 'a', delivery: 'delivered' }])
    expect(seen).toEqual([['a', 'leased']])
    expect(manager.getTask('a')).toMatchObject({ delivery: 'delivered' })
  })

  it('A5: delivers only the tasks that onSettled returns', async () => {
    const { manager, register } = setUpHost()
    for (const id of ['a', 'b', 'c']) register(id)
    const options: WordedWaitOptions = {
      mode: 'any',
      onSettled: (ended, pending) => {
        expect(pending.map(({ id }) => id)).toEqual(['c'])
        return ended.filter(({ id }) => id === 'b')
      },
    }
    for (const id of ['a', 'b']) manager.completeTask(id, {})
    const { settled } = await manager.waitFor(['a', 'b', 'c'], options)
    expect(settled.map(({ id }) => id)).toEqual(['a', 'b'])
    expect(manager.getAllTasks().map((task) => task.delivery)).toEqual(['owed', 'delivered', 'none'])
  })

  it('A5: releases what it has when onSettled throws', async () => {
    const { manager, register } = setUpHost()
    register('a')
    const options: WordedWaitOptions = {
      onSettled: () => {
        throw new Error('no words')
      },
    }
    const waiting = manager.waitFor(['a'], options)
    manager.completeTask('a', {})
    await expect(waiting).rejects.toThrow('no words')
    expect(manager.getTask('a')?.delivery).toBe('owed')
  })
})

describe('a wait', () => {
  it('A5: that is aborted immediately after the end acknowledges nothing', async () => {
    const { manager, register } = setUpHost()
    register('a')
    const controller = new AbortController()
    const onSettled = vi.fn()
    const options: WordedWaitOptions = { signal: controller.signal, onSettled }
    const waiting = manager.waitFor(['a'], options)
    const outcome = expect(waiting).rejects.toThrow('stop')
    await settle()
    manager.completeTask('a', {})
    controller.abort(new Error('stop'))
    await outcome
    expect(onSettled).not.toHaveBeenCalled()
    expect(manager.getTask('a')?.delivery).toBe('owed')
  })
})
