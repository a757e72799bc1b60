/**
 * Disposes a host that runs programs when a signal ends it. Programs lead their own process groups, so neither Ctrl-C in a terminal nor a signal to
 * the host reaches them. Node emits no `exit` event on a signal, so they would outlive the host.
 */
import { clearLongTimeout, elapsedMs, setLongTimeout, systemClock } from '../clock.js'
import { InvalidInputError } from '../errors.js'
import { isNode } from '../node-builtins.js'
import { checkOptions, integerFrom, limitFrom, objectWith, type OptionTypes } from '../protocol/option-checks.js'

/** The signals that end a host. Their numbers are the same on every platform. */
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const
type EndingSignal = keyof typeof SIGNALS
const signalNames = Object.keys(SIGNALS) as EndingSignal[]

/** Less than the 10 s that Docker waits before it kills a container. */
const DEFAULT_LIMIT_MS = 8000

/** npm passes Ctrl-C on to its script, which also receives it from the terminal. */
const REPEAT_MS = 500

/** An object for `await using`, or a function. */
export type DisposeTarget = { [Symbol.asyncDispose](): PromiseLike<unknown> } | (() => unknown)

/** Options of `disposeOnSignals`. */
export interface DisposeOnSignalsOptions {
  /**
   * A stream whose end counts as the first signal. Use it for a program that a client starts over stdio: the client closes its stdin, then sends
   * SIGTERM and later SIGKILL if the program does not exit.
   */
  readonly input?: NodeJS.ReadableStream
  /** The exit code after a complete disposal. Default: 128 plus the signal number, or 0 at the end of `input`. */
  readonly exitCode?: number
  /** The time limit of the disposal in ms. After it, the process exits with 1. Infinity for no limit. Default 8000. */
  readonly limitMs?: number
}

const optionTypes: OptionTypes<DisposeOnSignalsOptions> = {
  input: objectWith('a readable stream', 'once'),
  exitCode: integerFrom(0),
  limitMs: limitFrom(0),
}

/** Disposals in progress. With several calls, the process exits after the last. */
let underWay = 0
let hasFailed = false

/** The codes of the errors with which a disposal ends what waits for a task. */
const DISPOSAL_CODES: readonly unknown[] = ['TASK_CANCELLED', 'DISPOSED']
const MAX_CAUSES = 10

/** Whether a disposal caused this error, or one that is its cause. */
function isOfDisposal(error: unknown): boolean {
  let at = error
  for (let level = 0; at instanceof Error && level < MAX_CAUSES; level += 1) {
    if (DISPOSAL_CODES.includes((at as { readonly code?: unknown }).code)) return true
    at = at.cause
  }
  return false
}

/**
 * Keeps an error from ending the process before the disposal. Node raises unhandled rejections as uncaught exceptions, such as that of `await result`
 * at the top level of a module. If the host has a listener too, that decides about other errors.
 */
function onUncaught(error: unknown): void {
  if (isOfDisposal(error) || process.listenerCount('uncaughtException') > 1) return
  hasFailed = true
  console.error(error)
}

/**
 * Disposes and then exits the process on SIGINT, SIGTERM or SIGHUP. All programs that `processRunner` and `mcpInstance` started have ended by then. A
 * second signal kills them and exits at once; the same signal within half a second counts once.
 *
 * Until it exits, an uncaught TaskCancelledError or DisposedError is ignored. Any other uncaught error is printed, and the exit code is 1, unless you
 * listen to `uncaughtException`.
 *
 * May be called several times. Has no effect outside Node.
 * @param target what to dispose: the result of `createAgentTasks`, a manager, a server, or a function
 * @returns an unsubscribe function
 * @throws InvalidInputError, InvalidSettingError for an invalid argument
 */
export function disposeOnSignals(target: DisposeTarget, options: DisposeOnSignalsOptions = {}): () => void {
  const dispose = disposerOf(target)
  checkOptions(options, optionTypes)
  const { input, exitCode, limitMs = DEFAULT_LIMIT_MS } = options
  if (!isNode) return () => undefined
  let first: { readonly cause: EndingSignal | 'input'; readonly at: number } | undefined

  const begin = (cause: EndingSignal | 'input', code: number): void => {
    first = { cause, at: elapsedMs(systemClock) }
    underWay += 1
    if (underWay === 1) process.on('uncaughtException', onUncaught)
    // The timer alone must not keep the process alive.
    const timer = setLongTimeout(systemClock, () => process.exit(1), limitMs)
    ;(timer.current as NodeJS.Timeout | undefined)?.unref()
    new Promise((resolve) => resolve(dispose()))
      .catch((error: unknown) => {
        hasFailed = true
        console.error(error)
      })
      .finally(() => {
        clearLongTimeout(systemClock, timer)
        underWay -= 1
        if (underWay > 0) return
        process.off('uncaughtException', onUncaught)
        process.exit(hasFailed ? 1 : code)
      })
  }
  const onSignal = (name: NodeJS.Signals): void => {
    const code = 128 + SIGNALS[name as EndingSignal]
    if (first === undefined) begin(name as EndingSignal, exitCode ?? code)
    else if (first.cause !== name || elapsedMs(systemClock) - first.at >= REPEAT_MS) process.exit(code)
  }
  const onEnd = (): void => {
    if (first === undefined) begin('input', exitCode ?? 0)
  }
  for (const name of signalNames) process.on(name, onSignal)
  for (const event of ['end', 'close']) input?.on(event, onEnd)
  return () => {
    for (const name of signalNames) process.off(name, onSignal)
    for (const event of ['end', 'close']) input?.off(event, onEnd)
  }
}

function disposerOf(target: DisposeTarget): () => unknown {
  if (typeof target === 'function') return target
  const { [Symbol.asyncDispose]: dispose } = Object(target) as Record<symbol, unknown>
  if (typeof dispose === 'function') return () => dispose.call(target) as unknown
  throw new InvalidInputError('target', target, 'an object with [Symbol.asyncDispose], or a function')
}
