/** The types of `agent-tasks`: compiled by `npm run types`, never run. */
import { BehaviorSubject } from 'rxjs'
import { expectTypeOf } from 'vitest'
import type { AsyncTaskReminderService } from 'agent-tasks'
import {
  AsyncTaskAutoTrigger,
  AsyncTaskManager,
  createAgentTasks,
  disposeOnSignals,
  functionRunner,
  processRunner,
  type ProcessError,
  type AsyncTaskInfo,
  type AsyncTaskStatus,
  type OutputObject,
  type OutputRunner,
  type RunContext,
  type RunFunction,
  type Runner,
  type TerminalStatus,
  type ToolResult,
  type TurnDelivery,
  type WaitResult,
} from 'agent-tasks'
import type { QuestionRef } from '../../machines/owed-questions.js'
import type {
  ActiveTaskInfo,
  SpentTotals,
  CancelledTaskInfo,
  CompletedTaskInfo,
  FailedTaskInfo,
  QueuedTaskInfo,
  RunningTaskInfo,
  SettledTaskInfo,
} from '../../machines/records.js'
import type { SendResult } from '../../src/features/questions/messages.js'
import type { Outcome } from '../../src/engine/engine.js'
import { type InstanceErrorCode, InstanceError } from '../../src/errors.js'
import type { ProcessFailure } from '../../src/runners/process-error.js'
import type { TaskCommandsOptions } from '../../src/host/commands/command.js'
import type { TaskTransition } from '../../machines/transitions.js'
import { parseSetting, createTaskCommands, ownerOfRun, type Engine } from '../../src/parts.js'

declare const task: AsyncTaskInfo
declare const settled: SettledTaskInfo
declare const transition: TaskTransition
declare const outcome: Outcome
declare const manager: AsyncTaskManager
declare const reminders: AsyncTaskReminderService
declare const runner: Runner

export function aRecordHasNoOutputUntilItsStatusSaysSo(): void {
  // @ts-expect-error it may be undefined
  expectTypeOf(task.output.final_message)
  // @ts-expect-error it may be undefined
  expectTypeOf(task.error.length)
}

export function aRecordIsNarrowedByItsStatus(): void {
  expectTypeOf(task.status).toEqualTypeOf<AsyncTaskStatus>()
  expectTypeOf<TerminalStatus>().toEqualTypeOf<'completed' | 'failed' | 'cancelled'>()
  expectTypeOf<ActiveTaskInfo>().toEqualTypeOf<QueuedTaskInfo | RunningTaskInfo>()
  switch (task.status) {
    case 'queued':
      expectTypeOf(task).toEqualTypeOf<QueuedTaskInfo>()
      break
    case 'running':
      expectTypeOf(task).toEqualTypeOf<RunningTaskInfo>()
      expectTypeOf(task.completedAt).toEqualTypeOf<undefined>()
      break
    case 'completed':
      expectTypeOf(task).toEqualTypeOf<CompletedTaskInfo>()
      expectTypeOf(task.output).toEqualTypeOf<OutputObject>()
      expectTypeOf(task.completedAt).toEqualTypeOf<number>()
      expectTypeOf(task.error).toEqualTypeOf<undefined>()
      break
    case 'failed':
      expectTypeOf(task).toEqualTypeOf<FailedTaskInfo>()
      expectTypeOf(task.error).toEqualTypeOf<string>()
      expectTypeOf(task.output).toEqualTypeOf<undefined>()
      break
    case 'cancelled':
      expectTypeOf(task).toEqualTypeOf<CancelledTaskInfo>()
      expectTypeOf(task.output).toEqualTypeOf<undefined>()
      expectTypeOf(task.error).toEqualTypeOf<undefined>()
      break
    default:
      expectTypeOf(task).toBeNever()
  }
  expectTypeOf(settled.status).toEqualTypeOf<TerminalStatus>()
}

export function aRecordCannotBeChanged(): void {
  // @ts-expect-error a record is read only
  task.owner = 'another'
  // @ts-expect-error a record is read only
  if (task.status === 'completed') task.output.final_message = 'another'
}

