/** Long results in messages: what is shown, what is said about the rest, and what is copied. */
import { describe, expect, it, vi } from 'vitest'
import { AsyncTaskManager, AsyncTaskReminderService, createAgentTasks, type OutputObject } from 'agent-tasks'
import { boundNotification } from '../../../src/features/delivery/notifications.js'
import { PREVIEW_BYTES, previewJson } from '../../../src/features/output/result-preview.js'
import { estimateJsonChars } from '../../../src/data/json-text.js'

const HUGE = 100 * 1024 * 1024

function completed(output: OutputObject, id = 'a') {
  const manager = new AsyncTaskManager()
  manager.registerTask({ id, subagentName: 'talker', goalPrompt: 'talk' })
  manager.completeTask(id, output)
  return manager
}

const shownBy = (manager: AsyncTaskManager): string => new AsyncTaskReminderService(manager).generateReminder()

describe('a message about a long result', () => {
  it('F3: has at most 2 KB of it, with its ends, its size and how to read it', () => {
    const message = shownBy(completed({ final_message: `first ${'x'.repeat(50_000)} last` }))
    const about = message.slice(message.indexOf('{'))
    expect(Buffer.byteLength(about)).toBeLessThanOrEqual(PREVIEW_BYTES + '\n---'.length)
    expect(Buffer.byteLength(about)).toBeGreaterThan(PREVIEW_BYTES * 0.7)
    expect(about).toMatch(/"final_message": "first x+\.\.\. \[\d+ characters left out\] \.\.\.x+ last"/)
    expect(about).toMatch(
      /\[Cut to a preview: it has about 50\d\d\d characters\. Read the rest with check_async_tasks \{"task_id":"a","action":"output","part":"result"\}\]/,
    )
  })

  it('F3: copies no more of 100 MB than it shows', async () => {
    const manager = completed({
      final_message: `first ${'x'.repeat(HUGE)} last`,
      emitted_vars: { log: 'y'.repeat(HUGE) },
    })
    const reminders = new AsyncTaskReminderService(manager)
    const sizes: number[] = []
    const { stringify } = JSON
    const encode = TextEncoder.prototype.encode.bind(new TextEncoder())
    vi.spyOn(JSON, 'stringify').mockImplementation((...args: Parameters<typeof stringify>) => {
      sizes.push(estimateJsonChars(args[0]))
      return stringify(...args)
    })
    vi.spyOn(TextEncoder.prototype, 'encode').mockImplementation((text) => {
      sizes.push(text?.length ?? 0)
      return encode(text)
    })
    const message = reminders.leaseReminder()?.text ?? ''
    vi.restoreAllMocks()
    expect(message.length).toBeLessThan(PREVIEW_BYTES + 300)
    expect(message).toContain('last"')
    expect(sizes.length).toBeGreaterThan(0)
    expect(Math.max(...sizes)).toBeLessThan(4 * PREVIEW_BYTES)
    await manager.dispose()
  })

  it('F3: splits no character, and shows every field', () => {
    const message = shownBy(
      completed({ final_message: '😀'.repeat(20_000), emitted_vars: { one: '€'.repeat(30_000), two: 2 } }),
    )
    expect(Buffer.from(message).toString()).toBe(message)
    expect(message).toMatch(/"one": "€+\.\.\. /)
    expect(message).toContain('"two": 2')
    expect(message).toMatch(/"final_message": "(😀)+\.\.\. \[\d+ characters left out\] \.\.\.(😀)+"/)
  })

  it('F3: splits no character wherever it cuts', () => {
    for (let before = 0; before < 8; before += 1) {
      const message = shownBy(
        completed({ final_message: `${'x'.repeat(before)}${'😀'.repeat(20_000)}${'y'.repeat(before % 3)}` }),
      )
      // JSON escapes half a character.
      expect(message).not.toMatch(/\\ud[89a-f]/)
    }
  })

  it('F3: shows both ends of a text after a list that would take all the room', () => {
    const list = Array.from({ length: 20_000 }, (_, index) => index)
    const message = shownBy(completed({ emitted_vars: { list }, final_message: `first ${'x'.repeat(20_000)} last` }))
    expect(message).toMatch(/items left out\]"[^]*"final_message": "first x+[^]*x+ last"/)
  })

  it('F3: leaves room for other results in the message', () => {
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1 })
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
      manager.registerTask({ id, subagentName: 'talker', goalPrompt: 'talk' })
      manager.completeTask(id, { final_message: id.repeat(30_000) })
    }
    expect(new AsyncTaskReminderService(manager).leaseReminder()?.taskIds).toHaveLength(8)
  })

  it('F3: is shown in place by a call that waited for it, too', async () => {
    const { tools } = createAgentTasks({ subagents: { talker: () => ({ final_message: 'x'.repeat(HUGE) }) } })
    const { llmContent, returnDisplay } = await tools.task.execute({ subagent_name: 'talker', goal_prompt: 'talk' })
    expect(Buffer.byteLength(llmContent)).toBeLessThanOrEqual(PREVIEW_BYTES)
    expect(returnDisplay.length).toBeLessThanOrEqual(20_000)
  })

  it('F3: is its beginning where less than a preview may be shown', () => {
    const task = completed({ final_message: 'x'.repeat(50_000) }).getTask('a')!
    expect(boundNotification(task, 200).text).toMatch(
      /^[^]{200}\n\[Cut after 200 of 50\d\d\d characters\. Read the rest with /,
    )
    expect(boundNotification(task, PREVIEW_BYTES).text).toContain('[Cut to a preview')
  })

  it('F3: fits also with an id of 512 characters that all are escaped', () => {
    const task = completed({ final_message: 'x'.repeat(50_000) }, '"'.repeat(512)).getTask('"'.repeat(512))!
    const { text, isCut } = boundNotification(task, 20_000)
    expect(isCut).toBe(true)
    expect(text.length).toBeLessThan(2 * PREVIEW_BYTES)
  })
})

describe('a preview', () => {
  it('F3: fits, whatever takes the room', () => {
    const frame = (text: string): string => `${text}.`
    for (const value of [
      { ['k'.repeat(9_000)]: 1 },
      { list: Array.from({ length: 9_000 }, (_, index) => index) },
      { text: '\u0001'.repeat(9_000) },
      Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`€${index}`, '€'])),
    ]) {
      expect(Buffer.byteLength(previewJson(value, frame))).toBeLessThanOrEqual(PREVIEW_BYTES)
    }
  })
})
