/** A fixture for tests that stop programs. It has connections to the programs and a manual clock, and checks that nothing is left behind. */
import { afterEach, beforeEach, expect } from 'vitest'
import type { OutputRunner } from '../../src/engine/runner.js'
import type { ProcessRunnerOptions } from '../../src/runners/process-options.js'
import { processRunner } from '../../src/runners/process-runner.js'
import { openLifelines, type Lifeline, type Lifelines, type TreeProgram } from './lifelines.js'
import { createManualClock, type ManualClock } from '../../src/testing/manual-clock.js'
import { createRunContext, runInput, type RecordedContext } from './run-context.js'

/** The grace period of every program, in ms. */
export const GRACE_MS = 2000

/** A run that a test started without a manager. */
interface StagedRun {
  readonly context: RecordedContext
  /** What the run returned or threw. */
  readonly outcome: Promise<unknown>
  readonly isSettled: () => boolean
  readonly abort: (reason?: unknown) => void
}

export interface Stage {
  readonly clock: ManualClock
  /** How many `exit` listeners this process had before the test. */
  readonly exitListeners: number
  /** The arguments for `process.execPath` that run a program of the test. */
  argumentsOf(program: TreeProgram): string[]
  runnerOf(program: TreeProgram, options?: Partial<ProcessRunnerOptions>): OutputRunner
  start(program: TreeProgram, options?: Partial<ProcessRunnerOptions>): StagedRun
  /** Resolves when the program with this name has connected. */
  program(name: string): Promise<Lifeline>
  programs<Names extends string[]>(...names: Names): Promise<{ [Index in keyof Names]: Lifeline }>
}

/** Sets up the fixture before each test of a file. After each test, no timer and no `exit` listener may be left. */
export function stagePrograms(): Stage {
  let lifelines: Lifelines
  let clock: ManualClock
  let exitListeners = 0

  beforeEach(async () => {
    exitListeners = process.listenerCount('exit')
    lifelines = await openLifelines()
    clock = createManualClock()
  })
  afterEach(() => {
    lifelines.close()
    expect(clock.pending).toBe(0)
    expect(process.listenerCount('exit')).toBe(exitListeners)
  })

  const stage: Stage = {
    get clock() {
      return clock
    },
    get exitListeners() {
      return exitListeners
    },
    argumentsOf: (program) => lifelines.argumentsOf(program),
    runnerOf: (program, options) => {
      const args = lifelines.argumentsOf(program)
      return processRunner({ command: process.execPath, args, clock, graceMs: GRACE_MS, ...options })
    },
    start: (program, options) => {
      const context = createRunContext()
      let isSettled = false
      const outcome = Promise.resolve(stage.runnerOf(program, options).run(runInput(), context))
        .catch((error: unknown) => error)
        .finally(() => (isSettled = true))
      const abort = (reason?: unknown): void => context.controller.abort(reason)
      return { context, outcome, isSettled: () => isSettled, abort }
    },
    program: (name) => lifelines.program(name),
    programs: (...names) => Promise.all(names.map((name) => lifelines.program(name))) as never,
  }
  return stage
}