export function aTransitionIsNarrowedByItsKind(): void {
  if (transition.kind === 'status') expectTypeOf(transition.from).toEqualTypeOf<AsyncTaskStatus | null>()
  if (transition.kind === 'delivery') expectTypeOf(transition.deliveryId).toEqualTypeOf<string | undefined>()
  if (transition.kind === 'history') expectTypeOf(transition.to).toEqualTypeOf<'pruned'>()
  if (transition.kind === 'owner') expectTypeOf(transition.to).toEqualTypeOf<string>()
  // @ts-expect-error no such kind
  expectTypeOf(transition.kind === 'other')
}

export function anOutcomeIsNarrowedByItsType(): void {
  if (outcome.type === 'returned') expectTypeOf(outcome.value).toEqualTypeOf<unknown>()
  if (outcome.type === 'threw') expectTypeOf(outcome.reason).toEqualTypeOf<unknown>()
  // @ts-expect-error an abandoned run returned nothing
  if (outcome.type === 'abandoned') expectTypeOf(outcome.value)
}

export async function theManagerSaysWhatItAnswers(): Promise<void> {
  expectTypeOf(manager.registerTask({ id: 'a', subagentName: 'x', goalPrompt: 'y' })).toEqualTypeOf<RunningTaskInfo>()
  expectTypeOf(manager.launch({ subagentName: 'x', goalPrompt: 'y' }, runner)).toEqualTypeOf<ActiveTaskInfo>()
  expectTypeOf(manager.queuePosition('a')).toEqualTypeOf<number | undefined>()
  expectTypeOf(manager.spent('main')).toEqualTypeOf<SpentTotals>()
  expectTypeOf(manager.getTask('a')).toEqualTypeOf<AsyncTaskInfo | undefined>()
  expectTypeOf(manager.completeTask('a', {})).toEqualTypeOf<boolean>()
  expectTypeOf(manager.tryReserveAsyncSlot({ ttlMs: 1 })).toEqualTypeOf<string | null>()
  expectTypeOf(manager.getPendingNotifications()).toEqualTypeOf<SettledTaskInfo[]>()
  expectTypeOf((await manager.waitFor(['a'], { mode: 'any', timeoutMs: 1 })).settled).toEqualTypeOf<
    readonly SettledTaskInfo[]
  >()
  manager.onTaskCompleted((ended) => expectTypeOf(ended).toEqualTypeOf<CompletedTaskInfo>())
  manager.onTaskFailed((ended) => expectTypeOf(ended).toEqualTypeOf<FailedTaskInfo>())
  manager.onTaskCancelled((ended) => expectTypeOf(ended).toEqualTypeOf<CancelledTaskInfo>())
  manager.settled$.subscribe((ended) => expectTypeOf(ended).toEqualTypeOf<SettledTaskInfo>())
}

export function misuseOfTheManagerDoesNotCompile(): void {
  // @ts-expect-error a task has an id
  manager.registerTask({ subagentName: 'x', goalPrompt: 'y' })
  // @ts-expect-error no such option
  manager.registerTask({ id: 'a', subagentName: 'x', goalPrompt: 'y', timeout: 5 })
  // @ts-expect-error a launch needs a run
  manager.launch({ subagentName: 'x', goalPrompt: 'y' })
  // @ts-expect-error an output is an object
  manager.completeTask('a', 'done')
  // @ts-expect-error an error is a text
  manager.failTask('a', new Error('no'))
  // @ts-expect-error no such mode
  void manager.waitFor(['a'], { mode: 'some' })
  // @ts-expect-error no such option
  new AsyncTaskManager({ maxTasks: 3 })
  // @ts-expect-error what is owed is no array
  manager.owed$.subscribe((owed: string[]) => owed)
}

export function aRunnerIsTyped(): void {
  expectTypeOf(
    functionRunner((input, context) => {
      expectTypeOf(input.goal).toEqualTypeOf<string>()
      expectTypeOf(context).toEqualTypeOf<RunContext>()
      return { final_message: 'done' }
    }),
  ).toExtend<Runner>()
  expectTypeOf(processRunner({ command: 'node', args: ['-v'] })).toExtend<Runner>()
  expectTypeOf(processRunner({ command: 'node' })).toEqualTypeOf<OutputRunner>()
  expectTypeOf(processRunner({ command: 'node' }).run).returns.toEqualTypeOf<OutputObject | Promise<OutputObject>>()
  manager.launch({ subagentName: 's', goalPrompt: 'g' }, () => 'text')
  // @ts-expect-error a number is no result
  manager.launch({ subagentName: 's', goalPrompt: 'g' }, () => 42)
  // @ts-expect-error no such field
  manager.launch({ subagentName: 's', goalPrompt: 'g', dependsOn: [] }, () => 'text')
  // @ts-expect-error there is no shell
  processRunner({ command: 'node', shell: true })
  // @ts-expect-error a command is one program
  processRunner({ command: ['node', '-v'] })
  // @ts-expect-error an engine answers with a run
  const engine: Engine = { start: () => undefined }
  expectTypeOf(engine)
}

