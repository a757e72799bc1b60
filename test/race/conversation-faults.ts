/** Planted faults of the isolation of conversations: each changes what the agent and the person of one have. */
import { createTaskCommands } from '../../src/parts.js'
import { createCheckAsyncTasksTool, createSendToTaskTool, createWaitForAsyncTasksTool } from '../../src/tools/index.js'
import type { AlterParty } from './conversations.property.js'

export interface ConversationFault {
  readonly name: string
  readonly invariant: 'H7'
  readonly description: string
  readonly alter: AlterParty
}

export const conversationFaults: readonly ConversationFault[] = [
  {
    name: 'commands-of-all-owners',
    invariant: 'H7',
    description: 'the slash commands of a conversation list and change the tasks of all owners',
    alter: (party, { manager }) => ({ ...party, commands: createTaskCommands({ getAsyncTaskManager: () => manager }) }),
  },
  {
    name: 'check-sees-all-owners',
    invariant: 'H7',
    description: 'check_async_tasks shows, cancels and answers the tasks of all owners',
    alter: ({ tools, commands }, { manager }) => ({
      tools: {
        ...tools,
        check_async_tasks: createCheckAsyncTasksTool({ getAsyncTaskManager: () => manager }),
      },
      commands,
    }),
  },
  {
    name: 'send-reaches-all-owners',
    invariant: 'H7',
    description: 'send_to_task continues and tells of the tasks of all owners',
    alter: ({ tools, commands }, { manager }) => ({
      tools: { ...tools, send_to_task: createSendToTaskTool({ getAsyncTaskManager: () => manager }) },
      commands,
    }),
  },
  {
    name: 'wait-takes-from-all-owners',
    invariant: 'H7',
    description: 'wait_for_async_tasks takes the results of all owners',
    alter: ({ tools, commands }, { manager }) => ({
      tools: { ...tools, wait_for_async_tasks: createWaitForAsyncTasksTool({ getAsyncTaskManager: () => manager }) },
      commands,
    }),
  },
]
