/** The types of `agent-tasks/parts`: compiled by `npm run types`, never run. */
import { expectTypeOf } from 'vitest'
import { AsyncTaskManager, createAgentTasks, type SlashCommand } from 'agent-tasks'
import {
  createInProcessEngine,
  createTaskCommands,
  createTurns,
  ownerOfRun,
  parseSetting,
  settingDefinitions,
  type AgentTurns,
  type Engine,
  type LeasedReminder,
  type Respond,
  type TaskLease,
} from 'agent-tasks/parts'

declare const manager: AsyncTaskManager

export function turnsAreOptionsOfAHost(): void {
  const respond: Respond<number> = (text, signal) => (signal.aborted ? 0 : text.length)
  const turns = createTurns(respond)
  expectTypeOf(turns).toEqualTypeOf<AgentTurns<number>>()
  expectTypeOf(turns.take('hello')).toEqualTypeOf<Promise<number>>()
  const { isBusy$: isAgentBusy, triggerAgentTurn } = turns
  const tasks = createAgentTasks({ isAgentBusy, triggerAgentTurn })
  expectTypeOf(tasks.beforeTurn().reminder).toEqualTypeOf<LeasedReminder | undefined>()
  // @ts-expect-error the text of a turn is a string
  void turns.take(1)
}

export function aManagerIsWiredByHand(): void {
  expectTypeOf(createInProcessEngine()).toEqualTypeOf<Engine>()
  new AsyncTaskManager({ engine: createInProcessEngine() })
  expectTypeOf(manager.lease()).toEqualTypeOf<TaskLease | undefined>()
  expectTypeOf(createTaskCommands({ getAsyncTaskManager: () => manager })).toEqualTypeOf<readonly SlashCommand[]>()
  expectTypeOf(ownerOfRun('a')).toEqualTypeOf<string>()
  // @ts-expect-error commands need a manager
  createTaskCommands({})
}

export function settingsAreNamed(): void {
  expectTypeOf(parseSetting('task-max-async', '5')).toEqualTypeOf<number>()
  expectTypeOf(settingDefinitions['task-max-async'].default).toEqualTypeOf<5>()
  // @ts-expect-error no such setting
  parseSetting('task-max', 5)
}
