/** The types of handles and turns of `agent-tasks`: compiled by `npm run types`, never run. */
import type { Observable } from 'rxjs'
import { expectTypeOf } from 'vitest'
import {
  createAgentTasks,
  functionRunner,
  processRunner,
  TaskCancelledError,
  TaskFailedError,
  type AgentTasks,
  type AsyncTaskInfo,
  type AsyncTaskManager,
  type AsyncTaskReminderService,
  type LaunchOptions,
  type OutputObject,
  type OutputOf,
  type ScheduleInput,
  type Subagents,
  type TaskHandle,
  type TaskProgress,
  type TaskQuestion,
  type TriggerAgentTurn,
} from 'agent-tasks'
import type { TaskManager } from 'agent-tasks/server'
import type { SendResult } from '../../src/features/questions/messages.js'
import type { CancelledTaskInfo, FailedTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import type { TaskOutputEvent } from '../../src/features/output/output-stream.js'
import { createTurns, type AgentTurns } from '../../src/parts.js'

const tasks = createAgentTasks({
  subagents: {
    echo: ({ goal }) => goal,
    later: async () => Promise.resolve('text'),
    nothing: () => undefined,
    maybe: (_request, { attempt }) => (attempt > 1 ? 'text' : undefined),
    count: async ({ goal }) => Promise.resolve({ final_message: goal, words: 3, at: new Date(), of: ['a'] }),
    defined: { description: 'a definition', run: () => ({ emitted_vars: { n: 1 } }) },
    open: (): OutputObject => ({}),
    fn: functionRunner(() => 'text'),
    program: processRunner({ command: 'ls' }),
  },
})

export function aHandleHasTheOutputOfItsSubagent(): void {
  type Message = { readonly final_message: string }
  expectTypeOf(tasks.launch('echo', 'hi').result).toEqualTypeOf<Promise<Message>>()
  expectTypeOf(tasks.launch('later', 'hi').result).toEqualTypeOf<Promise<Message>>()
  expectTypeOf(tasks.launch('nothing', 'hi').result).resolves.toEqualTypeOf<{ readonly final_message?: undefined }>()
  expectTypeOf(tasks.launch('maybe', 'hi').result).resolves.toHaveProperty('final_message')
  expectTypeOf(tasks.launch('count', 'hi').result).resolves.toEqualTypeOf<{
    readonly final_message: string
    readonly words: number
    readonly at: string
    readonly of: readonly string[]
  }>()
  expectTypeOf(tasks.launch('defined', 'hi').result).resolves.toEqualTypeOf<{
    readonly emitted_vars: { readonly n: number }
  }>()
  for (const name of ['open', 'fn', 'program'] as const) {
    expectTypeOf(tasks.launch(name, 'hi').result).toEqualTypeOf<Promise<OutputObject>>()
  }
  expectTypeOf<OutputOf<() => Promise<{ readonly n: bigint; readonly m: Map<string, Set<symbol>> }>>>().toEqualTypeOf<{
    readonly n: string
    readonly m: Readonly<Record<string, readonly string[]>>
  }>()
}

export function onlyKnownSubagentsAreLaunched(): void {
  // @ts-expect-error there is no such subagent
  tasks.launch('ech', 'hi')
  // @ts-expect-error a goal is text
  tasks.launch('echo', 5)
  // @ts-expect-error no such option
  tasks.launch('echo', 'hi', { timeout: 5 })
  // @ts-expect-error the name is the first argument
  expectTypeOf<LaunchOptions>().toHaveProperty('subagentName')
  tasks.launch('echo', 'hi', { owner: 'anna', timeoutMs: 5, whenFull: 'queue', priority: 1, context: {} })
}

export async function aHandleIsTyped(handle: TaskHandle<{ readonly n: number }>): Promise<void> {
  expectTypeOf(handle.id).toEqualTypeOf<string>()
  expectTypeOf(handle.record).toEqualTypeOf<AsyncTaskInfo>()
  expectTypeOf(handle.output$).toEqualTypeOf<Observable<TaskOutputEvent>>()
  expectTypeOf(handle.cancel('why')).toEqualTypeOf<boolean>()
  expectTypeOf(handle.send('text')).toEqualTypeOf<SendResult>()
  expectTypeOf(handle.answer('q1', { name: 'Ada' })).toEqualTypeOf<boolean>()
  // @ts-expect-error the result is read, not set
  handle.result = Promise.resolve({ n: 1 })
  for await (const event of handle) {
    if (event.type === 'progress') expectTypeOf(event.progress).toEqualTypeOf<TaskProgress>()
    else if (event.type === 'question') expectTypeOf(event.question).toEqualTypeOf<TaskQuestion>()
    else if (event.type === 'output') expectTypeOf(event.text).toEqualTypeOf<string>()
    else expectTypeOf(event.record).toEqualTypeOf<SettledTaskInfo>()
  }
}

export function errorsHaveRecords(error: unknown): void {
  if (error instanceof TaskFailedError) expectTypeOf(error.record).toEqualTypeOf<FailedTaskInfo>()
  if (error instanceof TaskCancelledError) expectTypeOf(error.record).toEqualTypeOf<CancelledTaskInfo>()
}

export function aHostOfKnownSubagentsIsAHost(manager: TaskManager, subagents: Subagents): void {
  const any: AgentTasks = tasks
  expectTypeOf(any.launch('whatever', 'hi').result).toEqualTypeOf<Promise<OutputObject>>()
  expectTypeOf(createAgentTasks({ subagents }).launch('whatever', 'hi').result).toEqualTypeOf<Promise<OutputObject>>()
  expectTypeOf(createAgentTasks().launch('whatever', 'hi').result).toEqualTypeOf<Promise<OutputObject>>()
  expectTypeOf(tasks.manager).toEqualTypeOf<AsyncTaskManager>()
  expectTypeOf(tasks.reminders).toEqualTypeOf<AsyncTaskReminderService>()
  const both = createAgentTasks({
    taskManager: manager,
    commands: { allow: ['ls'] },
    subagents: { echo: () => 'text' },
  })
  expectTypeOf(both.launch('echo', 'hi').result).toEqualTypeOf<Promise<{ readonly final_message: string }>>()
  expectTypeOf(both.tools).toHaveProperty('submit_commands')
  expectTypeOf(both.tools).toHaveProperty('run_command')
  expectTypeOf(both.tools).not.toHaveProperty('schedule')
  expectTypeOf(createAgentTasks({ schedules: {} }).tools).toHaveProperty('schedule')
}

export function aScheduleHasOneTimeAndOneThingToDo(input: ScheduleInput): void {
  tasks.schedule(input)
  tasks.schedule({ in: 5, message: 'x', owner: 'anna' })
  tasks.schedule({ at: new Date(0), launch: { subagent: 'echo', goal: 'x' }, timeZone: 'UTC', missed: 'skip' })
  tasks.manager.schedule({ cron: '@daily', message: 'x', every: undefined })
  // @ts-expect-error it needs a time
  tasks.schedule({ message: 'x' })
  // @ts-expect-error it needs one time
  tasks.schedule({ in: 5, every: 10_000, message: 'x' })
  // @ts-expect-error it needs something to do
  tasks.schedule({ in: 5 })
  // @ts-expect-error it does one thing
  tasks.schedule({ in: 5, message: 'x', launch: { subagent: 'echo', goal: 'x' } })
  // @ts-expect-error no such field
  tasks.schedule({ in: 5, message: 'x', goal: 'x' })
}

export function conversationsAnswerWhatRespondReturns(): void {
  const answers = createAgentTasks({
    respond: ({ text, conversation }) => {
      expectTypeOf(conversation.send('x')).toEqualTypeOf<Promise<unknown>>()
      return [{ role: 'assistant', content: text }]
    },
  })
  const answer = answers.conversation('a').send('x')
  expectTypeOf(answer).toEqualTypeOf<Promise<{ role: string; content: string }[]>>()
  const later = createAgentTasks({
    subagents: { echo: ({ goal }) => goal },
    respond: async ({ text }) => Promise.resolve(text.length),
    openConversation: (id) => (id === 'x' ? false : {}),
  })
  expectTypeOf(later.conversation('a').send('x')).toEqualTypeOf<Promise<number>>()
  const anyHost: AgentTasks = later
  expectTypeOf(anyHost.conversation('a').send('x')).toEqualTypeOf<Promise<unknown>>()
  expectTypeOf(later.launch('echo', 'x').result).resolves.toEqualTypeOf<{ readonly final_message: string }>()
  // @ts-expect-error another answer than that of the host
  later.conversation('a', { respond: () => 'text' })
}

export function turnsAreTyped(): void {
  const turns = createTurns(async (text, signal) => {
    expectTypeOf(text).toEqualTypeOf<string>()
    expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
    return Promise.resolve(text.length)
  })
  expectTypeOf(turns).toEqualTypeOf<AgentTurns<number>>()
  expectTypeOf(turns.take('a', { signal: AbortSignal.timeout(5) })).toEqualTypeOf<Promise<number>>()
  expectTypeOf(turns.triggerAgentTurn).toEqualTypeOf<TriggerAgentTurn>()
  createAgentTasks({ isAgentBusy: turns.isBusy$, triggerAgentTurn: turns.triggerAgentTurn })
  // @ts-expect-error a turn has a text
  void turns.take()
  // @ts-expect-error no such option
  void turns.take('a', { timeoutMs: 5 })
}
