/** Decides what happens to a run whose process died before the run had ended. Either its program is followed, or the task is run again, or it fails. */
import type { AsyncTaskInfo } from '../../../machines/records.js'
import { overspent } from '../../../machines/spending.js'
import { defined } from '../../defined.js'
import { toFlatRunner } from '../../engine/definition.js'
import { endSurvivor, lastOutput } from '../../engine/program-folder.js'
import { isLeft, leads, reapProgram, toStartedProgram, type StartedProgram } from '../../engine/reap.js'
import type { FindRunner, FlatRunner, RunFunction, RunInput } from '../../engine/runner.js'
import type { OnError } from '../../callbacks/error-report.js'
import type { Clock } from '../../clock.js'
import { preview } from '../../text/preview.js'
import { stateOf } from '../../process-identity.js'
import { aRetryPolicy, type RetryPolicy } from '../../protocol/retry-policy.js'
import { jsonBytes } from '../../json/json-size.js'
import type { StoredJson, StoredTask } from '../../store/store.js'
import { timeoutMessage } from '../../../machines/async-task.js'
import { interruptionOf, MAX_FRUITLESS } from '../steps/interruptions.js'
import type { StepLog } from '../steps/step-log.js'
import { interruption } from './restoring.js'

/** The maximum size of the params of a launch in the store, in bytes of JSON. A task with larger params is not run again after a crash. */
const MAX_PARAMS_BYTES = 1024 * 1024

/** How much of the output of a program the error of its interrupted run quotes, in characters. */
const SHOWN_OUTPUT_CHARS = 2000

/** How long the killed program of an earlier attempt may take to end, and the interval at which that is checked; in ms. */
const STOP_MS = { most: 5000, step: 10 } as const

/** Returns what is stored of a run besides its grace period. The result is empty if no other process could continue the run. */
export function storedRun(
  { isBound = false, survivesHost = false, foundAs }: FlatRunner,
  params: StoredJson = {},
): StoredJson {
  if (isBound) return {}
  return {
    params: jsonBytes(params, MAX_PARAMS_BYTES) > MAX_PARAMS_BYTES ? null : params,
    ...(survivesHost && { key: globalThis.crypto.randomUUID() }),
    ...defined({ foundAs }),
  }
}

/** What happens to a run of a dead process. */
export type Fate =
  | { readonly type: 'followed'; readonly definition: FlatRunner }
  /** The run had not started. Its task waits again. */
  | { readonly type: 'waiting'; readonly definition: FlatRunner; readonly params: RunInput['params'] }
  /** The remaining processes of the run were killed. The task is run again. */
  | { readonly type: 'repeated'; readonly definition: FlatRunner; readonly params: RunInput['params'] }
  /** The remaining processes of the run were killed. The task fails with this error. */
  | { readonly type: 'interrupted'; readonly error: string }

/** What the decision needs. */
export interface FateOptions {
  readonly findRunner: FindRunner | undefined
  readonly folder: string | undefined
  readonly clock: Clock
  readonly report: OnError
  readonly steps: StepLog | undefined
}

/** Decides what happens to a run. Ends the remaining processes of the run, unless its program can be followed. Never throws. */
export function fateOf(task: StoredTask, options: FateOptions): Fate {
  const { folder, clock } = options
  const definition = isolated(task, options, () => findDefinition(task, options.findRunner))
  if (task.status === 'queued') {
    const params = storedParams(task)
    return definition === undefined || params === undefined
      ? { type: 'interrupted', error: describeInterruption(task, '') }
      : { type: 'waiting', definition, params }
  }
  if (definition !== undefined && isolated(task, options, () => canFollow(task, definition, folder)) === true) {
    return { type: 'followed', definition }
  }
  const output = folder === undefined ? '' : lastOutput(folder, SHOWN_OUTPUT_CHARS)
  const ended = isolated(task, options, () => ({ left: endRun(task, options) }))
  if (definition !== undefined && ended !== undefined && mayRepeat(task, definition, options.steps)) {
    const waiting = ended.left === undefined ? definition : runWhenGone(definition, ended.left, clock)
    return { type: 'repeated', definition: waiting, params: storedParams(task) }
  }
  const fruitless = definition?.durable === true ? interruptionOf(task, options.steps).fruitless : 0
  return { type: 'interrupted', error: describeInterruption(task, output, fruitless) }
}

