/** Runs a background task with an agent that speaks the Agent Client Protocol (ACP), version 1. The goal is the only prompt of its session. */
import { resolve } from 'node:path'
import { methods } from '@agentclientprotocol/sdk'
import type { OutputObject } from '../../../machines/records.js'
import { clearLongTimeout, setLongTimeout, type LongTimer } from '../../system/clock.js'
import { ByteTail } from '../../engine/byte-tail.js'
import type { OutputRunner, RunContext } from '../../engine/runner.js'
import { giveTo } from '../given-texts.js'
import type { Instruction } from '../instruction.js'
import { runAttached, type AttachedProgram } from '../attached-program.js'
import { keptText } from '../captured-output.js'
import { parseOutput, type KeptText } from '../output-parsers.js'
import { describeTail, endError, ProcessAbortError, ProcessError, type ProgramRemains } from '../process-error.js'
import { DRAIN_MS, KILL_MS, type ProgramEnd } from '../supervision.js'
import { SESSION_ID } from '../../protocol/async-tasks.js'
import { whyNoSession } from '../printed-session.js'
import { preview } from '../../data/preview.js'
import { parseAcpOptions, policyFor, type AcpRunnerOptions, type AcpSettings } from './acp-options.js'
import { openAgentPipe } from './agent-pipe.js'
import { startTurn, type EndedTurn } from './agent-turn.js'
import { followUpdates } from './session-updates.js'
import { sleep } from '../../system/abort.js'
import { openTerminals } from './terminals.js'

/** How much of stderr, and of the stdout of an agent that has never answered, is kept for an error, in bytes. */
const KEPT_BYTES = 8192

/**
 * Creates a runner that starts an agent, sends it the goal as one prompt, and ends the agent after its answer. Below the goal are the instructions, tools,
 * expected outputs and context of the launch, and the results of the tasks in `after`, if there are any. A `cwd` of the launch takes the place of the option.
 *
 * What the agent says and does is the output of the task. Its stderr is a log: an error shows the end of it.
 * The last message of the agent becomes `final_message`, and its session `session_id`. `terminate_reason` is present if the agent stopped early, for
 * example at a token limit. An abort of the task sends `session/cancel`. If the agent has not stopped after `graceMs`, it is stopped in the same way
 * as by `processRunner`. Its process group and its terminals are always ended.
 *
 * A failed run rejects with a ProcessError. It has a code of `processRunner` or one of these: `ACP_AUTH_REQUIRED` if the agent needs a sign-in;
 * `ACP_FAILED` if it answers with an error or cancels the prompt itself; `ACP_REFUSED` if it refuses the goal; `ACP_PROTOCOL` for a message that is
 * invalid, too large or too late.
 * @param options the agent to run, and what it may do
 * @returns a runner for `subagents` and `AsyncTaskManager.launch`
 * @throws INVALID_INPUT for an invalid option
 * @throws INVALID_SETTING for a number out of its range
 */
export function acpRunner(options: AcpRunnerOptions): OutputRunner {
  const settings = parseAcpOptions(options)
  return {
    run: (input, context) => runAgent(settings, input, context),
    whyNotContinue: ({ session }) => whyNoSession(session),
    // Once for `session/cancel`, and once for the signal.
    graceMs: 2 * settings.program.graceMs + KILL_MS,
    runsElsewhere: true,
  }
}

