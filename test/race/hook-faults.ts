/** Sessions with a planted fault, which the property of hooks must find. */
import type { AsyncTaskManager } from '../../src/index.js'
import { HookSession, type HookSessionOptions } from '../../src/features/hooks/hook-session.js'
import type { LeasedReminder } from '../../src/features/delivery/reminder-service.js'
import type { CreateSession } from './hooks.property.js'

type Lease = (message: LeasedReminder, manager: AsyncTaskManager) => LeasedReminder

const withLease =
  (change: Lease): CreateSession =>
  (options, id) =>
    new HookSession(
      {
        ...options,
        lease: () => {
          const message = options.lease()
          return message && change(message, options.manager)
        },
      },
      id,
    )

const withOptions =
  (change: (options: HookSessionOptions) => Partial<HookSessionOptions>): CreateSession =>
  (options, id) =>
    new HookSession({ ...options, ...change(options) }, id)

export const hookFaults: Readonly<Record<string, CreateSession>> = {
  'a call confirms what it returns': withLease((message) => {
    message.acknowledge()
    return message
  }),
  'what is not proven is owed again without a mark': withLease((message) => ({
    ...message,
    release: () => message.release(),
  })),
  'what is not proven is never owed again': withLease((message) => ({ ...message, release: () => undefined })),
  'everything counts as proven by the transcript': withOptions(() => ({ isInTranscript: () => true })),
  'a lost answer counts as written': (options, id) => {
    const session = new HookSession(options, id)
    return {
      toolCalled: () => session.toolCalled(),
      close: () => session.close(),
      answer: async (call, signal) => ({ text: (await session.answer(call, signal)).text, end: () => undefined }),
    }
  },
  'a turn that no hook has continued proves its message': (options, id) => {
    const session = new HookSession(options, id)
    return {
      toolCalled: () => session.toolCalled(),
      close: () => session.close(),
      answer: (call, signal) => session.answer({ ...call, isContinued: true }, signal),
    }
  },
}
