/** Runs a task as a program: another agent's CLI, a script or a build. */
import type { OutputObject } from '../../machines/records.js'
import type { OutputRunner, PreviousTask, RunContext } from '../engine/runner.js'
import { preview } from '../data/preview.js'
import { InvalidInputError } from '../errors.js'
import { readAgentOutput } from './agents/agent-output.js'
import { withoutGoal, wordArguments } from './agents/preset-options.js'
import { environmentOf, runAttached, started, type AttachedProgram } from './attached-program.js'
import { captureOutput, type CapturedOutput } from './captured-output.js'
import { findProgram } from './find-program.js'
import { parseOutput } from './output-parsers.js'
import { giveTo, type Given } from './given-texts.js'
import type { Instruction } from './instruction.js'
import { describeTail, endError, namesOf, ProcessError } from './process-error.js'
import { hasGroups, hasUnixSockets } from '../engine/process-group.js'
import { isNode, nodeBuiltin, nodePlatform } from '../system/node-builtins.js'
import { writeMessages, writeText } from './message-input.js'
import { parseProcessOptions, type ProcessRunnerOptions, type ProcessSettings } from './process-options.js'
import { printedText, whyNoSession } from './printed-session.js'
import { pathWithOwnCommand } from './own-command.js'
import { openQuestionSocket } from './question-socket.js'
import { shellStartError } from './start-error.js'
import { substitute, type PlaceholderTexts } from './substitution.js'
import { KILL_MS, type ProgramEnd } from './supervision.js'
import { runInWorktree } from './worktrees/run-in-worktree.js'
import { canFollow } from '../engine/program-folder.js'
import { followProgram, startSurviving } from './surviving-program.js'

/**
 * Creates a runner that starts a program for each run of a task.
 *
 * In the arguments, `{goal}` is replaced by the goal of the task, `{name}` by the name of its subagent, and `{id}` by its id. Below the goal are the
 * instructions, tools, expected outputs and context of the launch, if it has any. The results of the tasks in `after` replace `{results}`, or follow the
 * goal if no argument has that placeholder. No shell is involved. A `cwd` of the launch takes the place of the option.
 *
 * The program leads its own process group. Its stdin is empty, unless the option `stdin` says otherwise. Its stdout and stderr are appended to the output
 * of the task as they arrive. If the exit code is 0, the task completes with the output that `parse` reads from stdout. Otherwise, or if the output
 * cannot be read, the task fails with a `ProcessError`.
 *
 * An abort sends `killSignal` to all processes of the run, and SIGKILL after `graceMs`; the run ends when they have ended. They also end when this
 * process dies. When the program ends by itself, the remaining processes of its group are killed; `endDetached` says what happens to those that have
 * left the group. Windows has no process groups, so only the program itself is ended there.
 * @param options the program to run, its arguments, and how to parse its output
 * @returns a runner, as a subagent of `createAgentTasks` or for `AsyncTaskManager.launch`
 * @throws INVALID_INPUT with the name of the option that is unknown or wrong
 * @throws ProcessError `PROCESS_NOT_STARTED` outside Node
 */
export function processRunner(options: ProcessRunnerOptions): OutputRunner {
  return toRunner(parseProcessOptions(options), substitute)
}

/** Creates a runner like `processRunner`, which does not replace placeholders in the arguments. */
export function literalRunner(options: ProcessRunnerOptions): OutputRunner {
  return toRunner(parseProcessOptions(options), (argument) => argument)
}

type ToArgument = (argument: string, texts: PlaceholderTexts) => string

function toRunner(settings: ProcessSettings, toArgument: ToArgument): OutputRunner {
  if (!isNode) {
    const { command } = settings
    const message = `Command ${preview(command)} cannot be started: only Node can start programs, and this is not Node.`
    throw new ProcessError('PROCESS_NOT_STARTED', message, { command })
  }
  if (settings.questions && !hasUnixSockets) {
    throw new InvalidInputError('options.questions', true, 'false: Windows has no Unix sockets')
  }
  const settingsFor = (input: Instruction, { previous }: RunContext): ProcessSettings => {
    const own = input.cwd === undefined ? settings : { ...settings, cwd: input.cwd }
    if (settings.session === undefined || previous?.session === undefined) return own
    return { ...own, args: settings.session.resume, cwd: previous.session.cwd ?? own.cwd }
  }
  const whyNotContinue = ({ session }: PreviousTask): string | undefined =>
    settings.session === undefined ? 'its program has no setting `session`' : whyNoSession(session)
  const graceMs = settings.graceMs + KILL_MS
  if (!settings.survivesHost) {
    return {
      run: (input, context) =>
        withQuestions(settingsFor(input, context), context, toArgument, isolated(runProgram))(input),
      whyNotContinue,
      graceMs,
      takesMessages: settings.stdin === 'messages',
      runsElsewhere: true,
    }
  }
  if (settings.stdin === 'messages') {
    const expected = "'none' or 'goal', because messages cannot reach a program that survives its host"
    throw new InvalidInputError('options.stdin', settings.stdin, expected)
  }
  if (!hasGroups) throw new InvalidInputError('options.survivesHost', true, 'false: Windows has no process groups')
  return {
    run: (input, context) =>
      context.durability?.isResumed === true
        ? isolated(runSurvivingProgram)(settingsFor(input, context), toArgument, input, context)
        : withQuestions(settingsFor(input, context), context, toArgument, isolated(runSurvivingProgram))(input),
    whyNotContinue,
    graceMs,
    survivesHost: true,
    canResume: (folder, program) => folder !== undefined && canFollow(folder, program),
  }
}

