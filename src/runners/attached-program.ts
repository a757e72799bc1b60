/** Starts a program with pipes to this process, and waits until the program ends. */
import type { ChildProcess } from 'node:child_process'
import { omitUndefined } from '../data/omit-undefined.js'
import { hasGroups } from '../engine/process-group.js'
import { RunProcesses } from '../engine/run-processes.js'
import type { RunContext, RunInput } from '../engine/runner.js'
import { nodeBuiltin } from '../system/node-builtins.js'
import { preview } from '../data/preview.js'
import type { CapturedOutput } from './captured-output.js'
import { findProgram } from './find-program.js'
import { startGuarded } from './guarded-start.js'
import { ProcessAbortError, type ProcessError } from './process-error.js'
import type { ProcessSettings } from './process-options.js'
import { shellStartError, startError, type StartAttempt } from './start-error.js'
import { superviseProgram, type ProgramEnd, type StartedProgram } from './supervision.js'

export interface AttachedProgram extends Pick<
  ProcessSettings,
  'command' | 'cwd' | 'env' | 'graceMs' | 'killSignal' | 'endDetached' | 'clock'
> {
  readonly args: string[]
  readonly stdin: 'pipe' | 'ignore'
  readonly signal: AbortSignal
  readonly output: Pick<CapturedOutput, 'onStdout' | 'onStderr' | 'stdout' | 'stderr'>
  /** Called when the program has started, before its output is read. */
  readonly onStart?: (child: StartedProgram) => void
}

export interface AttachedEnd {
  readonly end: ProgramEnd
  /** The error if the shell could not execute the program. */
  readonly refusal: ProcessError | undefined
}

/**
 * Runs a program to its end. With a store, the start is guarded (`guarded-start.ts`), so that the program never outlives this process.
 * @throws ProcessError when the program did not start
 * @throws StoreError when the program could not be stored, and therefore did not run
 */
export async function runAttached(
  program: AttachedProgram,
  input: RunInput,
  context: Pick<RunContext, 'durability' | 'setProgram' | 'trace'>,
): Promise<AttachedEnd> {
  const { command, cwd, args, stdin, signal, output } = program
  if (signal.aborted) {
    const message = `Command ${preview(command)} was not started: the run had been aborted.`
    throw new ProcessAbortError(message, { command }, { cause: signal.reason })
  }
  const attempt = { command, cwd, env: environmentOf(program, input, context) }
  const { durability } = context
  const run = new RunProcesses(program)
  try {
    const guarded =
      durability !== undefined && hasGroups
        ? startGuarded({
            ...attempt,
            command: findProgram(command, attempt),
            args,
            stdin,
            durability,
            run,
            stop: program,
          })
        : undefined
    const child = guarded === undefined ? startProgram(attempt, args, stdin, run) : guarded.child
    if (child.pid === undefined) await started(child, attempt)
    // There must be no `await` between the start and this line, because an abort in between would be missed.
    if (child.pid !== undefined) context.setProgram?.({ pid: child.pid })
    program.onStart?.(child)
    const ended = superviseProgram(child, run, { ...program, ...output, signal })
    try {
      await guarded?.release()
    } finally {
      await ended
    }
    const end = await ended
    const refusal = guarded && shellStartError(end, output, attempt)
    if (refusal === undefined) {
      context.setProgram?.({
        ...(end.exitCode !== null && { exitCode: end.exitCode }),
        ...(end.signal !== null && { signal: end.signal }),
        ...omitUndefined({ endedProcesses: end.leftProcesses }),
      })
    }
    return { end, refusal }
  } finally {
    run.close()
  }
}

export function environmentOf(
  { cwd, env }: Pick<ProcessSettings, 'cwd' | 'env'>,
  input: RunInput,
  { trace }: Pick<RunContext, 'trace'>,
): NodeJS.ProcessEnv {
  return {
    ...process.env,
    // As a shell does. opencode works in PWD, not in its working directory.
    ...(cwd !== undefined && { PWD: nodeBuiltin('node:path').resolve(cwd) }),
    AGENT_TASK_ID: input.id,
    AGENT_TASK_NAME: input.subagent,
    ...(trace !== undefined && { TRACEPARENT: trace.traceparent, TRACESTATE: trace.tracestate }),
    ...env,
  }
}

/** @throws ProcessError with the reason why a program did not start */
export async function started(child: ChildProcess, attempt: StartAttempt): Promise<void> {
  if (child.pid !== undefined) return
  const cause = await new Promise((resolve) => child.once('error', resolve))
  throw startError(cause, attempt)
}

function startProgram(
  attempt: StartAttempt,
  args: string[],
  stdin: 'ignore' | 'pipe',
  run: RunProcesses,
): StartedProgram {
  const { command, cwd, env } = attempt
  try {
    const { spawn } = nodeBuiltin('node:child_process')
    const stdio: [typeof stdin, 'pipe', 'pipe'] = [stdin, 'pipe', 'pipe']
    const options = { cwd, env: run.environment(env), stdio, detached: hasGroups, windowsHide: true }
    const child = spawn(command, args, options) as StartedProgram
    run.lead(child)
    return child
  } catch (cause) {
    // Node throws some failures of a start, and emits others as an event.
    throw startError(cause, attempt)
  }
}