export async function theHostIsTyped(): Promise<void> {
  const host = createAgentTasks({
    subagents: {
      helper: () => ({ final_message: 'done' }),
      echo: () => 'text',
      later: async () => Promise.resolve('text'),
      asker: {
        run: async (_request, context) => {
          const answer = await context.ask({ message: 'Which?', choices: ['a', 'b'] })
          // @ts-expect-error choices are texts
          void context.ask({ message: 'Which?', choices: [1] })
          return String(answer.content?.['answer'])
        },
      },
    },
    isAgentBusy: new BehaviorSubject(false),
    triggerAgentTurn: (text, delivery) => {
      expectTypeOf(text).toEqualTypeOf<string>()
      expectTypeOf(delivery.taskIds).toEqualTypeOf<readonly string[]>()
      expectTypeOf(delivery.signal).toEqualTypeOf<AbortSignal>()
    },
  })
  expectTypeOf(host.getAsyncTaskManager()).toEqualTypeOf<AsyncTaskManager>()
  expectTypeOf(
    await host.tools.task.execute({ subagent_name: 'helper', goal_prompt: 'help' }),
  ).toEqualTypeOf<ToolResult>()
  // @ts-expect-error no such tool
  expectTypeOf(host.tools.tasks)
  // @ts-expect-error a busy source answers with a boolean
  createAgentTasks({ isAgentBusy: () => 'no', triggerAgentTurn: () => undefined })
  // @ts-expect-error no such setting
  createAgentTasks({ settings: { 'task-max': 3 } })
}

export function answersAndReasonsAreTyped(): void {
  expectTypeOf(manager.cancelTask('a', 'why')).toEqualTypeOf<boolean>()
  expectTypeOf(manager.cancelTask('a', { reason: 'why' })).toEqualTypeOf<boolean>()
  // @ts-expect-error a reason is text
  manager.cancelTask('a', 5)
  for (const answer of ['yes', 5, true, { name: 'Ada' }, { action: 'decline' }] as const) {
    manager.answerTask('a', 'q', answer)
  }
  // @ts-expect-error an answer has a value
  manager.answerTask('a', 'q', undefined)
}

export function theTriggerIsTyped(): void {
  const trigger = new AsyncTaskAutoTrigger(
    manager,
    reminders,
    () => false,
    async () => undefined,
    { owner: 'x' },
  )
  expectTypeOf(trigger.subscribe()).toEqualTypeOf<() => void>()
  const idle = (): boolean => false
  const turn = (): undefined => undefined
  // @ts-expect-error durations are numbers of ms
  new AsyncTaskAutoTrigger(manager, reminders, idle, turn, { pollMs: '1s' })
  // @ts-expect-error without a way to start a turn nothing is brought
  new AsyncTaskAutoTrigger(manager, reminders, idle)
  expectTypeOf(reminders.leaseReminder()?.acknowledge).toEqualTypeOf<(() => void) | undefined>()
}

export function aSettingIsNamed(): void {
  expectTypeOf(parseSetting('task-max-async', '5')).toEqualTypeOf<number>()
  // @ts-expect-error no such setting
  parseSetting('task-max', '5')
}

export function whatASignatureMentionsHasAName(): void {
  expectTypeOf(functionRunner).parameter(0).toEqualTypeOf<RunFunction>()
  expectTypeOf(createTaskCommands).parameter(0).toEqualTypeOf<TaskCommandsOptions>()
  expectTypeOf<ConstructorParameters<typeof ProcessError>[2]>().toEqualTypeOf<ProcessFailure>()
  expectTypeOf<ConstructorParameters<typeof InstanceError>[0]>().toEqualTypeOf<InstanceErrorCode>()
  // @ts-expect-error no such code
  new InstanceError('INSTANCE_TIRED', 'a', 'it is tired')
}

