import { afterEach, describe, expect, it } from 'vitest'
import { AsyncTaskManager, type RunContext } from '../../../src/index.js'

const managers: AsyncTaskManager[] = []

function launch(run: (input: unknown, context: RunContext) => unknown): AsyncTaskManager {
  const manager = new AsyncTaskManager()
  managers.push(manager)
  manager.launch({ id: 'a', subagentName: 'agent', goalPrompt: 'look' }, run as never)
  return manager
}

afterEach(() => {
  for (const manager of managers.splice(0)) void manager.dispose()
})

describe('the context of a run', () => {
  it('can be copied by a runner that wraps another one', async () => {
    let copy: RunContext | undefined
    const manager = launch(async (_input, context) => {
      copy = { ...context }
      copy.append('from the copy')
      copy.report(0.5)
      await new Promise<void>((resolve) => context.signal.addEventListener('abort', () => resolve()))
    })
    await Promise.resolve()
    const fields = [
      'append',
      'ask',
      'attempt',
      'children',
      'launch',
      'messages',
      'offer',
      'owner',
      'report',
      'setSession',
    ]
    expect(Object.keys(copy ?? {}).sort()).toEqual([
      ...fields,
      ...['signal', 'sleep', 'spend', 'step', 'taskId', 'waitFor', 'wrapUp'],
    ])
    expect(copy).toMatchObject({ taskId: 'a', owner: 'main', attempt: 1 })
    expect(manager.readOutput('a')?.text).toBe('from the copy')
    manager.cancelTask('a')
    expect(copy?.signal.aborted).toBe(true)
  })

  it('has methods that can be taken out of it', async () => {
    const manager = launch((_input, context) => {
      const { append, report } = { ...context } as unknown as Record<string, (value: unknown) => void>
      append?.('taken out')
      report?.(1)
      return { final_message: 'done' }
    })
    const [record] = await manager.waitFor(['a']).then(({ settled }) => settled)
    expect(record).toMatchObject({ status: 'completed', progress: { progress: 1 } })
    expect(manager.readOutput('a')?.text).toBe('taken out')
  })
})
