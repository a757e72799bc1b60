/**
 * S10: command tasks that an agent submits, against the model of the lanes with two more commands. The async task ends as its command
 * task does. If anyone but the agent ended the command task, the async task has failed, says so, and is owed.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { EndStatus } from '../../src/protocol/command-tasks.js'
import { commandList } from '../support/command-list.js'
import { submissionOf, type LaneAction } from './lanes/actions.js'
import { laneSettings } from './lanes/arbitraries.js'
import { compareLanes, laneCommands, takeLaneAction, type LaneCommand, type LaneStep } from './lanes/commands.js'
import { createLaneHost, type LaneHost } from './lanes/host.js'
import { createLaneModel, type LaneModel } from './lanes/model.js'
import { createSubmitCommandsTool, type SubmitCommandsOptions } from '../../src/tools/submit-commands.js'
import { createManualClock } from '../../src/testing/manual-clock.js'

/** How the tool is made; a planted fault makes it wrong. */
export type CreateTool = typeof createSubmitCommandsTool

/** A command task that the agent submitted. */
interface AgentTask {
  readonly asyncId: string
  readonly taskId: string
  end: EndStatus | undefined
  error: string | undefined
  isCancelledByAgent: boolean
}

interface AgentModel extends LaneModel {
  readonly agentTasks: AgentTask[]
}

interface AgentHost extends LaneHost {
  readonly manager: AsyncTaskManager
  submitAsAgent(action: Submission): Promise<Readonly<Record<string, unknown>>>
}

type Submission = Extract<LaneAction, { do: 'submit' }>

const submission: fc.Arbitrary<Submission> = fc.record(
  {
    do: fc.constant('submit' as const),
    to: fc.constantFrom('x', 'y', 'w'),
    commands: fc.array(fc.record({ tool: fc.constantFrom('waits' as const, 'stops' as const, 'returns' as const) }), {
      minLength: 1,
      maxLength: 2,
    }),
  },
  { requiredKeys: ['do', 'commands'] },
)

/** The agent calls the tool. */
const submit = (action: Submission): LaneCommand<AgentModel, AgentHost> => ({
  check: () => true,
  run: async (model, host) => {
    const { agentId, commandTaskId: taskId, queuePosition, code } = await host.submitAsAgent(action)
    const message = { ...submissionOf(action), ...(agentId !== undefined && { metadata: { asyncTaskId: agentId } }) }
    const expected = model.submit(message) as Record<string, unknown>
    assert.deepEqual(code === undefined ? { taskId, queuePosition } : { code }, expected)
    if (typeof agentId === 'string' && typeof taskId === 'string') {
      model.agentTasks.push({ asyncId: agentId, taskId, end: undefined, error: undefined, isCancelledByAgent: false })
    }
    follow(await compareLanes(model, host, 'a submit of the agent'), model, host)
  },
  toString: () => `agent ${JSON.stringify(action)}`,
})

/** The agent cancels one of its async tasks. */
const cancel = (nth: number): LaneCommand<AgentModel, AgentHost> => ({
  check: ({ agentTasks }) => agentTasks.length > 0,
  run: async (model, host) => {
    const task = model.agentTasks[nth % model.agentTasks.length]
    if (task === undefined) return
    const isLive = task.end === undefined
    task.isCancelledByAgent ||= isLive
    assert.equal(host.manager.cancelTask(task.asyncId), isLive, 'S10: the agent could not cancel its task')
    model.act({ do: 'cancel', task: { id: task.taskId } })
    follow(await compareLanes(model, host, 'a cancel of the agent'), model, host)
  },
  toString: () => `agent cancels ${nth}`,
})

/** Records the ends of command tasks, and compares every async task with its command task. */
function follow({ log, action }: LaneStep, model: AgentModel, host: AgentHost): void {
  for (const entry of log) {
    if (!('event' in entry) || entry.event.type !== 'task_complete') continue
    const { taskId, status, error } = entry.event
    const task = model.agentTasks.find((one) => one.taskId === taskId)
    if (task !== undefined) Object.assign(task, { end: status, error: error?.message })
  }
  for (const { asyncId, end, error = '', isCancelledByAgent } of model.agentTasks) {
    const record = host.manager.getTask(asyncId)
    const after = `S10: ${asyncId} after ${JSON.stringify(action)}`
    if (isCancelledByAgent) {
      // The history may have dropped it, since it owes nothing.
      if (record !== undefined) assert.deepEqual([record.status, record.delivery], ['cancelled', 'none'], after)
      continue
    }
    const status = end === undefined ? 'running' : end === 'completed' ? 'completed' : 'failed'
    assert.deepEqual([record?.status, record?.delivery], [status, end === undefined ? 'none' : 'owed'], after)
    assert.equal(record?.owner, 'the agent', after)
    if (status === 'failed') assert.ok(record.error?.includes(error), `${after}: ${record.error ?? ''}`)
    if (end === 'cancelled') assert.match(record.error ?? '', /cancelled elsewhere/, after)
  }
}

/** The agent submits and cancels among all other actions. */
export function agentCommandsProperty(createTool: CreateTool = createSubmitCommandsTool) {
  const other = laneCommands((step, model, host) => follow(step, model as AgentModel, host as AgentHost))
  const commands: fc.Arbitrary<LaneCommand<AgentModel, AgentHost>>[] = [
    // Listed twice, to draw them more often.
    ...[other, other],
    submission.map(submit),
    fc.nat(5).map(cancel),
  ]
  return fc.asyncProperty(laneSettings, commandList(commands, 30), async (settings, all) => {
    const model: AgentModel = Object.assign(createLaneModel(settings), { agentTasks: [] })
    const host = createAgentHost(createLaneHost({ settings }), createTool)
    await fc.asyncModelRun(() => ({ model, real: host }), all)
    // The time limits of connections are over by then, too.
    for (const action of [{ do: 'dispose' }, { do: 'advance', ms: 10_000 }] satisfies LaneAction[]) {
      follow(await takeLaneAction(model, host, action), model, host)
    }
  })
}

function createAgentHost(host: LaneHost, createTool: CreateTool): AgentHost {
  const manager = new AsyncTaskManager({ clock: createManualClock(), maxAsyncTasks: -1, onError: () => undefined })
  const options: SubmitCommandsOptions = {
    getAsyncTaskManager: () => manager,
    taskManager: host.tasks,
    owner: 'the agent',
  }
  const tool = createTool(options)
  return Object.assign(host, {
    manager,
    submitAsAgent: async (action: Submission) => {
      const { type: _, metadata: __, ...params } = submissionOf(action)
      const { metadata = {} } = await tool.execute(params)
      return metadata
    },
  })
}