export async function aTurnHasAnOwnerAndAResult(): Promise<void> {
  const tasks = createAgentTasks({ isAgentBusy: async () => Promise.resolve(false), triggerAgentTurn: () => undefined })
  expectTypeOf(await tasks.withTurn((turn) => turn.reminder?.taskIds.length, 'sub')).toEqualTypeOf<number | undefined>()
  expectTypeOf(await tasks.withTurn(async () => Promise.resolve('text'))).toEqualTypeOf<string>()
  // @ts-expect-error whether the agent is busy is a boolean
  createAgentTasks({ isAgentBusy: async () => Promise.resolve('no'), triggerAgentTurn: () => undefined })
}

export function aHostIsEndedBySignals(): void {
  disposeOnSignals(createAgentTasks(), { input: process.stdin, exitCode: 0, limitMs: Infinity })
  expectTypeOf(disposeOnSignals(() => manager.dispose())).toEqualTypeOf<() => void>()
  // @ts-expect-error it has nothing that could be called
  disposeOnSignals({ close: () => undefined })
}

export function questionsMessagesAndRepeats(manager: AsyncTaskManager): void {
  expectTypeOf(manager.sendToTask('id', 'text')).toEqualTypeOf<SendResult>()
  const result = manager.sendToTask('id', 'text')
  // @ts-expect-error a message that was sent has no reason
  expectTypeOf(result.reason)
  if (!result.sent) expectTypeOf(result.reason).toEqualTypeOf<string>()
  expectTypeOf(manager.redeliver('delivery')).toEqualTypeOf<boolean>()
  expectTypeOf(manager.lease({ questions: [{ taskId: 'a', questionId: 'q' }] })?.questions).toEqualTypeOf<
    readonly QuestionRef[] | undefined
  >()
  expectTypeOf<TurnDelivery['questions']>().toEqualTypeOf<readonly QuestionRef[] | undefined>()
  expectTypeOf<RunContext['messages']>().toEqualTypeOf<AsyncIterable<string>>()
  functionRunner(
    async (_input, { messages }) => {
      for await (const message of messages) expectTypeOf(message).toEqualTypeOf<string>()
      return undefined
    },
    { takesMessages: true },
  )
  processRunner({ command: 'cat', stdin: 'messages', questions: true })
  // @ts-expect-error there is no such stdin
  processRunner({ command: 'cat', stdin: 'pipe' })
  const tasks = createAgentTasks({ maxDelayMs: Infinity })
  expectTypeOf(tasks.redeliver).toEqualTypeOf<(deliveryId: string) => boolean>()
  void tasks.tools.send_to_task.execute({ task_id: 'a', message: 'm' })
  // @ts-expect-error a message is needed
  void tasks.tools.send_to_task.execute({ task_id: 'a' })
}

export function aRunLaunchesTasks({ launch, children }: RunContext): void {
  expectTypeOf(launch({ subagentName: 'a', goalPrompt: 'g' })).toEqualTypeOf<ActiveTaskInfo>()
  // @ts-expect-error its owner is the run
  launch({ subagentName: 'a', goalPrompt: 'g', owner: 'main' })
  expectTypeOf(children.ids()).toEqualTypeOf<string[]>()
  expectTypeOf(children.waitFor()).toEqualTypeOf<Promise<WaitResult>>()
  expectTypeOf(children.cancel('a', { reason: 'why' })).toEqualTypeOf<boolean>()
  expectTypeOf(ownerOfRun('a')).toEqualTypeOf<string>()
  manager.launch({ subagentName: 'a', goalPrompt: 'g', parentId: 'p' }, runner)
}

export function aCancellationSaysWhy(): void {
  expectTypeOf(manager.cancelTask('a', { reason: 'why' })).toEqualTypeOf<boolean>()
  expectTypeOf(manager.cancelAll({ owner: 'main', reason: 'why' })).toEqualTypeOf<string[]>()
  // @ts-expect-error a reason is text
  manager.cancelTask('a', { reason: new Error('why') })
  expectTypeOf(task.cancelReason).toEqualTypeOf<string | undefined>()
  // @ts-expect-error 'keep' or 'cancel'
  createAgentTasks({ onForegroundAbort: 'leave' })
}
