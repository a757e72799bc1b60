/** Runs a background task as a program: another agent's command line, a script, a build. */
import type { ChildProcess } from 'node:child_process'
import type { OutputObject } from '../../machines/records.js'
import { defined } from '../defined.js'
import type { OutputRunner, RunContext, RunInput } from '../engine/runner.js'
import { preview } from '../text/preview.js'
import { InvalidInputError } from '../errors.js'
import { captureOutput, type CapturedOutput } from './captured-output.js'
import { findProgram } from './find-program.js'
import { parseOutput } from './output-parsers.js'
import { describeTail, endError, ProcessAbortError, ProcessError } from './process-error.js'
import { hasGroups, hasUnixSockets } from '../engine/process-group.js'
import { isNode, nodeBuiltin } from '../node-builtins.js'
import { startGuarded } from './guarded-start.js'
import { writeMessages } from './message-input.js'
import { parseProcessOptions, type ProcessRunnerOptions, type ProcessSettings } from './process-options.js'
import { openQuestionSocket } from './question-socket.js'
import { shellStartError, startError, type StartAttempt } from './start-error.js'
import { substitute } from './substitution.js'
import { superviseProgram, type ProgramEnd, type StartedProgram } from './supervision.js'
import { canFollow } from '../engine/program-folder.js'
import { followProgram, startSurviving } from './surviving-program.js'

/**
 * Creates a runner that starts a program.
 *
 * The program has an empty stdin (unless `stdin` says otherwise) and leads a process group of its own. Its stdout and stderr are appended to the task's output as
 * they arrive. Exit code 0 completes the task with the output that `parse` reads from stdout; another exit code, a signal, or
 * output that cannot be read fails it with a `ProcessError`.
 *
 * An abort sends `killSignal` to the group and SIGKILL after `graceMs`; the run ends when the program has ended. Processes that the
 * program leaves in its group are killed. The group is also killed when this process exits, but not when a signal ends this process: call
 * `disposeOnSignals`. On Windows, which has no process groups, only the program itself is ended.
 * @param options which program to run, and how to read its output
 * @returns a runner for `AsyncTaskManager.launch`
 * @throws InvalidInputError with the name of the option
 * @throws ProcessError with the code `PROCESS_NOT_STARTED` outside Node
 */
export function processRunner(options: ProcessRunnerOptions): OutputRunner {
  return toRunner(parseProcessOptions(options), substitute)
}

/** The same for arguments that are passed as they are. */
export function literalRunner(options: ProcessRunnerOptions): OutputRunner {
  return toRunner(parseProcessOptions(options), (argument) => argument)
}

type ToArgument = (argument: string, input: RunInput) => string

function toRunner(settings: ProcessSettings, toArgument: ToArgument): OutputRunner {
  if (!isNode) {
    const { command } = settings
    const message = `Command ${preview(command)} cannot be started: only Node can start programs, and this is not Node.`
    throw new ProcessError('PROCESS_NOT_STARTED', message, { command })
  }
  if (settings.questions && !hasUnixSockets) {
    throw new InvalidInputError('options.questions', true, 'false: Windows has no Unix sockets')
  }
  if (!settings.survivesHost) {
    return {
      run: (input, context) => withQuestions(settings, context, toArgument, runProgram)(input),
      takesMessages: settings.stdin === 'messages',
    }
  }
  if (settings.stdin === 'messages') {
    const expected = "'none': nobody could write to a program that survives its host"
    throw new InvalidInputError('options.stdin', settings.stdin, expected)
  }
  if (!hasGroups) throw new InvalidInputError('options.survivesHost', true, 'false: Windows has no process groups')
  return {
    run: (input, context) =>
      context.durability?.isResumed === true
        ? runSurvivingProgram(settings, toArgument, input, context)
        : withQuestions(settings, context, toArgument, runSurvivingProgram)(input),
    survivesHost: true,
    canResume: (folder, program) => folder !== undefined && canFollow(folder, program),
  }
}

type RunProgram = (
  settings: ProcessSettings,
  toArgument: ToArgument,
  input: RunInput,
  context: RunContext,
) => Promise<OutputObject>

/** Runs the program with a socket for its questions, if it may ask some. */
function withQuestions(
  settings: ProcessSettings,
  context: RunContext,
  toArgument: ToArgument,
  run: RunProgram,
): (input: RunInput) => Promise<OutputObject> {
  return async (input) => {
    if (!settings.questions) return run(settings, toArgument, input, context)
    const { command } = settings
    const socket = await openQuestionSocket((question, options) => context.ask(question, options)).catch(
      (cause: unknown): never => {
        const message = `Command ${preview(command)} was not started: the socket for its questions could not be opened.`
        throw new ProcessError('PROCESS_NOT_STARTED', message, { command }, { cause })
      },
    )
    try {
      return await run({ ...settings, env: { ...settings.env, ...socket.env } }, toArgument, input, context)
    } finally {
      socket.close()
    }
  }
}