type RunProgram = (
  settings: ProcessSettings,
  toArgument: ToArgument,
  input: Instruction,
  context: RunContext,
) => Promise<OutputObject>

/** Runs the program in a git worktree, unless `isolation` is `none`. */
const isolated =
  (run: RunProgram): RunProgram =>
  (settings, toArgument, input, context) =>
    settings.isolation === 'none'
      ? run(settings, toArgument, input, context)
      : runInWorktree(settings, input, context, (own, noted) => run(own, toArgument, input, noted))

/** Runs the program with a socket for questions, unless `questions` is false. */
function withQuestions(
  settings: ProcessSettings,
  context: RunContext,
  toArgument: ToArgument,
  run: RunProgram,
): (input: Instruction) => Promise<OutputObject> {
  return async (input) => {
    if (!settings.questions) return run(settings, toArgument, input, context)
    const { command } = settings
    const socket = await openQuestionSocket((question, options) => context.ask(question, options)).catch(
      (cause: unknown): never => {
        const message = `Command ${preview(command)} was not started: the socket for its questions could not be opened.`
        throw new ProcessError('PROCESS_NOT_STARTED', message, { command }, { cause })
      },
    )
    // When the next process follows the program, the run in this one never settles.
    if (settings.survivesHost) context.durability?.left?.addEventListener('abort', () => socket.close(), { once: true })
    try {
      const env = { ...settings.env, ...pathWithOwnCommand(settings.env), ...socket.env }
      return await run({ ...settings, env }, toArgument, input, context)
    } finally {
      socket.close()
    }
  }
}

/** The id that a new session of an agent gets in its arguments; undefined if the agent chooses it, or continues a session. */
function newSession({ args, preset }: ProcessSettings, { previous }: RunContext): string | undefined {
  const isGiven = preset !== undefined && previous?.session === undefined
  return isGiven && args.some((argument) => argument.includes('{session}')) ? globalThis.crypto.randomUUID() : undefined
}

/** The longest text that an agent gets as an argument, in bytes: MAX_ARG_STRLEN of Linux. Windows has 32,767 characters for all arguments. */
const MAX_ARGUMENT_BYTES = nodePlatform === 'win32' ? 30_000 : 131_071

/** An agent gets a goal that is too long for an argument from stdin. */
function withStdin(settings: ProcessSettings, { text }: Given): ProcessSettings {
  const { preset, args } = settings
  if (preset === undefined) return settings
  const isTooLong = (): boolean => new TextEncoder().encode(text).length > MAX_ARGUMENT_BYTES
  const stdin = settings.stdin === 'none' && isTooLong() ? 'goal' : settings.stdin
  return stdin === 'goal' ? { ...settings, stdin, args: withoutGoal(args) } : settings
}

function argumentsOf(
  { args, preset }: ProcessSettings,
  toArgument: ToArgument,
  { subagent: name, id }: Instruction,
  given: Given,
  session: string | undefined,
): string[] {
  const { text: goal, results } = given
  const texts = {
    goal,
    name,
    id,
    results,
    ...(session !== undefined && { session, message: goal }),
    get 'goal:file'() {
      return given.textFile()
    },
  }
  const replace = (argument: string): string => toArgument(argument, texts)
  return preset === undefined ? args.map(replace) : wordArguments(args, goal, replace)
}

