/** A launch whose caller waits for it in place does not count against the limit. */
import { describe, expect, it } from 'vitest'
import { TaskLimitError } from '../../../src/errors.js'
import { controlledRun, setUpHost, settle } from '../tools/tool-host.js'

const input = { subagentName: 'helper', goalPrompt: 'do it' }

describe('a launch in the foreground', () => {
  it('A3: is not refused at the limit, and takes no slot from a background task', async () => {
    const { manager } = setUpHost({ maxAsyncTasks: 1 })
    const [first, second, background] = [controlledRun(), controlledRun(), controlledRun()]
    manager.launch({ ...input, isForeground: true }, first.run)
    expect(manager.canLaunchAsync()).toEqual({ allowed: true })
    manager.launch(input, background.run)
    expect(() => manager.launch(input, second.run)).toThrow(TaskLimitError)
    manager.launch({ ...input, isForeground: true }, second.run)
    await settle()
    expect([first, second, background].map(({ run }) => run.mock.calls.length)).toEqual([1, 1, 1])
  })

  it('A3: frees no slot that it did not take', async () => {
    const { manager } = setUpHost({ maxAsyncTasks: 1 })
    const [foreground, background] = [controlledRun(), controlledRun()]
    manager.launch(input, background.run)
    manager.launch({ ...input, isForeground: true }, foreground.run)
    foreground.finish({})
    await settle()
    expect(manager.canLaunchAsync().allowed).toBe(false)
  })

  it('A1: ends as any other task does', async () => {
    const { manager, clock } = setUpHost({ maxAsyncTasks: 0, graceMs: 10 })
    const hanging = controlledRun()
    const { id } = manager.launch({ ...input, isForeground: true, timeoutMs: 1_000 }, hanging.run)
    await settle()
    clock.advance(1_010)
    expect(manager.getTask(id)).toMatchObject({ status: 'failed', delivery: 'owed' })
  })

  it('F5: a child takes no place of the tasks whose callers wait for them', async () => {
    const { manager } = setUpHost({ maxForegroundTasks: 1 })
    const [parent, child] = [controlledRun(), controlledRun()]
    const { id: parentId } = manager.launch({ ...input, isForeground: true }, parent.run)
    await settle()
    expect(manager.launch({ ...input, isForeground: true, parentId }, child.run)).toMatchObject({ status: 'running' })
    expect(() => manager.launch({ ...input, isForeground: true }, controlledRun().run)).toThrow(TaskLimitError)
    parent.finish({})
    await settle()
    manager.launch({ ...input, isForeground: true }, controlledRun().run)
  })
})
