/** Decides what happens to a run whose process died before the run had ended. Either its program is followed, or the task is run again, or it fails. */
import type { AsyncTaskInfo } from '../../../machines/records.js'
import { overspent } from '../../../machines/usage.js'
import { toFlatRunner } from '../../engine/definition.js'
import { endSurvivor, isUnstarted, lastOutput } from '../../engine/program-folder.js'
import { endProgram, isForeign, isLeft, type StartedProgram } from '../../engine/reap.js'
import type { FindRunner, ResolvedRunner, RunFunction } from '../../engine/runner.js'
import type { OnError } from '../../isolation/error-report.js'
import type { Clock } from '../../system/clock.js'
import { preview } from '../../data/preview.js'
import { nodeBuiltin } from '../../system/node-builtins.js'
import { timeoutMessage } from '../../../machines/async-task.js'
import { isWaiting } from '../../../machines/task-status.js'
import { interruptionOf, MAX_FRUITLESS, type HasEnded } from '../../features/steps/interruptions.js'
import type { StepLog } from '../../features/steps/step-log.js'
import { AgentTasksError } from '../../errors.js'
import type { KeptParams } from '../../protocol/run-fields.js'
import { INTERRUPTED, interruption } from './restoring.js'
import type { FoundRow } from './stored-run.js'

/** How much of the output of a program the error of its interrupted run quotes, in characters. */
const SHOWN_OUTPUT_CHARS = 2000

/** How long the program of an earlier attempt may take to end after its grace period, and the interval at which that is checked; in ms. */
const STOP_MS = { most: 10_000, step: 50 } as const

/** What happens to a run of a dead process. */
export type RecoveryDecision =
  | { readonly type: 'followed'; readonly definition: ResolvedRunner }
  /** The run had not started. Its task waits again. */
  | { readonly type: 'waiting'; readonly definition: ResolvedRunner; readonly params: KeptParams | undefined }
  /** The remaining processes of the run are being ended. The task is run again. */
  | { readonly type: 'repeated'; readonly definition: ResolvedRunner; readonly params: KeptParams | undefined }
  /** Processes of the run are being ended. When they have ended, the run of `definition` fails the task. Until then the task is running. */
  | { readonly type: 'ending'; readonly definition: ResolvedRunner }
  /** The task fails with this error. Nothing of the run is left. */
  | { readonly type: 'interrupted'; readonly error: string }

export interface FateOptions {
  readonly findRunner: FindRunner | undefined
  readonly folder: string | undefined
  readonly clock: Clock
  readonly report: OnError
  readonly steps: StepLog | undefined
  readonly hasEnded: HasEnded
}

/** Decides what happens to a run. Ends the remaining processes of the run, unless its program can be followed. Never throws. */
export function fateOf(task: FoundRow, options: FateOptions): RecoveryDecision {
  const { folder, clock } = options
  const definition = isolated(task, options, () => findDefinition(task, options.findRunner))
  if (isWaiting(task.status)) {
    const { params } = task.run
    return definition === undefined || params == null
      ? { type: 'interrupted', error: describeInterruption(task, '') }
      : { type: 'waiting', definition, params }
  }
  if (definition !== undefined && isolated(task, options, () => canFollow(task, definition, folder)) === true) {
    return { type: 'followed', definition }
  }
  const output = folder === undefined ? '' : lastOutput(folder, SHOWN_OUTPUT_CHARS)
  const isBegun = definition === undefined || !isUnstartedSurvivor(task, definition, folder)
  const ended = isolated(task, options, () => ({ left: endRun(task, options) }))
  if (definition !== undefined && ended !== undefined && mayRepeat(task, definition, isBegun, options)) {
    const waiting = ended.left === undefined ? definition : runWhenGone(definition, ended.left.program, clock)
    return { type: 'repeated', definition: waiting, params: task.run.params ?? undefined }
  }
  const fruitless =
    definition?.durable === true
      ? interruptionOf(task, options.steps, options.hasEnded).fruitless
      : definition?.retry?.on.includes('interrupted') === true
        ? (task.run.suspended ?? 0)
        : 0
  const error = describeInterruption(task, output, fruitless)
  const left = ended?.left
  return left === undefined
    ? { type: 'interrupted', error }
    : { type: 'ending', definition: failWhenGone(left.hasEnded, error) }
}

function isolated<Result>(task: FoundRow, { report }: FateOptions, run: () => Result): Result | undefined {
  try {
    return run()
  } catch (error) {
    report(error, { source: 'runner', taskId: task.id })
    return undefined
  }
}

