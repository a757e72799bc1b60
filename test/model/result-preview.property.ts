/** F3: a result that is too long for a message is a preview of 2 KB, with both ends of its texts, and the call that reads all of it. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { formatCompletionNotification } from '../../src/features/delivery/notifications.js'
import { AsyncTaskReminderService } from '../../src/features/delivery/reminder-service.js'
import { createCheckAsyncTasksTool, type CheckAsyncTasksParams } from '../../src/tools/check-async-tasks.js'

/** Makes what writes the messages; a planted fault makes it wrong. */
export type CreateReminders = (manager: AsyncTaskManager) => AsyncTaskReminderService

const MAX_CHARS = 3000

/** A text that is short, or much longer than a message. */
const text = fc
  .tuple(
    fc.string({ unit: fc.constantFrom('a', '€', '😀', '\n', '"', '\u0001'), minLength: 1, maxLength: 9 }),
    fc.constantFrom(1, 30, 2000),
  )
  .map(([part, times]) => part.repeat(times))

const output = fc.record(
  {
    emitted_vars: fc.dictionary(fc.stringMatching(/^[a-z]{1,4}$/), fc.oneof(text, fc.array(text, { maxLength: 30 })), {
      maxKeys: 3,
    }),
    terminate_reason: text,
    final_message: text,
  },
  { requiredKeys: ['final_message'] },
)

export function resultPreviewProperty(
  create: CreateReminders = (manager) => new AsyncTaskReminderService(manager, { maxMessageChars: MAX_CHARS }),
) {
  return fc.asyncProperty(output, async (result) => {
    const manager = new AsyncTaskManager({ onError: () => undefined })
    manager.registerTask({ id: 'a', subagentName: 'talker', goalPrompt: 'talk' })
    manager.completeTask('a', result)
    const message = create(manager).leaseReminder()?.text ?? ''
    const [, , notification = ''] = /\nOutput of task a .*:\n(`+)json\n([^]*)\n\1/.exec(message) ?? []
    assert.equal(message, Buffer.from(message).toString(), 'F3: a character was split')
    assert.ok(!/\\ud[89a-f]/.test(message), 'F3: a character was split')
    const whole = formatCompletionNotification(manager.getTask('a')!)
    if (whole.length <= MAX_CHARS) {
      assert.equal(notification, whole, 'F3')
      return
    }
    assert.ok(Buffer.byteLength(notification) <= 2048, `F3: a preview of ${Buffer.byteLength(notification)} bytes`)
    const [, json = '', call = ''] =
      /^([^]*)\n\[Cut to a preview: .* Read the rest with check_async_tasks (\{.*\})\]$/.exec(notification) ?? []
    const shown = JSON.parse(json) as { readonly final_message: string }
    const { final_message: said } = result
    assert.ok(shown.final_message.startsWith(said.slice(0, 1)) || said.length > 1, 'F3')
    if (shown.final_message !== said) {
      const [, head = '', count = '', tail = ''] =
        /^([^]*)\.\.\. \[(\d+) characters left out\] \.\.\.([^]*)$/.exec(shown.final_message) ?? []
      assert.ok(head !== '' && said.startsWith(head), 'F3: the beginning is missing')
      assert.ok(tail !== '' && said.endsWith(tail), 'F3: the end is missing')
      assert.equal(head.length + Number(count) + tail.length, said.length, 'F3')
    }
    assert.equal(
      await readAll(manager, JSON.parse(call) as CheckAsyncTasksParams),
      whole,
      'F3: the call does not read it',
    )
    await manager.dispose()
  })
}

async function readAll(manager: AsyncTaskManager, call: CheckAsyncTasksParams): Promise<string> {
  const tool = createCheckAsyncTasksTool({ getAsyncTaskManager: () => manager })
  let text = ''
  for (let cursor = 0; ;) {
    const { llmContent, metadata = {} } = await tool.execute({ ...call, cursor, max_bytes: 20_000 })
    const lines = llmContent.split('\n')
    text += lines.slice(1, -1).join('\n')
    cursor = Number(metadata['nextCursor'])
    if (metadata['remainingBytes'] === 0) return text
  }
}
