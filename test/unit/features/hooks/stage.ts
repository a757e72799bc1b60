/** A conversation of a client with hooks, whose transcript and clock belong to the test. */
import { AsyncTaskManager, AsyncTaskReminderService } from '../../../../src/index.js'
import { claude } from '../../../../src/features/hooks/claude.js'
import type { HookCall, HookClient } from '../../../../src/features/hooks/hook-client.js'
import { HookSession, type HookAnswer } from '../../../../src/features/hooks/hook-session.js'
import type { MemoryStore } from '../../../../src/store/index.js'
import { createManualClock } from '../../../../src/testing/index.js'
import { registryOf } from '../../../../src/async-tasks/manager.js'
import { hookDeliveries } from '../../../../src/features/hooks/hook-deliveries.js'

const OWNER = 'main'

export interface StageOptions {
  readonly client?: HookClient
  readonly isHeadless?: boolean
  readonly id?: string
  readonly store?: MemoryStore
  /** What a resumed conversation gives to the model again. */
  readonly transcript?: string[]
  /** Whether the client keeps a transcript. Default false. */
  readonly hasTranscript?: boolean
}

export function openStage({
  client = claude,
  isHeadless = true,
  id = 'one',
  store,
  transcript = [],
  hasTranscript = false,
}: StageOptions = {}) {
  const clock = createManualClock(0)
  const ends = new Map<string, (text: string) => void>()
  const errors: unknown[] = []
  const manager = new AsyncTaskManager({
    clock,
    graceMs: 0,
    maxAsyncTasks: 20,
    onError: (error) => errors.push(error),
    findRunner: () => ({ run: () => new Promise<string>(() => undefined) }),
    ...(store !== undefined && { store }),
  })
  manager.reads.use(hookDeliveries).hasMessage = (_place, deliveryId) =>
    transcript.some((text) => text.includes(deliveryId))
  const reminders = new AsyncTaskReminderService(manager)
  const session = new HookSession(
    {
      manager,
      owner: OWNER,
      client,
      lease: () => reminders.leaseReminder({ owner: OWNER }),
      isHeadless: () => isHeadless,
      isInTranscript: (path, token) => path !== undefined && transcript.some((text) => text.includes(token)),
      isTranscript: () => hasTranscript,
      hasStore: store !== undefined,
    },
    id,
  )
  const launch = async (taskId: string): Promise<void> => {
    const run = (): Promise<string> => new Promise((resolve) => ends.set(taskId, resolve))
    manager.launch({ id: taskId, subagentName: 's', goalPrompt: 'g', owner: OWNER }, { run })
    await settle()
  }
  const end = async (taskId: string): Promise<void> => {
    ends.get(taskId)?.(`the result of ${taskId}`)
    await settle()
  }
  const call = (
    fields: Partial<HookCall> & Pick<HookCall, 'event'>,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<HookAnswer> => session.answer({ sessionId: id, transcriptPath: '/transcript', ...fields }, signal)
  /** Calls a hook, and writes the answer to the client. */
  const ask = async (fields: Partial<HookCall> & Pick<HookCall, 'event'>): Promise<string | undefined> => {
    const { text, end: written } = await call(fields)
    written(true)
    return text
  }
  const deliveryOf = (taskId: string) => manager.getTask(taskId)?.delivery
  return {
    clock,
    manager,
    registry: registryOf(manager),
    session,
    launch,
    end,
    call,
    ask,
    deliveryOf,
    transcript,
    errors,
  }
}

export const settle = async (): Promise<void> => {
  for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Whether a promise has settled. */
export async function hasSettled(promise: Promise<unknown>): Promise<boolean> {
  let is = false
  void promise.then(() => (is = true))
  await settle()
  return is
}

export const tokenIn = (text: string | undefined): string => /Delivery ID: (\S+)/.exec(text ?? '')?.[1] ?? 'no token'

export type { HookAnswer }