function isolated<Result>(task: StoredTask, { report }: FateOptions, run: () => Result): Result | undefined {
  try {
    return run()
  } catch (error) {
    report(error, { source: 'runner', taskId: task.id })
    return undefined
  }
}

function findDefinition(task: StoredTask, findRunner: FindRunner | undefined): FlatRunner | undefined {
  // Without stored params, the caller ran the task itself, or the runner exists only in the dead process.
  if (findRunner === undefined || task.run?.['params'] === undefined) return undefined
  const name = String(task.run['foundAs'] ?? task.record['subagentName'])
  const found: unknown = findRunner(name)
  if (found === undefined || found === null) return undefined
  const definition = toFlatRunner(found, `findRunner(${JSON.stringify(name)})`)
  return { ...definition, retry: storedPolicy(task) ?? definition.retry }
}

/** Returns the retry policy of the launch, which takes precedence over that of the subagent. */
function storedPolicy({ run = {} }: StoredTask): RetryPolicy | undefined {
  const { retry } = run
  return aRetryPolicy.accepts(retry) ? (retry as RetryPolicy) : undefined
}

function canFollow({ run = {} }: StoredTask, runner: FlatRunner, folder: string | undefined): boolean {
  return runner.survivesHost === true && runner.canResume?.(folder, toStartedProgram(run['program'])) !== false
}

function mayRepeat(task: StoredTask, { retry, durable }: FlatRunner, steps: StepLog | undefined): boolean {
  const { budget, spent } = task.record as Pick<AsyncTaskInfo, 'budget' | 'spent'>
  if (overspent(budget, spent) !== undefined) return false
  if (task.run?.['isOverdue'] === true || storedParams(task) === undefined) return false
  if (durable === true) return interruptionOf(task, steps).fruitless < MAX_FRUITLESS
  return retry !== undefined && retry.on.includes('interrupted') && task.attempt < retry.attempts
}

export function storedParams({ run = {} }: StoredTask): RunInput['params'] {
  const { params } = run
  return typeof params === 'object' && params !== null ? (params as RunInput['params']) : undefined
}

/** Ends the processes of an interrupted run. Returns the killed program if it has not ended yet. */
function endRun({ id, run = {} }: StoredTask, { folder, report }: FateOptions): StartedProgram | undefined {
  const program = toStartedProgram(run['program'])
  if (program !== undefined && stateOf(program.identity) === 'alive' && !leads(program)) {
    const reason = `the environment of process ${program.identity.pid} does not have the token of the run`
    report(new Error(`The program of task ${preview(id)} was not ended: ${reason}.`), { source: 'runner', taskId: id })
  }
  if (program !== undefined) reapProgram(program)
  if (folder !== undefined) endSurvivor(folder, program)
  return program !== undefined && isLeft(program) ? program : undefined
}

/** Returns a runner that first waits until the program of the earlier attempt has ended. */
export function runWhenGone(runner: FlatRunner, program: StartedProgram, clock: Clock): FlatRunner {
  const run: RunFunction = async (input, context) => {
    const pause = (): Promise<unknown> =>
      new Promise((resolve) =>
        clock.setTimeout(() => resolve(undefined), STOP_MS.step, { name: 'look at earlier programs', kind: 'poll' }),
      )
    for (let waited = 0; isLeft(program); waited += STOP_MS.step) {
      if (waited >= STOP_MS.most) {
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

function describeInterruption({ attempt, run = {}, record }: StoredTask, output: string, fruitless = 0): string {
  const { timeoutMs } = record
  return [
    run['isOverdue'] === true && typeof timeoutMs === 'number' ? `${timeoutMessage(timeoutMs)} ` : '',
    interruption(record as unknown as AsyncTaskInfo),
    attempt > 1 ? ` This was attempt ${attempt}.` : '',
    fruitless >= MAX_FRUITLESS
      ? ` It was interrupted ${fruitless} times in a row without having saved anything new.`
      : '',
    output === '' ? '' : ` The end of its output:\n${output}`,
  ].join('')
}