async function runProgram(
  settings: ProcessSettings,
  toArgument: ToArgument,
  input: RunInput,
  context: RunContext,
): Promise<OutputObject> {
  const { command, cwd } = settings
  const { signal } = context
  if (signal.aborted) {
    const message = `Command ${preview(command)} was not started: the run had been aborted.`
    throw new ProcessAbortError(message, { command }, { cause: signal.reason })
  }
  const args = settings.args.map((argument) => toArgument(argument, input))
  const env = environmentOf(settings, input, context)
  const { durability } = context
  const stdin: 'pipe' | 'ignore' = settings.stdin === 'messages' ? 'pipe' : 'ignore'
  const attempt = { command, cwd, env }
  const guarded =
    durability !== undefined && hasGroups
      ? startGuarded({ ...attempt, command: findProgram(command, attempt), args, stdin, durability })
      : undefined
  const child = guarded === undefined ? startProgram(settings, args, env, stdin) : guarded.child
  if (child.pid === undefined) await started(child, attempt)
  // No await between the start and this: an abort in between would be missed.
  if (child.pid !== undefined) context.setProgram?.({ pid: child.pid })
  const output = captureOutput(settings, context)
  const stopWriting = child.stdin === null ? undefined : writeMessages(child.stdin, context.messages)
  const ended = superviseProgram(child, { ...settings, ...output, signal })
  try {
    await guarded?.release()
  } finally {
    await ended
    stopWriting?.()
  }
  const end = await ended
  const refusal = guarded && shellStartError(end, output, attempt)
  if (refusal === undefined) {
    context.setProgram?.({
      ...(end.exitCode !== null && { exitCode: end.exitCode }),
      ...(end.signal !== null && { signal: end.signal }),
      ...defined({ endedProcesses: end.leftProcesses }),
    })
  }
  return readOutput(settings, args, output, end, refusal)
}

function environmentOf(settings: ProcessSettings, input: RunInput, { trace }: RunContext): NodeJS.ProcessEnv {
  return {
    ...process.env,
    AGENT_TASK_ID: input.id,
    AGENT_TASK_NAME: input.subagentName,
    ...(trace !== undefined && { TRACEPARENT: trace.traceparent, TRACESTATE: trace.tracestate }),
    ...settings.env,
  }
}

async function runSurvivingProgram(
  settings: ProcessSettings,
  toArgument: ToArgument,
  input: RunInput,
  context: RunContext,
): Promise<OutputObject> {
  const { command, cwd, maxOutputBytes } = settings
  const { signal, durability } = context
  const refuse = (reason: string): never => {
    const message = `Command ${preview(command)} was not started: ${reason}.`
    throw new ProcessError('PROCESS_NOT_STARTED', message, { command })
  }
  const folder =
    durability?.folder ?? refuse('a program that survives its host needs a store with files, such as sqliteStore(file)')
  const args = settings.args.map((argument) => toArgument(argument, input))
  const env = environmentOf(settings, input, context)
  const attempt = { command, cwd, env }
  let program = durability?.program
  if (durability?.isResumed === true) {
    if (program === undefined) refuse('its host died before it could be')
  } else {
    const created = nodeBuiltin('node:fs').mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (created === undefined) refuse(`its folder ${folder} exists already`)
    const start = { ...attempt, command: findProgram(command, attempt), args }
    const shell = startSurviving(folder, start, maxOutputBytes)
    await started(shell.child, attempt)
    if (durability !== undefined) await shell.release(durability)
    program = shell.program
  }
  const output = captureOutput(settings, context)
  const end = await followProgram(folder, { ...settings, ...output, program, signal })
  return readOutput(settings, args, output, end, shellStartError(end, output, attempt))
}

/** @throws ProcessError with the reason for which a program did not start */
async function started(child: ChildProcess, attempt: StartAttempt): Promise<void> {
  if (child.pid !== undefined) return
  const cause = await new Promise((resolve) => child.once('error', resolve))
  throw startError(cause, attempt)
}

/**
 * What the program returned, or why it failed.
 * @param refusal why its shell could not become the program
 */
async function readOutput(
  { command, parse }: ProcessSettings,
  args: readonly string[],
  output: CapturedOutput,
  end: ProgramEnd,
  refusal: ProcessError | undefined,
): Promise<OutputObject> {
  output.end()
  const stdout = output.stdout()
  const stderr = output.stderr().text
  const error = refusal ?? endError(end, { command, stdout: stdout.text, stderr })
  if (error !== undefined) throw error
  try {
    if (stdout.isLost === true && parse !== 'text') {
      throw new Error('a part of it could not be written to the store, because the disk is full or a file was removed')
    }
    if (typeof parse === 'function') return await parse(stdout.text, { command, args, stderr })
    return parseOutput(parse, stdout)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : preview(cause)
    const message = `The output of command ${preview(command)} could not be read: ${reason}.${describeTail(stderr, '')}`
    throw new ProcessError('PROCESS_OUTPUT', message, { command, exitCode: 0, stderr }, { cause })
  }
}

function startProgram(
  { command, cwd }: ProcessSettings,
  args: string[],
  env: NodeJS.ProcessEnv,
  stdin: 'ignore' | 'pipe',
): StartedProgram {
  try {
    const { spawn } = nodeBuiltin('node:child_process')
    const stdio: [typeof stdin, 'pipe', 'pipe'] = [stdin, 'pipe', 'pipe']
    return spawn(command, args, {
      cwd,
      env,
      stdio,
      detached: hasGroups,
      windowsHide: true,
    }) as StartedProgram
  } catch (cause) {
    // Some failures are thrown, others are emitted as an event.
    throw startError(cause, { command, cwd, env })
  }
}
