/** The lookup of a subagent ends with the signal of the call, although it cannot be stopped itself. */
import { describe, expect, it, vi } from 'vitest'
import { resolveRunner } from '../../../src/engine/definition.js'
import {
  bindSubagent,
  subagentEntry,
  type Subagent,
  type SubagentParams,
  type SubagentRunner,
} from '../../../src/tools/subagents.js'
import { deferred } from './tool-host.js'

const params: SubagentParams = { subagent_name: 'helper', goal_prompt: 'help' }
const helper: Subagent = () => ({ final_message: 'helped' })

describe('the lookup of a subagent', () => {
  it('returns a runner, and removes its abort listener', async () => {
    const { signal } = new AbortController()
    const [add, remove] = [vi.spyOn(signal, 'addEventListener'), vi.spyOn(signal, 'removeEventListener')]
    expect(await bindSubagent(() => helper, params, signal)).toMatchObject({ run: expect.any(Function) as unknown })
    expect(await bindSubagent(() => undefined, params, signal)).toBeUndefined()
    expect(add).toHaveBeenCalledTimes(2)
    expect(remove).toHaveBeenCalledTimes(2)
  })

  it('rejects with the reason of the abort, and ignores a later result', async () => {
    const controller = new AbortController()
    const hanging = deferred<Subagent>()
    const bound = bindSubagent(() => hanging.promise, params, controller.signal)
    controller.abort(new Error('enough'))
    await expect(bound).rejects.toThrow('enough')
    hanging.reject(new Error('too late'))
  })

  it('rejects at once when the signal has already aborted, with an Error whatever the reason is', async () => {
    const hanging = bindSubagent(() => deferred<Subagent>().promise, params, AbortSignal.abort('a string'))
    await expect(hanging).rejects.toThrow('Aborted.')
  })

  it('waits for the result when there is no signal', async () => {
    expect(await bindSubagent(() => Promise.resolve(helper), params)).toMatchObject({
      run: expect.any(Function) as unknown,
    })
  })
})

describe('what runs the tasks of a subagent', () => {
  const run = vi.fn<SubagentRunner>(() => 'done')
  const retry = { attempts: 2, on: ['interrupted'] } as const
  const said = {
    retry,
    budget: { steps: 1 },
    survivesHost: true,
    takesMessages: true,
    isBound: true,
    isUnique: true,
    foundAs: 'other',
  }

  it.each<[string, Subagent]>([
    ['a definition', { ...said, run }],
    ['definitions inside one another', { run: { ...said, retry: undefined, run }, retry }],
  ])('has all that %s says, also when it is looked up', async (_what, subagent) => {
    expect(resolveRunner(subagent)).toEqual({ ...said, run: expect.any(Function) as unknown })
    expect(await bindSubagent(() => subagent, params)).toEqual({ ...said, run: expect.any(Function) as unknown })
  })

  it('is listed with its description, also one inside', () => {
    const described: Subagent = { run, description: 'Helps.' }
    expect(subagentEntry('a', { run: described, retry })).toEqual({ name: 'a', description: 'Helps.' })
    expect(subagentEntry('b', run)).toEqual({ name: 'b', description: undefined })
  })
})