function findDefinition(task: FoundRow, findRunner: FindRunner | undefined): ResolvedRunner | undefined {
  // Without stored params, the caller ran the task itself, or the runner exists only in the dead process.
  if (findRunner === undefined || task.run.params === undefined) return undefined
  const name = task.run.foundAs ?? String(task.record['subagentName'])
  const found: unknown = findRunner(name)
  if (found === undefined || found === null) return undefined
  const definition = toFlatRunner(found, `findRunner(${JSON.stringify(name)})`)
  return { ...definition, retry: task.run.retry ?? definition.retry }
}

function canFollow({ run }: FoundRow, runner: ResolvedRunner, folder: string | undefined): boolean {
  return runner.survivesHost === true && runner.canResume?.(folder, run.program) !== false
}

/** Whether the host died before it started a program that survives it. A program runs only when it is stored. */
function isUnstartedSurvivor({ run, attempt }: FoundRow, runner: ResolvedRunner, folder: string | undefined): boolean {
  const isSurvivor = runner.survivesHost === true && runner.canResume !== undefined && folder !== undefined
  // Perhaps each attempt ends its host.
  return isSurvivor && attempt < MAX_FRUITLESS && (run.program === undefined || isUnstarted(folder))
}

function mayRepeat(
  task: FoundRow,
  { retry, durable }: ResolvedRunner,
  isBegun: boolean,
  { steps, hasEnded }: FateOptions,
): boolean {
  const { budget, spent } = task.record as Pick<AsyncTaskInfo, 'budget' | 'spent'>
  if (overspent(budget, spent) !== undefined) return false
  const { isOverdue, hasNotBegun, suspended: stops = 0 } = task.run
  if (isOverdue === true || task.run.params == null) return false
  if (hasNotBegun === true || !isBegun) return true
  if (durable === true) return interruptionOf(task, steps, hasEnded).fruitless < MAX_FRUITLESS
  if (retry?.on.includes('interrupted') !== true) return false
  return stops === 0 ? task.attempt < retry.attempts : stops < MAX_FRUITLESS
}

/** Says that a task is not run again, although its run has not failed by itself; '' if that is not so. */
export const notAgain = (fruitless: number): string =>
  fruitless < MAX_FRUITLESS ? '' : ` It was interrupted ${fruitless} times in a row without having saved anything new.`

interface LeftRun {
  readonly program: StartedProgram
  /** Resolves when its processes have ended, or cannot be ended. */
  readonly hasEnded: Promise<boolean>
}

/** Begins to end the processes of an interrupted run. Returns undefined if none is running. */
function endRun({ id, run: { program } }: FoundRow, { folder, report }: FateOptions): LeftRun | undefined {
  const isSurvivor = folder !== undefined && nodeBuiltin('node:fs').existsSync(folder)
  // Nobody can follow a survivor any more, so it is killed at once.
  if (isSurvivor) endSurvivor(folder, program)
  if (program === undefined) return undefined
  if (isForeign(program)) {
    const reason = `the environment of process ${program.identity.pid} does not have the token of the run`
    report(new Error(`The program of task ${preview(id)} was not ended: ${reason}.`), { source: 'runner', taskId: id })
  }
  const hasEnded = endProgram(isSurvivor ? { ...program, graceMs: 0 } : program)
  return isLeft(program) ? { program, hasEnded } : undefined
}

/** Returns a runner that waits until the program of an interrupted run has ended, and then fails: a program that still works has not failed. */
function failWhenGone(hasEnded: Promise<boolean>, error: string): ResolvedRunner {
  return {
    run: async () => {
      await hasEnded
      throw new AgentTasksError(INTERRUPTED, error)
    },
  }
}

/** Returns a runner that first waits until the program of the earlier attempt has ended. */
export function runWhenGone(runner: ResolvedRunner, program: StartedProgram, clock: Clock): ResolvedRunner {
  const run: RunFunction = async (input, context) => {
    const pause = (): Promise<unknown> =>
      new Promise((resolve) =>
        clock.setTimeout(() => resolve(undefined), STOP_MS.step, { name: 'look at earlier programs', kind: 'poll' }),
      )
    for (let waited = 0; isLeft(program); waited += STOP_MS.step) {
      if (waited >= STOP_MS.most + (program.graceMs ?? 0)) {
        throw new Error(
          `The task was not run again, because the program of its last attempt cannot be ended (process group ${program.identity.pid}).`,
        )
      }
      await pause()
      context.signal.throwIfAborted()
    }
    return runner.run(input, context)
  }
  return { ...runner, run }
}

function describeInterruption({ attempt, run, record }: FoundRow, output: string, fruitless = 0): string {
  const { timeoutMs } = record
  return [
    run.isOverdue === true && typeof timeoutMs === 'number' ? `${timeoutMessage(timeoutMs)} ` : '',
    interruption(record as unknown as AsyncTaskInfo),
    attempt > 1 ? ` This was attempt ${attempt}.` : '',
    notAgain(fruitless),
    output === '' ? '' : ` The end of its output:\n${output}`,
  ].join('')
}