async function runProgram(
  options: ProcessSettings,
  toArgument: ToArgument,
  input: Instruction,
  context: RunContext,
): Promise<OutputObject> {
  const session = newSession(options, context)
  const given = giveTo(input, options.args)
  const settings = withStdin(options, given)
  const args = argumentsOf(settings, toArgument, input, given, session ?? context.previous?.session?.id)
  const output = captureOutput(settings, context, session)
  let stopWriting: (() => void) | undefined
  const program: AttachedProgram = {
    ...settings,
    env: { ...given.env, ...settings.env },
    args,
    output,
    stdin: settings.stdin === 'none' ? 'ignore' : 'pipe',
    signal: context.signal,
    onStart: ({ stdin }) => {
      if (stdin === null) return
      if (settings.stdin === 'goal') writeText(stdin, given.text)
      else stopWriting = writeMessages(stdin, context.messages)
    },
  }
  const { end, refusal } = await runAttached(program, input, context).finally(() => {
    stopWriting?.()
    given.close()
  })
  return readOutput(settings, args, output, end, refusal)
}

async function runSurvivingProgram(
  options: ProcessSettings,
  toArgument: ToArgument,
  input: Instruction,
  context: RunContext,
): Promise<OutputObject> {
  const { command, cwd, maxOutputBytes } = options
  const { signal, durability } = context
  const timeoutMs = durability?.timeoutMs
  const refuse = (reason: string): never => {
    const message = `Command ${preview(command)} was not started: ${reason}.`
    throw new ProcessError('PROCESS_NOT_STARTED', message, { command })
  }
  const folder =
    durability?.folder ??
    refuse('a program that survives its host needs a store with a folder, such as sqliteStore(file)')
  // A program that is followed was started with its session.
  const isResumed = durability?.isResumed === true
  const session = isResumed ? undefined : newSession(options, context)
  let program = durability?.program
  if (isResumed) {
    if (program === undefined) refuse('its host died before the start')
  } else {
    const created = nodeBuiltin('node:fs').mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (created === undefined) refuse(`its folder ${folder} exists already`)
  }
  const given = giveTo(input, options.args, { folder, isWritten: isResumed })
  const settings = withStdin(options, given)
  const args = argumentsOf(settings, toArgument, input, given, session ?? context.previous?.session?.id)
  const env = environmentOf({ ...settings, env: { ...given.env, ...settings.env } }, input, context)
  const attempt = { command, cwd, env }
  if (!isResumed) {
    const stdin = settings.stdin === 'goal' ? given.textFile() : undefined
    const start = { ...attempt, command: findProgram(command, attempt), args, stdin }
    const shell = startSurviving(folder, start, maxOutputBytes, { ...settings, timeoutMs })
    await started(shell.child, attempt)
    if (durability !== undefined) await shell.release(durability)
    program = shell.program
  }
  const output = captureOutput(settings, context, session)
  const end = await followProgram(folder, {
    ...settings,
    ...output,
    program,
    signal,
    timeoutMs,
    left: durability?.left,
  })
  return readOutput(settings, args, output, end, shellStartError(end, output, attempt))
}

/**
 * Returns the output that the program printed.
 * @param refusal why the shell could not execute the program
 * @throws the error that explains why the program failed, or why its output could not be read
 */
async function readOutput(
  { command, parse, session, preset, onDetached }: ProcessSettings,
  args: readonly string[],
  output: CapturedOutput,
  end: ProgramEnd,
  refusal: ProcessError | undefined,
): Promise<OutputObject> {
  output.end()
  if (end.detached !== undefined) onDetached?.(namesOf(end.detached))
  const stdout = output.stdout()
  const stderr = output.stderr().text
  const remains = { command, stdout: stdout.text, stderr }
  const detached = end.detached === undefined ? {} : { detached_processes: namesOf(end.detached) }
  if (preset !== undefined && refusal === undefined && end.stop === undefined) {
    const read = readAgentOutput(preset, end, remains)
    if (read.denied !== undefined) output.note(`[denied: ${read.denied.join(', ')}]`)
    return { ...read, ...detached }
  }
  const error = refusal ?? endError(end, remains)
  if (error !== undefined) throw error
  try {
    if (stdout.isLost === true && parse !== 'text') {
      throw new Error(
        'a part of the output could not be written to the store, because the disk is full or a file was removed',
      )
    }
    const result = session?.result === undefined ? undefined : printedText(session.result, stdout.text)
    const read =
      result !== undefined
        ? { final_message: result }
        : typeof parse === 'function'
          ? await parse(stdout.text, { command, args, stderr })
          : parseOutput(parse, stdout)
    return { ...read, ...detached }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : preview(cause)
    const message = `The output of command ${preview(command)} could not be read: ${reason}.${describeTail(stderr, '')}`
    throw new ProcessError('PROCESS_OUTPUT', message, { command, exitCode: 0, stderr }, { cause })
  }
}
