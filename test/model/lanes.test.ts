/** The lanes against their model. Counterexamples that were found are named tests. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { submitErrorCodes } from '../../src/protocol/command-tasks.js'
import type { LaneAction, PlayedAnswer } from './lanes/actions.js'
import { playedAnswers } from './lanes/actions.js'
import { checkProperty } from '../support/property.js'
import { agentCommandsProperty } from './agent-commands.property.js'
import { compareOver, laneModelProperty } from './lanes.property.js'
import { createReach } from './lanes/reach.js'

describe('the lanes, against their model', () => {
  it('S1, S2, S3, S4, S5, S6, S7, S8, S9: answer, emit and show what the model does after every action', async () => {
    await checkProperty('lane model', laneModelProperty(), { numRuns: 100 })
  })

  it('S10: an async task ends as its command task does, and one that the agent did not end is owed as a failure', async () => {
    await checkProperty('agent commands', agentCommandsProperty(), { numRuns: 100 })
  })

  it('reach every action, status, error code and event', async () => {
    const reach = createReach()
    await fc.assert(laneModelProperty({}, reach.add), { seed: 20_260_101, numRuns: 300 })
    const { actions, byListeners, statuses, commandStatuses, events, submitCodes, errorCodes, reports } =
      reach.reached()
    const forListeners: LaneAction['do'][] = [
      ...['submit', 'cancel', 'answer', 'report', 'connect', 'open', 'takeOver', 'disconnect', 'lose'],
      ...['dropTasks', 'listen', 'unlisten', 'prune', 'look', 'dispose'],
    ] as LaneAction['do'][]
    expect(byListeners).toEqual([...forListeners].sort())
    expect(actions).toEqual([...forListeners, 'submitInvalid', 'jump', 'advance'].sort())
    expect(statuses).toEqual(['cancelled', 'completed', 'failed', 'queued', 'running'])
    expect(commandStatuses).toEqual(['error', 'pending', 'running', 'skipped', 'success'])
    expect(events).toEqual([
      'a report of progress',
      'task_complete cancelled',
      'task_complete completed',
      'task_complete failed',
      'task_progress error',
      'task_progress running',
      'task_progress success',
      'the end of a stream',
    ])
    // The model has no store and no keys.
    const others = ['NOT_STORED', 'IDEMPOTENCY_KEY_REUSED']
    expect(submitCodes).toEqual(submitErrorCodes.filter((code) => !others.includes(code)).sort())
    const ofTools = (Object.keys(playedAnswers) as PlayedAnswer[]).flatMap((how) => {
      const answer = playedAnswers[how]
      return 'error' in answer ? [answer.error.code] : []
    })
    expect(errorCodes).toEqual([...new Set([...ofTools, 'COMMAND_TIMEOUT', 'CANCELLED'])].sort())
    expect(reports).toEqual(['handler', 'late-result', 'stream'])
  })
})

describe('sequences that once failed', () => {
  it('S1: a task that a listener submits to the next connection of an instance does not end with the last one', () =>
    compareOver([
      {
        do: 'listen',
        to: 'complete',
        by: 'handler',
        script: [
          { do: 'disconnect', instance: 'y' },
          { do: 'connect', instance: 'y' },
          { do: 'submit', to: 'y', commands: [{ tool: 'waits' }] },
        ],
      },
      { do: 'submit', to: 'x', commands: [{ tool: 'waits' }] },
      { do: 'disconnect', instance: 'x' },
    ]))
})
