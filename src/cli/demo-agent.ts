/** The agent of `serve --demo`. It is an agent host in this process, which fills every part of the page with data. */
import { AsyncTaskAutoTrigger } from '../features/delivery/auto-trigger.js'
import { DEFAULT_OWNER } from '../async-tasks/owner.js'
import { sleep } from '../system/abort.js'
import { systemClock, type Clock } from '../system/clock.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { RunContext } from '../engine/runner.js'
import { createAgentTasks, type AgentTasks } from '../host/agent-tasks.js'
import type { Subagent } from '../tools/subagents.js'

/** How often the agent launches a task, how long it is busy, and how long it is idle, in ms. */
const LAUNCH_MS = 6000
const BUSY_MS = 40_000
const IDLE_MS = 5000
/** How often the schedule launches a task, in ms. */
const SCHEDULE_MS = 20_000

/** A picture of a landscape, as a PNG in base64. */
const PICTURE =
  'iVBORw0KGgoAAAANSUhEUgAAAGAAAABACAIAAABqVuVZAAAA9ElEQVR4Ae3BsVEEMRREwXdTGwy2giAILEVACDJ+ENiKSAYREcFOIa4wdDXdj4+vb+KeCEuEJcISYYmwRFgiLBGWCEuEdfESZhvc6Kt4gjjfbIN7sw2ecHGy2Qa/MNsA+ir2ibDEsWYb7JhtsE+cabbBvtkGm0RYIiwRlghLhCXCEmGJsMSZ+ir29VVsEsfqq9jRV7FPhHVxsr4KmG1g9VX8lThfX8W9voonXLyEvor/IcISYYmwRFgiLBGWCEuEJcISYYmwRFgirMfb5ztxT4QlwhJhibBEWCIsEZYIS4QlwhJhibBEWCIsEZYIS4QlwhJh/QCkqSLVELJYTgAAAABJRU5ErkJggg=='

/** Reports progress and writes output, step by step. */
type Work = (steps: readonly string[], stepMs: number, context: RunContext) => Promise<void>

const workOn =
  (clock: Clock): Work =>
  async (steps, stepMs, context) => {
    for (const [index, message] of steps.entries()) {
      context.report({ progress: index, total: steps.length, message })
      context.append(`${message} …\n`)
      await sleep(clock, stepMs, context.signal)
    }
    context.report({ progress: steps.length, total: steps.length })
  }

const subagentsOf = (work: Work): Readonly<Record<string, Subagent>> => ({
  researcher: {
    description: 'Searches, reads and sums up.',
    run: async ({ goal }, context) => {
      await work(['searching', 'reading three pages', 'comparing them', 'summing up'], 2500, context)
      context.spend({ tokens: 5200, steps: 4 })
      return {
        final_message: `Three sources agree on “${goal}”.`,
        emitted_vars: { sources: 3, confidence: 0.9 },
      }
    },
  },
  tester: {
    description: 'Runs the tests.',
    run: async (_request, context) => {
      await work(['installing', 'running 128 tests'], 1500, context)
      context.append('not ok 57 - a parcel arrives once\n')
      throw new Error('1 of 128 tests failed: a parcel arrives once', {
        cause: new TypeError("Cannot read properties of undefined (reading 'id')"),
      })
    },
  },
  deployer: {
    description: 'Deploys, after it has asked.',
    run: async (_request, context) => {
      await work(['building'], 1000, context)
      const { action, content } = await context.ask({
        message: 'Where should this be deployed, and with how many machines?',
        schema: {
          type: 'object',
          properties: {
            environment: { type: 'string', title: 'Environment', enum: ['staging', 'production'] },
            machines: { type: 'integer', title: 'Machines', minimum: 1, maximum: 10, default: 2 },
            dryRun: { type: 'boolean', title: 'Dry run', default: true },
          },
          required: ['environment'],
        },
      })
      if (action !== 'accept') return { final_message: 'Nothing was deployed: nobody said where.' }
      await work(['uploading', 'starting'], 1500, context)
      return { final_message: `Deployed to ${String(content?.['environment'])}.`, emitted_vars: { ...content } }
    },
  },
  painter: {
    description: 'Paints a picture.',
    run: async (_request, context) => {
      await work(['mixing colours', 'painting'], 1500, context)
      return {
        final_message: 'A landscape with a sun.',
        content: [{ type: 'image', mimeType: 'image/png', data: PICTURE }],
      }
    },
  },
  planner: {
    description: 'Splits its goal, and has others do the parts.',
    run: async (_request, context) => {
      for (const goal of ['collect the requirements', 'estimate the effort']) {
        context.launch({ subagentName: 'researcher', goalPrompt: goal })
      }
      await work(['waiting for two researchers'], 11_000, context)
      return { final_message: 'The plan has two parts.' }
    },
  },
})