async function runAgent(settings: AcpSettings, input: Instruction, context: RunContext): Promise<OutputObject> {
  const { program, maxMessageBytes, commands, permissions, startTimeoutMs } = settings
  const { command, clock, graceMs } = program
  const { signal } = context
  const folder = resolve(context.previous?.session?.cwd ?? input.cwd ?? program.cwd ?? '.')
  const updates = followUpdates(context, maxMessageBytes)
  const pipe = openAgentPipe(command, maxMessageBytes, updates.read)
  const stdout = new ByteTail(KEPT_BYTES)
  // It is the log of the agent. The output of the task is what the agent says.
  const stderr = new ByteTail(KEPT_BYTES)
  const stop = new AbortController()
  const given = giveTo(input)
  const attached: AttachedProgram = {
    ...program,
    env: { ...given.env, ...program.env },
    cwd: folder,
    stdin: 'pipe',
    signal: stop.signal,
    output: {
      onStdout: (chunk) => {
        stdout.append(chunk)
        pipe.onStdout(chunk)
      },
      onStderr: (chunk) => stderr.append(chunk),
      stdout: () => keptText(stdout),
      stderr: () => keptText(stderr),
    },
    onStart: (child) => {
      if (child.stdin !== null) pipe.attach(child.stdin)
      child.stdout.once('close', pipe.close)
    },
  }
  if (signal.aborted) stop.abort(signal.reason)
  const ended = runAttached(attached, input, context)
  // `ended` rejects if the agent could not be started.
  ended.then(pipe.close, pipe.close)
  const terminals =
    commands === undefined || policyFor(permissions, 'execute') === 'deny'
      ? undefined
      : openTerminals(program, { cwd: folder, ...commands }, input, context)
  const postpone = async (ms: number, until: AbortSignal): Promise<void> => {
    limitStart(startTimeoutMs + ms)
    const seconds = Math.ceil(ms / 1000)
    context.append(
      `[waits ${seconds} s: the agent loses a session that is loaded in the minute in which it was created]\n`,
    )
    await sleep(clock, ms, until)
  }
  const turn = startTurn(
    { settings, input, prompt: given.text, context, folder, updates, terminals, postpone },
    pipe.stream,
  )

  let timer: LongTimer | undefined
  const after = (ms: number, run: () => void): void => {
    clearLongTimeout(clock, timer)
    timer = setLongTimeout(clock, run, ms)
  }
  const halt = (): void => stop.abort(signal.reason)
  let isOver = false
  const onAbort = (): void => {
    if (!isOver && turn.cancel(signal.reason)) after(graceMs, halt)
    else halt()
  }
  signal.addEventListener('abort', onAbort, { once: true })
  let startTimer: LongTimer | undefined
  const limitStart = (ms: number): void => {
    clearLongTimeout(clock, startTimer)
    startTimer = setLongTimeout(clock, failLate, ms)
  }
  const failLate = (): void => {
    const message = `Agent ${preview(command)} was stopped: it did not answer ${turn.waitsFor} within ${startTimeoutMs} ms.`
    const log = keptText(stderr).text
    turn.fail(new ProcessError('ACP_PROTOCOL', `${message}${describeTail(log, '')}`, { command, stderr: log }))
  }
  limitStart(startTimeoutMs)
  void turn.started.then(() => clearLongTimeout(clock, startTimer))
  try {
    const outcome = await turn.outcome
    isOver = true
    const wasAborted = signal.aborted
    // An agent normally exits when its stdin ends. If it has failed but still runs, it is stopped without waiting.
    pipe.endInput()
    if ('error' in outcome && !outcome.isGone) halt()
    else after(DRAIN_MS, halt)
    const { end, refusal } = await ended
    if (refusal !== undefined) throw refusal
    const isAnswered = !('error' in outcome) || outcome.waitedFor !== methods.agent.initialize
    const remains = { command, stderr: keptText(stderr).text, stdout: isAnswered ? '' : keptText(stdout).text }
    if (wasAborted) throw abortError(end, remains, signal.reason)
    if (!('error' in outcome)) return outputOf(outcome, command, updates.message())
    throw outcome.isGone ? goneError(end, remains, outcome.waitedFor) : outcome.error
  } finally {
    clearLongTimeout(clock, timer)
    signal.removeEventListener('abort', onAbort)
    await terminals?.close()
    given.close()
  }
}

/**
 * Returns the output of the task.
 * @throws ProcessError if the agent refused the goal, or cancelled the prompt itself
 */
function outputOf({ stopReason, sessionId }: EndedTurn, command: string, message: KeptText): OutputObject {
  const output = parseOutput('text', message)
  if (stopReason === 'refusal' || stopReason === 'cancelled') {
    const [code, what] =
      stopReason === 'refusal'
        ? (['ACP_REFUSED', 'refused the goal'] as const)
        : (['ACP_FAILED', 'cancelled its turn'] as const)
    throw new ProcessError(code, `Agent ${preview(command)} ${what}.${describeTail('', output.final_message ?? '')}`, {
      command,
    })
  }
  return {
    ...output,
    ...(stopReason !== 'end_turn' && { terminate_reason: stopReason }),
    ...(SESSION_ID.test(sessionId) && { session_id: sessionId }),
  }
}

function abortError(end: ProgramEnd, remains: ProgramRemains, reason: unknown): Error {
  const { command, stderr } = remains
  const stopped = end.stop === undefined ? undefined : endError(end, remains)
  if (stopped !== undefined) return stopped
  const message = `Command ${preview(command)} was aborted: its turn was cancelled.${describeTail(stderr, '')}`
  return new ProcessAbortError(message, { command, stderr }, { cause: reason })
}

/** Returns the error for an agent that ended, or closed its stdout, before it had answered the ACP method `waitedFor`. */
function goneError(end: ProgramEnd, remains: ProgramRemains, waitedFor: string): Error {
  const { command, stderr, stdout } = remains
  const failure = end.stop === undefined ? endError(end, remains) : undefined
  if (failure !== undefined) return failure
  // An agent that closes its stdout and runs on is stopped by this runner.
  const what = end.stop === undefined ? 'ended' : 'closed its stdout'
  const hint = waitedFor === 'initialize' ? ' Does the command speak ACP? Some agents need an option for it.' : ''
  const message = `Agent ${preview(command)} ${what} before it had answered ${waitedFor}.${hint}${describeTail(stderr, stdout)}`
  return new ProcessError('ACP_PROTOCOL', message, { command, stderr })
}