const goals = [
  ['researcher', 'Which database fits a queue of parcels?'],
  ['painter', 'A picture for the title page'],
  ['planner', 'Plan the next release'],
  ['tester', 'Run the tests of the parcel service'],
  ['researcher', 'Why are cold starts slow?'],
] as const

/** A demo agent, which runs until it is disposed. */
export interface DemoAgent {
  readonly tasks: AgentTasks
  dispose(): Promise<void>
}

export function createDemoAgent(taskManager: TaskManager, clock: Clock = systemClock): DemoAgent {
  const subagents = subagentsOf(workOn(clock))
  const stopped = new AbortController()
  let isBusy = false
  const tasks = createAgentTasks({
    subagents,
    taskManager,
    clock,
    maxAsyncTasks: 3,
    whenFull: 'queue',
    isAgentBusy: () => isBusy,
    triggerAgentTurn: () => sleep(clock, 1000, stopped.signal),
  })
  const manager = tasks.getAsyncTaskManager()
  // A second agent. Its model always fails, to show failed deliveries on the page.
  const reviewer = new AsyncTaskAutoTrigger(
    manager,
    tasks.getAsyncTaskReminderService(),
    () => false,
    () => Promise.reject(new Error('the model of the reviewer is overloaded')),
    { owner: 'reviewer', retry: { initialMs: 20_000 }, onError: () => undefined },
  )
  const unsubscribe = reviewer.subscribe()
  const launch = (name: string, goalPrompt: string, owner = DEFAULT_OWNER): void => {
    const subagent = subagents[name]
    if (subagent !== undefined && manager.canQueue()) {
      manager.launch({ subagentName: name, goalPrompt, owner }, subagent)
    }
  }

  const launching = async (): Promise<void> => {
    launch('researcher', 'Review the last change', 'reviewer')
    for (let index = 0; ; index += 1) {
      const isDeploying = manager.getActiveTasks().some(({ subagentName }) => subagentName === 'deployer')
      if (!isDeploying) launch('deployer', 'Deploy the parcel service')
      const [name, goal] = goals[index % goals.length] ?? goals[0]
      launch(name, goal)
      await sleep(clock, LAUNCH_MS, stopped.signal)
    }
  }
  const alternating = async (): Promise<void> => {
    for (;;) {
      await sleep(clock, IDLE_MS, stopped.signal)
      isBusy = true
      await sleep(clock, BUSY_MS, stopped.signal)
      isBusy = false
      tasks.notifyIdle()
    }
  }
  tasks.schedule({ every: SCHEDULE_MS, launch: { subagent: 'researcher', goal: 'Every 20 s: read the alerts' } })
  tasks.schedule({ in: 3600_000, message: 'Check how the deployment went.' })
  // These promises reject when the agent is stopped.
  for (const run of [launching, alternating]) run().catch(() => undefined)

  return {
    tasks,
    dispose: () => {
      stopped.abort()
      unsubscribe()
      return tasks.dispose()
    },
  }
}
